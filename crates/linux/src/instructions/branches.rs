//! Branches that no predictor predicts: each goes by a random bit.

#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
use super::native;

/// The state before the first step; any but 0.
const SEED: u64 = 0x0123_4567_89ab_cdef;

/// Branches by the bits of a xorshift generator. It goes on from call to call, so that no predictor learns a call by heart.
#[derive(Debug)]
pub struct RandomBranches {
    state: u64,
}

impl RandomBranches {
    /// The generator at its beginning.
    pub const fn new() -> Self {
        Self { state: SEED }
    }

    /// Branches 512 times a pass. Returns how many were not taken, about half of them; `None` on an architecture without
    /// these loops.
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

/// A step of the generator (Marsaglia 2003): of all states but 0 it makes one circle.
pub(super) const fn xorshift(state: u64) -> u64 {
    let state = state ^ (state << 13);
    let state = state ^ (state >> 7);
    state ^ (state << 17)
}

#[cfg(all(test, any(target_arch = "x86_64", target_arch = "aarch64")))]
mod tests;
