//! The loops of AArch64.
//!
//! Uses only `core`, so this file can be type-checked on its own.

use core::arch::aarch64::{float64x2_t, vdupq_n_f64, vgetq_lane_f64, vsetq_lane_f64};
use core::arch::asm;

use super::{ADDEND, FACTOR, FLOAT_ADDEND, FLOAT_FACTOR};

macro_rules! chain {
    ($(#[$doc:meta])+ $visibility:vis fn $name:ident: $instruction:literal ($view:literal $lanes:literal) in $register:ident of $type:ty, $operand:expr) => {
        $(#[$doc])+
        #[inline(never)]
        $visibility fn $name(passes: u64, start: $type) -> $type {
            let mut value = start;
            // SAFETY: changes only the registers named here and the flags; the loop ends as `passes` falls to 0.
            unsafe {
                asm!(
                    "2:",
                    ".rept 512",
                    concat!($instruction, " {value:", $view, "}", $lanes, ", {value:", $view, "}", $lanes, ", {operand:", $view, "}", $lanes),
                    ".endr",
                    "subs {passes}, {passes}, #1",
                    "b.ne 2b",
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
    pub fn add: "add" ("x" "") in reg of u64, ADDEND
}

chain! {
    /// `passes` times 512 `mul`, each of the previous product. `passes` must not be 0.
    pub fn multiply: "mul" ("x" "") in reg of u64, FACTOR
}

chain! {
    /// `passes` times 512 `fadd`, each to the previous sum. `passes` must not be 0.
    pub fn float_add: "fadd" ("d" "") in vreg of f64, FLOAT_ADDEND
}

chain! {
    /// `passes` times 512 `fmul`, each of the previous product. `passes` must not be 0.
    pub fn float_multiply: "fmul" ("d" "") in vreg of f64, FLOAT_FACTOR
}

chain! {
    /// `passes` times 512 `fdiv`, each of the previous quotient. `passes` must not be 0.
    pub fn float_divide: "fdiv" ("d" "") in vreg of f64, FLOAT_FACTOR
}

chain! {
    /// `passes` times 512 vector `fmul`, each of the two previous products. `passes` must not be 0.
    fn packed_multiply: "fmul" ("v" ".2d") in vreg of float64x2_t, both(FLOAT_FACTOR, FLOAT_FACTOR)
}

/// [`packed_multiply`] with plain numbers.
pub fn vector_multiply(passes: u64, [first, second]: [f64; 2]) -> [f64; 2] {
    let products = packed_multiply(passes, both(first, second));
    // SAFETY: Neon is part of every AArch64 processor that Linux runs on.
    unsafe { [vgetq_lane_f64::<0>(products), vgetq_lane_f64::<1>(products)] }
}

fn both(first: f64, second: f64) -> float64x2_t {
    // SAFETY: Neon is part of every AArch64 processor that Linux runs on.
    unsafe { vsetq_lane_f64::<1>(second, vdupq_n_f64(first)) }
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
            "ldr {at}, [{at}]",
            ".endr",
            "subs {passes}, {passes}, #1",
            "b.ne 2b",
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
            "eor {state}, {state}, {state}, lsl #13",
            "eor {state}, {state}, {state}, lsr #7",
            "eor {state}, {state}, {state}, lsl #17",
            "mov {bits}, {state}",
            ".rept 64",
            "adds {bits}, {bits}, {bits}",
            "b.cs 3f",
            "add {not_taken}, {not_taken}, #1",
            "3:",
            ".endr",
            ".endr",
            "subs {passes}, {passes}, #1",
            "b.ne 2b",
            state = inout(reg) state,
            not_taken = inout(reg) not_taken,
            bits = out(reg) _,
            passes = inout(reg) passes => _,
            options(nomem, nostack),
        );
    }
    (state, not_taken)
}

/// The dividend of every division; the divisor is the previous quotient. The quotients alternate between two values near the start and its
/// counterpart, both of about 32 bits, because processors divide small numbers faster.
const DIVIDEND: u64 = 0x7fff_ffff_ffff_ffe7;

/// `passes` times 512 `udiv`, each by the previous quotient. `passes` must not be 0.
#[inline(never)]
pub fn divide(passes: u64, start: u64) -> u64 {
    let mut value = first_divisor(start);
    // SAFETY: as in `chain`. AArch64 divisions never trap.
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

/// A divisor with 31 or 32 bits.
fn first_divisor(start: u64) -> u64 {
    (1 << 31) | (start & 0x7fff_ffff)
}

/// The same in plain Rust, for tests.
#[cfg(test)]
pub fn divided(passes: u64, start: u64) -> u64 {
    if passes == 0 {
        return start;
    }
    (0..passes * u64::from(super::A_PASS)).fold(first_divisor(start), |value, _| DIVIDEND / value)
}
