//! The time-stamp counter of x86-64.
//!
//! Needs nothing but `core`, so that the file can be compiled alone for a type check.

use core::arch::x86_64::{__cpuid, __rdtscp, _mm_lfence, _rdtsc};

/// Reads the time-stamp counter.
///
/// No fence stands beside it. A fence would make every step of the acquisition loop three to five times as long, and so
/// its resolution as much worse; what it would buy, an order between the reading and other memory accesses, the loop
/// does not need, since two readings in one thread never pass each other.
#[inline(always)]
pub fn read() -> u64 {
    // SAFETY: RDTSC exists on every x86-64 processor; where user mode may not execute it (prctl PR_SET_TSC, CR4.TSD),
    // the process is ended by a signal and no undefined behavior follows.
    unsafe { _rdtsc() }
}

/// Reads the time-stamp counter after everything before it, and before everything behind it.
///
/// RDTSC is not ordered with loads: the processor may take the reading while it still waits for a value from another
/// CPU. LFENCE on both sides makes it wait.
#[inline(always)]
pub fn read_ordered() -> u64 {
    // SAFETY: LFENCE belongs to SSE2, which every x86-64 processor has, and only delays what follows; for RDTSC see above.
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

/// Reads the time-stamp counter, and the CPU's number beside it, by RDTSCP, which waits for what stands before it.
///
/// Every x86-64 processor since 2006 has the instruction; `rdtscp` among the flags of /proc/cpuinfo tells.
#[inline(always)]
pub fn read_p() -> u64 {
    let mut cpu = 0;
    // SAFETY: where the processor lacks the instruction, the process is ended by a signal and no undefined behavior
    // follows; it writes to its registers and from them to `cpu`.
    unsafe { __rdtscp(&raw mut cpu) }
}

/// Whether the processor promises that the counter runs at one rate, and in deep sleep too: CPUID 80000007h, EDX bit 8. The kernel's flags
/// `constant_tsc` and `nonstop_tsc` rest on the same bit. A hypervisor passes it on if guests never see another rate.
pub fn is_invariant() -> bool {
    const LARGEST: u32 = 0x8000_0000;
    const POWER: u32 = 0x8000_0007;
    __cpuid(LARGEST).eax >= POWER && __cpuid(POWER).edx & 1 << 8 != 0
}

/// Whether the processor says that a hypervisor is below the kernel: CPUID 1, ECX bit 31, which is the flag `hypervisor` of /proc/cpuinfo.
pub fn is_guest() -> bool {
    __cpuid(1).ecx & 1 << 31 != 0
}
