//! Loops of one kind of instruction: a pass is 512 real additions, multiplications or divisions of integers, floating-point numbers or vectors, 512
//! loads or 512 branches, then a counter and a branch, which are under 1 % of the loop (Radojković et al. 2008, section 3). Also the empty loop over
//! a volatile counter (Tsafrir 2007, section 4), written with volatile accesses rather than relying on the compiler.
//!
//! Each instruction of a pass needs the previous result, so a pass takes 512 times its latency. The whole loop, including its branch, is assembly: no
//! compiler can unroll it, shorten it or leave it out.
//!
//! Architectures other than x86-64 and AArch64 have no such loops; [`Instructions::run`] returns `None` there.

#[cfg(target_arch = "aarch64")]
mod aarch64;
mod branches;
mod loads;
#[cfg(target_arch = "x86_64")]
mod x86_64;

pub use branches::RandomBranches;
pub use loads::PointerChain;

use std::hint::black_box;

#[cfg(target_arch = "aarch64")]
use aarch64 as native;
#[cfg(target_arch = "x86_64")]
use x86_64 as native;

/// The number of instructions per pass.
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
    /// Floating-point additions of 64 bits.
    FloatAdd,
    /// Floating-point multiplications of 64 bits.
    FloatMultiply,
    /// Floating-point divisions of 64 bits.
    FloatDivide,
    /// Multiplications of vectors of two floating-point numbers of 64 bits.
    VectorMultiply,
}

impl Instructions {
    /// Whether this architecture has the loops.
    pub const SUPPORTED: bool = cfg!(any(target_arch = "x86_64", target_arch = "aarch64"));

    /// Runs this many passes, and returns the value of the last instruction's register: for floating-point numbers its bits, for vectors the bits of
    /// both lanes, the second rotated by half; `None` on an architecture without these loops. `start` is the chain's first operand, for
    /// floating-point numbers the fraction of one from 1 to 2.
    pub fn run(self, passes: u64, start: u64) -> Option<u64> {
        #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
        return Some(match (self, passes) {
            (_, 0) => start,
            (Self::Add, _) => native::add(passes, start),
            (Self::Multiply, _) => native::multiply(passes, start),
            (Self::Divide, _) => native::divide(passes, start),
            (Self::FloatAdd, _) => native::float_add(passes, first_float(start)).to_bits(),
            (Self::FloatMultiply, _) => native::float_multiply(passes, first_float(start)).to_bits(),
            (Self::FloatDivide, _) => native::float_divide(passes, first_float(start)).to_bits(),
            (Self::VectorMultiply, _) => folded(native::vector_multiply(passes, first_vector(start))),
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

/// The factor of each multiplication: odd, so no product but zero's becomes zero.
pub const FACTOR: u64 = 0xd134_2543_de82_ef95;

/// The number that each floating-point addition adds: the sums stay finite longer than any run.
pub const FLOAT_ADDEND: f64 = 1.234_567_890_123_4;

/// The factor of each floating-point multiplication, and the divisor of each division: so near to 1 that 10^14 of them neither overflow nor
/// underflow, and with bits set throughout its fraction, because processors are faster with round numbers.
pub const FLOAT_FACTOR: f64 = 1.000_000_000_001_234_5;

/// A number from 1 to 2 with these bits as its fraction.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
const fn first_float(start: u64) -> f64 {
    f64::from_bits(0x3ff << 52 | start & ((1 << 52) - 1))
}

/// Two different numbers from 1 to 2.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
const fn first_vector(start: u64) -> [f64; 2] {
    [first_float(start), first_float(!start)]
}

#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
const fn folded([first, second]: [f64; 2]) -> u64 {
    first.to_bits() ^ second.to_bits().rotate_left(32)
}

/// Counts from 0 to `iterations` in a volatile variable: each step loads it, adds one, and stores it. Returns the count.
#[inline(never)]
pub fn volatile_count(iterations: u64) -> u64 {
    let mut count = 0_u64;
    let place = black_box(&raw mut count);
    // SAFETY: `place` points to `count`, which is alive, aligned, initialized, and not used elsewhere meanwhile.
    unsafe {
        while place.read_volatile() < iterations {
            place.write_volatile(place.read_volatile() + 1);
        }
        place.read_volatile()
    }
}

#[cfg(all(test, any(target_arch = "x86_64", target_arch = "aarch64")))]
mod tests;
