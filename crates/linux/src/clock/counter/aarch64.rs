//! The virtual counter of the generic timer of AArch64.
//!
//! Needs nothing but `core`, so that the file can be compiled alone for a type check.

use core::arch::asm;

/// Reads the virtual counter, `CNTVCT_EL0`.
///
/// No `ISB` stands before it. Without it the reading may be taken a few instructions early, far below the counter's
/// own granularity of 1 to 40 ns; with it every step of the acquisition loop would include a pipeline flush.
#[inline(always)]
pub fn read() -> u64 {
    let ticks: u64;
    // SAFETY: Linux lets user mode read CNTVCT_EL0 on every AArch64 machine (it emulates the reading where an erratum
    // forbids it); the instruction has no effect but on its destination register.
    unsafe {
        asm!("mrs {}, cntvct_el0", out(reg) ticks, options(nomem, nostack, preserves_flags));
    }
    ticks
}

/// Reads the virtual counter after everything before it, and before everything behind it: the `ISB`s keep the processor
/// from taking the reading while it still waits for a value from another CPU.
#[inline(always)]
pub fn read_ordered() -> u64 {
    let ticks: u64;
    // SAFETY: as in `read`; ISB only delays what follows. Not `nomem`, as the order with memory is what it is for.
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
