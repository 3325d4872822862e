//! The loops of x86-64.
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
            "add {value}, {addend}",
            ".endr",
            "dec {passes}",
            "jnz 2b",
            value = inout(reg) value,
            addend = in(reg) ADDEND,
            passes = inout(reg) passes => _,
            options(nomem, nostack),
        );
    }
    value
}

/// `passes` times 512 `imul`, each of the product before. `passes` must not be 0.
#[inline(never)]
pub fn multiply(passes: u64, start: u64) -> u64 {
    let mut value = start;
    // SAFETY: as in `add`.
    unsafe {
        asm!(
            "2:",
            ".rept 512",
            "imul {value}, {factor}",
            ".endr",
            "dec {passes}",
            "jnz 2b",
            value = inout(reg) value,
            factor = in(reg) FACTOR,
            passes = inout(reg) passes => _,
            options(nomem, nostack),
        );
    }
    value
}

/// What each division divides by.
///
/// Quotient and remainder of one division are the dividend of the next. That is the step of a multiply-with-carry
/// generator of this multiplier and base 2^32, run backwards, so the dividends stay as irregular as random numbers and
/// never become small ones, which processors divide faster; and a remainder, being below the divisor, never makes the
/// next quotient too large for its register.
const DIVISOR: u32 = 4_294_957_665;

/// `passes` times 512 `div` of 64 by 32 bits, each of quotient and remainder of the one before. `passes` must not be 0.
#[inline(never)]
pub fn divide(passes: u64, start: u64) -> u64 {
    let (mut remainder, mut quotient) = first_dividend(start);
    // SAFETY: as in `add`. No division traps: the divisor is not 0, and the upper half of each dividend is below it.
    unsafe {
        asm!(
            "2:",
            ".rept 512",
            "div {divisor:e}",
            ".endr",
            "dec {passes}",
            "jnz 2b",
            divisor = in(reg) DIVISOR,
            passes = inout(reg) passes => _,
            inout("edx") remainder,
            inout("eax") quotient,
            options(nomem, nostack),
        );
    }
    joined(remainder, quotient)
}

/// The dividend's upper and lower half. Neither 0 nor the greatest possible one, from which the chain would not move.
fn first_dividend(start: u64) -> (u32, u32) {
    let dividend = 1 + start % (u64::from(DIVISOR) * (1 << 32) - 2);
    ((dividend >> 32) as u32, dividend as u32)
}

fn joined(upper: u32, lower: u32) -> u64 {
    u64::from(upper) << 32 | u64::from(lower)
}

/// The same in plain words, for tests.
#[cfg(test)]
pub fn divided(passes: u64, start: u64) -> u64 {
    if passes == 0 {
        return start;
    }
    let (mut upper, mut lower) = first_dividend(start);
    for _ in 0..passes * u64::from(super::A_PASS) {
        let dividend = joined(upper, lower);
        lower = u32::try_from(dividend / u64::from(DIVISOR)).expect("the quotient fits");
        upper = (dividend % u64::from(DIVISOR)) as u32;
    }
    joined(upper, lower)
}
