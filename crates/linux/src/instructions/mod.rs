//! Loops of one instruction kind: 512 real integer additions, multiplications or divisions a pass, then a counter and a
//! branch, which are under 1 % of the loop (Radojković et al. 2008, section 3). And the empty loop over a volatile
//! counter (Tsafrir 2007, section 4), which is volatile by being written this way, not by the compiler's goodwill.
//!
//! Each instruction of a pass needs the result of the one before, so that a pass takes 512 times its latency. The whole
//! loop, its branch too, is assembly: no compiler can unroll it, shorten it or leave it out.
//!
//! On other architectures than x86-64 and AArch64 there are no such loops, and [`Instructions::run`] refuses.

#[cfg(target_arch = "aarch64")]
mod aarch64;
#[cfg(target_arch = "x86_64")]
mod x86_64;

use std::hint::black_box;

#[cfg(target_arch = "aarch64")]
use aarch64 as native;
#[cfg(target_arch = "x86_64")]
use x86_64 as native;

/// How many instructions of its kind a pass has.
pub const A_PASS: u32 = 512;

/// The instruction that a loop repeats.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Instructions {
    /// Integer additions of [`ADDEND`], of 64 bits.
    Add,
    /// Integer multiplications of 64 bits.
    Multiply,
    /// Divisions of unsigned integers, the slowest of the three.
    Divide,
}

impl Instructions {
    /// Whether this architecture has the loops.
    pub const SUPPORTED: bool = cfg!(any(target_arch = "x86_64", target_arch = "aarch64"));

    /// Runs this many passes, and returns the value of the last instruction's register; `None` on an architecture
    /// without these loops. `start` is the chain's first operand.
    #[must_use]
    pub fn run(self, passes: u64, start: u64) -> Option<u64> {
        #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
        return Some(match (self, passes) {
            (_, 0) => start,
            (Self::Add, _) => native::add(passes, start),
            (Self::Multiply, _) => native::multiply(passes, start),
            (Self::Divide, _) => native::divide(passes, start),
        });
        #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
        {
            let _ = (passes, start);
            None
        }
    }
}

/// The number that each addition adds.
pub const ADDEND: u64 = 0x9e37_79b9_7f4a_7c15;

/// What each multiplication multiplies by: odd, so that no product but zero's becomes zero.
pub const FACTOR: u64 = 0xd134_2543_de82_ef95;

/// Counts from 0 to `iterations` in a volatile variable: each step loads it, adds one, and stores it. Returns the count.
#[inline(never)]
#[must_use]
pub fn volatile_count(iterations: u64) -> u64 {
    let mut count = 0_u64;
    let place = black_box(&raw mut count);
    // SAFETY: `place` points to `count`, which is alive, aligned, initialized, and used by nobody else meanwhile.
    unsafe {
        while place.read_volatile() < iterations {
            place.write_volatile(place.read_volatile() + 1);
        }
        place.read_volatile()
    }
}

#[cfg(all(test, any(target_arch = "x86_64", target_arch = "aarch64")))]
mod tests {
    use super::*;

    #[test]
    fn chains_of_additions_and_multiplications_are_what_they_claim() {
        for passes in [0, 1, 7] {
            let steps = passes * u64::from(A_PASS);
            let sum = 5_u64.wrapping_add(ADDEND.wrapping_mul(steps));
            assert_eq!(Instructions::Add.run(passes, 5), Some(sum));
            let product = (0..steps).fold(5_u64, |value, _| value.wrapping_mul(FACTOR));
            assert_eq!(Instructions::Multiply.run(passes, 5), Some(product));
        }
    }

    #[test]
    fn chains_of_divisions_are_what_they_claim() {
        for (passes, start) in [(0, 7), (1, 12_345), (9, 1), (9, 0xffff_ffff_ffff)] {
            assert_eq!(Instructions::Divide.run(passes, start), Some(native::divided(passes, start)));
        }
    }

    #[test]
    fn the_volatile_loop_counts() {
        assert_eq!((volatile_count(0), volatile_count(1), volatile_count(70_000)), (0, 1, 70_000));
    }
}
