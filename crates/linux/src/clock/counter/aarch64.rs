//! The virtual counter of AArch64's generic timer.
//!
//! Uses only `core`, so this file can be type-checked on its own.

use core::arch::asm;

/// Reads the virtual counter, `CNTVCT_EL0`.
///
/// No `ISB` before it: without one, the reading may be taken a few instructions early, far less than the counter's granularity of 1 to 40 ns; with
/// one, every step of the acquisition loop would include a pipeline flush.
#[inline(always)]
pub fn read() -> u64 {
    let ticks: u64;
    // SAFETY: Linux lets user mode read CNTVCT_EL0 on every AArch64 machine (it emulates the read if an erratum forbids it); the instruction only
    // changes its destination register.
    unsafe {
        asm!("mrs {}, cntvct_el0", out(reg) ticks, options(nomem, nostack, preserves_flags));
    }
    ticks
}

/// Reads the virtual counter after everything before it, and before everything after it: the `ISB`s keep the processor from reading while it still
/// waits for a value from another CPU.
#[inline(always)]
pub fn read_ordered() -> u64 {
    let ticks: u64;
    // SAFETY: as in `read`; ISB only delays what follows. Not `nomem`, because its purpose is the order with memory accesses.
    unsafe {
        asm!("isb", "mrs {}, cntvct_el0", "isb", out(reg) ticks, options(nostack, preserves_flags));
    }
    ticks
}

/// Reads the virtual counter after everything before it: the first of the two barriers of [`read_ordered`].
#[inline(always)]
pub fn read_fenced() -> u64 {
    let ticks: u64;
    // SAFETY: as in `read_ordered`.
    unsafe {
        asm!("isb", "mrs {}, cntvct_el0", out(reg) ticks, options(nostack, preserves_flags));
    }
    ticks
}
