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
mod tests {
    use super::*;

    #[test]
    fn each_branch_goes_by_the_next_bit() {
        let mut branches = RandomBranches::new();
        let mut state = SEED;
        for passes in [1_u64, 0, 3, 40] {
            let mut not_taken = 0;
            for _ in 0..passes * 8 {
                state = xorshift(state);
                not_taken += u64::from(state.count_zeros());
            }
            assert_eq!(branches.run(passes), Some(not_taken), "{passes} passes");
            assert_eq!(branches.state, state);
        }
    }

    #[test]
    fn half_of_them_are_taken_and_neighbors_tell_nothing() {
        let mut state = SEED;
        let bits: Vec<bool> = (0..2_000)
            .flat_map(|_| {
                state = xorshift(state);
                (0..64).rev().map(move |bit| state >> bit & 1 == 1)
            })
            .collect();
        let share = |hits: usize, all: usize| hits as f64 / all as f64;
        let taken = share(bits.iter().filter(|bit| **bit).count(), bits.len());
        // Of 128,000 fair bits the share is within 0.006 of a half, four standard deviations.
        assert!((taken - 0.5).abs() < 0.006, "{taken}");
        for lag in [1, 2, 63, 64, 65] {
            let same = bits.windows(lag + 1).filter(|window| window[0] == window[lag]).count();
            let same = share(same, bits.len() - lag);
            assert!((same - 0.5).abs() < 0.006, "lag {lag}: {same}");
        }
    }
}
