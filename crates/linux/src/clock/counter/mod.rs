//! The counters that an acquisition loop can read, one small file per architecture.

#[cfg(target_arch = "aarch64")]
mod aarch64;
#[cfg(target_arch = "x86_64")]
mod x86_64;

use super::gettime::clock_gettime_ns;

/// The properties that this machine's processor reports, for when the kernel's files cannot be read; `None` on architectures without CPUID.
#[cfg(target_arch = "x86_64")]
pub(crate) fn asked_processor() -> Option<Promises> {
    Some(Promises { invariant: x86_64::is_invariant(), guest: x86_64::is_guest() })
}

#[cfg(not(target_arch = "x86_64"))]
pub(crate) fn asked_processor() -> Option<Promises> {
    None
}

/// The properties that a processor reports.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Promises {
    /// The counter's rate never changes, and it never stops.
    pub invariant: bool,
    /// A hypervisor runs below the kernel.
    pub guest: bool,
}

/// A counter as a type: a loop is compiled for each one, and its reading is inlined.
pub trait Counter {
    /// The name in documents: `tsc`, `cntvct`, `monotonic_raw`.
    const NAME: &'static str;

    /// Reads the counter, in ticks. The processor may execute the reading before or after its neighbors.
    fn read() -> u64;

    /// Reads the counter in order with the surrounding code, to compare the counters of two CPUs.
    fn read_ordered() -> u64 {
        Self::read()
    }
}

/// The processor's own counter: the TSC on x86-64, the virtual counter CNTVCT on AArch64.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
#[derive(Clone, Copy, Debug)]
pub struct Native;

#[cfg(target_arch = "x86_64")]
impl Counter for Native {
    const NAME: &'static str = "tsc";

    #[inline(always)]
    fn read() -> u64 {
        x86_64::read()
    }

    #[inline(always)]
    fn read_ordered() -> u64 {
        x86_64::read_ordered()
    }
}

#[cfg(target_arch = "aarch64")]
impl Counter for Native {
    const NAME: &'static str = "cntvct";

    #[inline(always)]
    fn read() -> u64 {
        aarch64::read()
    }

    #[inline(always)]
    fn read_ordered() -> u64 {
        aarch64::read_ordered()
    }
}

/// The processor's own counter, read after everything before it.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
#[derive(Clone, Copy, Debug)]
pub struct Fenced;

#[cfg(target_arch = "x86_64")]
impl Counter for Fenced {
    const NAME: &'static str = "lfence+rdtsc";

    #[inline(always)]
    fn read() -> u64 {
        x86_64::read_fenced()
    }
}

#[cfg(target_arch = "aarch64")]
impl Counter for Fenced {
    const NAME: &'static str = "isb+cntvct";

    #[inline(always)]
    fn read() -> u64 {
        aarch64::read_fenced()
    }
}

/// The time-stamp counter, read by the instruction that also returns the CPU.
#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy, Debug)]
pub struct Rdtscp;

#[cfg(target_arch = "x86_64")]
impl Counter for Rdtscp {
    const NAME: &'static str = "rdtscp";

    #[inline(always)]
    fn read() -> u64 {
        x86_64::read_p()
    }
}

/// `CLOCK_MONOTONIC_RAW`: the kernel's own reading, in nanoseconds, for machines without a trustworthy counter.
#[derive(Clone, Copy, Debug)]
pub struct MonotonicRaw;

impl Counter for MonotonicRaw {
    const NAME: &'static str = "monotonic_raw";

    #[inline(always)]
    fn read() -> u64 {
        clock_gettime_ns(libc::CLOCK_MONOTONIC_RAW)
    }
}
