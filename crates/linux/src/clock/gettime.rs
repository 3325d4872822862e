//! The kernel's clocks, by clock_gettime(2).

use becalm_units::Nanos;

/// The processor time that the calling thread has taken so far, in nanoseconds.
pub fn thread_time() -> Nanos {
    // It would take 292 years of work to leave the range.
    Nanos::new(clock_gettime_ns(libc::CLOCK_THREAD_CPUTIME_ID) as i64)
}

/// Reads a clock of the kernel, in nanoseconds.
pub(crate) fn clock_gettime_ns(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a valid place to write a timespec to; an unknown clock leaves it as it is.
    unsafe { libc::clock_gettime(clock, &raw mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
