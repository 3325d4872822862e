//! The loops of x86-64.
//!
//! Uses only `core`, so this file can be type-checked on its own.

use core::arch::asm;
use core::arch::x86_64::{__m128d, _mm_cvtsd_f64, _mm_set_pd, _mm_unpackhi_pd};

use super::{ADDEND, FACTOR, FLOAT_ADDEND, FLOAT_FACTOR};

macro_rules! chain {
    ($(#[$doc:meta])+ $visibility:vis fn $name:ident: $instruction:literal in $register:ident of $type:ty, $operand:expr) => {
        $(#[$doc])+
        #[inline(never)]
        $visibility fn $name(passes: u64, start: $type) -> $type {
            let mut value = start;
            // SAFETY: changes only the registers named here and the flags; the loop ends as `passes` falls to 0.
            unsafe {
                asm!(
                    "2:",
                    ".rept 512",
                    concat!($instruction, " {value}, {operand}"),
                    ".endr",
                    "dec {passes}",
                    "jnz 2b",
                    value = inout($register) value,
                    operand = in($register) $operand,
                    passes = inout(reg) passes => _,
                    options(nomem, nostack),
                );
            }
            value
        }
    };
}

chain! {
    /// `passes` times 512 `add`, each to the previous sum. `passes` must not be 0.
    pub fn add: "add" in reg of u64, ADDEND
}

chain! {
    /// `passes` times 512 `imul`, each of the previous product. `passes` must not be 0.
    pub fn multiply: "imul" in reg of u64, FACTOR
}

chain! {
    /// `passes` times 512 `addsd`, each to the previous sum. `passes` must not be 0.
    pub fn float_add: "addsd" in xmm_reg of f64, FLOAT_ADDEND
}

chain! {
    /// `passes` times 512 `mulsd`, each of the previous product. `passes` must not be 0.
    pub fn float_multiply: "mulsd" in xmm_reg of f64, FLOAT_FACTOR
}

chain! {
    /// `passes` times 512 `divsd`, each of the previous quotient. `passes` must not be 0.
    pub fn float_divide: "divsd" in xmm_reg of f64, FLOAT_FACTOR
}

chain! {
    /// `passes` times 512 `mulpd`, each of the two previous products. `passes` must not be 0.
    fn packed_multiply: "mulpd" in xmm_reg of __m128d, both(FLOAT_FACTOR, FLOAT_FACTOR)
}

/// [`packed_multiply`] with plain numbers.
pub fn vector_multiply(passes: u64, [first, second]: [f64; 2]) -> [f64; 2] {
    let products = packed_multiply(passes, both(first, second));
    // SAFETY: SSE2 is part of every x86-64 processor.
    unsafe { [_mm_cvtsd_f64(products), _mm_cvtsd_f64(_mm_unpackhi_pd(products, products))] }
}

fn both(first: f64, second: f64) -> __m128d {
    // SAFETY: SSE2 is part of every x86-64 processor.
    unsafe { _mm_set_pd(second, first) }
}

/// `passes` times 512 loads, each from the address that the previous one loaded. `passes` must not be 0.
///
/// # Safety
/// `at` must be the address of an aligned, readable `usize`, which contains the address of another one, and so on without end.
#[inline(never)]
pub unsafe fn load(passes: u64, at: usize) -> usize {
    let mut at = at;
    // SAFETY: reads only what the caller vouches for; otherwise as in `chain`.
    unsafe {
        asm!(
            "2:",
            ".rept 512",
            "mov {at}, [{at}]",
            ".endr",
            "dec {passes}",
            "jnz 2b",
            at = inout(reg) at,
            passes = inout(reg) passes => _,
            options(readonly, nostack),
        );
    }
    at
}

/// `passes` times 512 branches, each on the next bit of a 64-bit xorshift generator in this state, which steps once per 64 branches. Returns the
/// state and the number of branches not taken. `passes` must not be 0.
#[inline(never)]
pub fn branch(passes: u64, state: u64) -> (u64, u64) {
    let mut state = state;
    let mut not_taken = 0_u64;
    // SAFETY: as in `chain`.
    unsafe {
        asm!(
            "2:",
            ".rept 8",
            "mov {bits}, {state}",
            "shl {bits}, 13",
            "xor {state}, {bits}",
            "mov {bits}, {state}",
            "shr {bits}, 7",
            "xor {state}, {bits}",
            "mov {bits}, {state}",
            "shl {bits}, 17",
            "xor {state}, {bits}",
            "mov {bits}, {state}",
            ".rept 64",
            "add {bits}, {bits}",
            "jc 3f",
            "inc {not_taken}",
            "3:",
            ".endr",
            ".endr",
            "dec {passes}",
            "jnz 2b",
            state = inout(reg) state,
            not_taken = inout(reg) not_taken,
            bits = out(reg) _,
            passes = inout(reg) passes => _,
            options(nomem, nostack),
        );
    }
    (state, not_taken)
}

/// The divisor of each division.
///
/// Quotient and remainder of one division are the dividend of the next. This is the step of a multiply-with-carry generator with this multiplier and
/// base 2^32, run backwards. So the dividends stay as irregular as random numbers and never become small, which processors divide faster; and a
/// remainder, being below the divisor, never makes the next quotient too large for its register.
const DIVISOR: u32 = 4_294_957_665;

/// `passes` times 512 `div` of 64 by 32 bits, each of the previous quotient and remainder. `passes` must not be 0.
#[inline(never)]
pub fn divide(passes: u64, start: u64) -> u64 {
    let (mut remainder, mut quotient) = first_dividend(start);
    // SAFETY: as in `chain`. No division traps: the divisor is not 0, and the upper half of each dividend is below it.
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

/// The dividend's upper and lower half. Neither 0 nor the greatest possible one, where the chain would not move.
fn first_dividend(start: u64) -> (u32, u32) {
    let dividend = 1 + start % (u64::from(DIVISOR) * (1 << 32) - 2);
    ((dividend >> 32) as u32, dividend as u32)
}

fn joined(upper: u32, lower: u32) -> u64 {
    u64::from(upper) << 32 | u64::from(lower)
}

/// The same in plain Rust, for tests.
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
