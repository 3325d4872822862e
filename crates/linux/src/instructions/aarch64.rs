//! The loops of AArch64.
//!
//! Needs nothing but `core`, so that the file can be compiled alone for a type check.

use core::arch::asm;

use super::{ADDEND, FACTOR};

/// `passes` times 512 `add`, each to the sum of the one before. `passes` must not be 0.
#[inline(never)]
pub fn add(passes: u64, start: u64) -> u64 {
    let mut value = start;
    // SAFETY: changes only the registers named here and the flags; the loop ends as `passes` falls to 0.
    unsafe {
        asm!(
            "2:",
            ".rept 512",
            "add {value}, {value}, {addend}",
            ".endr",
            "subs {passes}, {passes}, #1",
            "b.ne 2b",
            value = inout(reg) value,
            addend = in(reg) ADDEND,
            passes = inout(reg) passes => _,
            options(nomem, nostack),
        );
    }
    value
}

/// `passes` times 512 `mul`, each of the product before. `passes` must not be 0.
#[inline(never)]
pub fn multiply(passes: u64, start: u64) -> u64 {
    let mut value = start;
    // SAFETY: as in `add`.
    unsafe {
        asm!(
            "2:",
            ".rept 512",
            "mul {value}, {value}, {factor}",
            ".endr",
            "subs {passes}, {passes}, #1",
            "b.ne 2b",
            value = inout(reg) value,
            factor = in(reg) FACTOR,
            passes = inout(reg) passes => _,
            options(nomem, nostack),
        );
    }
    value
}

/// What is divided each time, by the quotient before. The quotients so go between two values near the start and
/// its counterpart, both of about 32 bits, since processors divide small numbers faster.
const DIVIDEND: u64 = 0x7fff_ffff_ffff_ffe7;

/// `passes` times 512 `udiv`, each by the quotient before. `passes` must not be 0.
#[inline(never)]
pub fn divide(passes: u64, start: u64) -> u64 {
    let mut value = first_divisor(start);
    // SAFETY: as in `add`. AArch64 divisions never trap.
    unsafe {
        asm!(
            "2:",
            ".rept 512",
            "udiv {value}, {dividend}, {value}",
            ".endr",
            "subs {passes}, {passes}, #1",
            "b.ne 2b",
            value = inout(reg) value,
            dividend = in(reg) DIVIDEND,
            passes = inout(reg) passes => _,
            options(nomem, nostack),
        );
    }
    value
}

/// A divisor of 31 or 32 bits.
fn first_divisor(start: u64) -> u64 {
    (1 << 31) | (start & 0x7fff_ffff)
}

/// The same in plain words, for tests.
#[cfg(test)]
pub fn divided(passes: u64, start: u64) -> u64 {
    if passes == 0 {
        return start;
    }
    (0..passes * u64::from(super::A_PASS)).fold(first_divisor(start), |value, _| DIVIDEND / value)
}
