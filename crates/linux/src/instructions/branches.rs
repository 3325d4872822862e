//! Branches on random bits, which no predictor predicts.

#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
use super::native;

/// The state before the first step; must not be 0.
const SEED: u64 = 0x0123_4567_89ab_cdef;

/// Branches on the bits of a xorshift generator, which continues from call to call: no predictor can memorize a call.
#[derive(Debug)]
pub struct RandomBranches {
    state: u64,
}

impl RandomBranches {
    /// The generator in its initial state.
    pub const fn new() -> Self {
        Self { state: SEED }
    }

    /// Branches 512 times per pass. Returns the number of branches not taken, about half of them; `None` on an architecture without these loops.
    pub fn run(&mut self, passes: u64) -> Option<u64> {
        #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
        {
            let (state, not_taken) = if passes == 0 { (self.state, 0) } else { native::branch(passes, self.state) };
            self.state = state;
            Some(not_taken)
        }
        #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
        {
            let _ = (passes, self.state);
            None
        }
    }
}

impl Default for RandomBranches {
    fn default() -> Self {
        Self::new()
    }
}

/// A step of the generator (Marsaglia 2003): it visits all states but 0 in one cycle.
pub(super) const fn xorshift(state: u64) -> u64 {
    let state = state ^ (state << 13);
    let state = state ^ (state >> 7);
    state ^ (state << 17)
}

#[cfg(all(test, any(target_arch = "x86_64", target_arch = "aarch64")))]
mod tests;
