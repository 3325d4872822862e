//! The time-stamp counter of x86-64.
//!
//! Uses only `core`, so this file can be type-checked on its own.

use core::arch::x86_64::{__cpuid, __rdtscp, _mm_lfence, _rdtsc};

/// Reads the time-stamp counter.
///
/// Without a fence. One would make every step of the acquisition loop three to five times as long, and its resolution that much worse. The loop does
/// not need the order between the reading and other memory accesses, because two readings in one thread never pass each other.
#[inline(always)]
pub fn read() -> u64 {
    // SAFETY: RDTSC exists on every x86-64 processor; if user mode may not execute it (prctl PR_SET_TSC, CR4.TSD), a signal ends the process, and
    // there is no undefined behavior.
    unsafe { _rdtsc() }
}

/// Reads the time-stamp counter after everything before it, and before everything after it.
///
/// RDTSC is not ordered with loads: the processor may read while it still waits for a value from another CPU. LFENCE on both sides makes it wait.
#[inline(always)]
pub fn read_ordered() -> u64 {
    // SAFETY: LFENCE is part of SSE2, which every x86-64 processor has, and only delays what follows; for RDTSC see above.
    unsafe {
        _mm_lfence();
        let ticks = _rdtsc();
        _mm_lfence();
        ticks
    }
}

/// Reads the time-stamp counter after everything before it: the first of the two fences of [`read_ordered`].
#[inline(always)]
pub fn read_fenced() -> u64 {
    // SAFETY: as in `read_ordered`.
    unsafe {
        _mm_lfence();
        _rdtsc()
    }
}

/// Reads the time-stamp counter, and the CPU's number with it, by RDTSCP, which waits for everything before it.
///
/// Every x86-64 processor since 2006 has the instruction; the flag `rdtscp` in /proc/cpuinfo shows it.
#[inline(always)]
pub fn read_p() -> u64 {
    let mut cpu = 0;
    // SAFETY: if the processor lacks the instruction, a signal ends the process, and there is no undefined behavior; it writes to its registers and
    // from them to `cpu`.
    unsafe { __rdtscp(&raw mut cpu) }
}

/// Whether the processor promises that the counter runs at one rate, also in deep sleep: CPUID 80000007h, EDX bit 8, the source of the kernel's flags
/// `constant_tsc` and `nonstop_tsc`. A hypervisor passes it on if guests never see another rate.
pub fn is_invariant() -> bool {
    const LARGEST: u32 = 0x8000_0000;
    const POWER: u32 = 0x8000_0007;
    __cpuid(LARGEST).eax >= POWER && __cpuid(POWER).edx & 1 << 8 != 0
}

/// Whether the processor reports a hypervisor below the kernel: CPUID 1, ECX bit 31, the flag `hypervisor` of /proc/cpuinfo.
pub fn is_guest() -> bool {
    __cpuid(1).ecx & 1 << 31 != 0
}
