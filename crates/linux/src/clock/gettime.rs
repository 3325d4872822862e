//! The kernel's clocks, by clock_gettime(2).

use becalm_units::Nanos;

/// The CPU time of the calling thread so far, in nanoseconds.
pub fn thread_time() -> Nanos {
    // Overflows after 292 years of CPU time.
    Nanos::new(clock_gettime_ns(libc::CLOCK_THREAD_CPUTIME_ID) as i64)
}

/// `CLOCK_MONOTONIC`, `CLOCK_REALTIME` and `CLOCK_BOOTTIME`, one right after the other, in nanoseconds.
pub fn wall_clocks() -> [u64; 3] {
    [libc::CLOCK_MONOTONIC, libc::CLOCK_REALTIME, libc::CLOCK_BOOTTIME].map(clock_gettime_ns)
}

/// Reads a clock of the kernel, in nanoseconds.
pub(crate) fn clock_gettime_ns(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a valid place to write a timespec to; an unknown clock leaves it unchanged.
    unsafe { libc::clock_gettime(clock, &raw mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
