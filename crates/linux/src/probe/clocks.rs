//! The kernel's clocks: each through the C library, which uses the vDSO if it has the clock, and by a raw system call.

use crate::clock::clock_gettime_ns;

/// A clock of clock_gettime(2), by number and name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ClockId {
    /// The kernel's number of the clock.
    number: libc::clockid_t,
    /// Its name without `CLOCK_`: `MONOTONIC`.
    pub name: &'static str,
}

impl ClockId {
    /// `CLOCK_MONOTONIC`, whose rate NTP may slew.
    pub const MONOTONIC: Self = Self { number: libc::CLOCK_MONOTONIC, name: "MONOTONIC" };

    /// `CLOCK_THREAD_CPUTIME_ID`, a separate clock in each thread.
    pub const THREAD_CPUTIME: Self = Self { number: libc::CLOCK_THREAD_CPUTIME_ID, name: "THREAD_CPUTIME_ID" };
}

/// `CLOCK_AUX`, the first of eight auxiliary clocks of Linux 6.17 (`include/uapi/linux/time.h`).
const CLOCK_AUX: libc::clockid_t = 16;

/// Every clock that Linux has ever numbered. [`existing`] returns those of this kernel.
const CLOCKS: &[ClockId] = &[
    ClockId { number: libc::CLOCK_REALTIME, name: "REALTIME" },
    ClockId::MONOTONIC,
    ClockId { number: libc::CLOCK_MONOTONIC_RAW, name: "MONOTONIC_RAW" },
    ClockId { number: libc::CLOCK_REALTIME_COARSE, name: "REALTIME_COARSE" },
    ClockId { number: libc::CLOCK_MONOTONIC_COARSE, name: "MONOTONIC_COARSE" },
    ClockId { number: libc::CLOCK_BOOTTIME, name: "BOOTTIME" },
    ClockId { number: libc::CLOCK_TAI, name: "TAI" },
    ClockId { number: libc::CLOCK_REALTIME_ALARM, name: "REALTIME_ALARM" },
    ClockId { number: libc::CLOCK_BOOTTIME_ALARM, name: "BOOTTIME_ALARM" },
    ClockId { number: libc::CLOCK_PROCESS_CPUTIME_ID, name: "PROCESS_CPUTIME_ID" },
    ClockId::THREAD_CPUTIME,
    ClockId { number: CLOCK_AUX, name: "AUX0" },
    ClockId { number: CLOCK_AUX + 1, name: "AUX1" },
    ClockId { number: CLOCK_AUX + 2, name: "AUX2" },
    ClockId { number: CLOCK_AUX + 3, name: "AUX3" },
    ClockId { number: CLOCK_AUX + 4, name: "AUX4" },
    ClockId { number: CLOCK_AUX + 5, name: "AUX5" },
    ClockId { number: CLOCK_AUX + 6, name: "AUX6" },
    ClockId { number: CLOCK_AUX + 7, name: "AUX7" },
];

/// The readable clocks: the kernel refuses a clock that needs hardware, or must be enabled.
pub fn existing() -> Vec<ClockId> {
    let readable = |clock: &ClockId| {
        let mut time = EPOCH;
        // SAFETY: `time` is a valid place to write a timespec to.
        unsafe { libc::clock_gettime(clock.number, &raw mut time) == 0 }
    };
    CLOCKS.iter().copied().filter(readable).collect()
}

const EPOCH: libc::timespec = libc::timespec { tv_sec: 0, tv_nsec: 0 };

/// Reads a clock through the C library, in nanoseconds. One that does not exist reads 0.
#[inline(always)]
pub fn get(clock: ClockId) -> u64 {
    clock_gettime_ns(clock.number)
}

/// Reads a clock by a system call, in nanoseconds. One that does not exist reads 0.
#[inline(always)]
pub fn get_raw(clock: ClockId) -> u64 {
    let mut time = EPOCH;
    // SAFETY: `time` is a valid place to write a timespec to, of the layout that this call has on 64-bit machines.
    unsafe { libc::syscall(libc::SYS_clock_gettime, clock.number, &raw mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// The resolution that the kernel states for a clock, in nanoseconds; `None` if it states none.
pub fn resolution_ns(clock: ClockId) -> Option<u64> {
    let mut time = EPOCH;
    // SAFETY: `time` is a valid place to write a timespec to.
    let done = unsafe { libc::clock_getres(clock.number, &raw mut time) } == 0;
    done.then_some(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
}

/// `gettimeofday` through the C library, in nanoseconds: whole microseconds.
#[inline(always)]
pub fn time_of_day() -> u64 {
    let mut time = libc::timeval { tv_sec: 0, tv_usec: 0 };
    // SAFETY: `time` is a valid place to write a timeval to; no time zone is asked for.
    unsafe { libc::gettimeofday(&raw mut time, std::ptr::null_mut()) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_usec as u64 * 1_000
}

/// `gettimeofday` by a system call, in nanoseconds: whole microseconds.
#[inline(always)]
pub fn time_of_day_raw() -> u64 {
    let mut time = libc::timeval { tv_sec: 0, tv_usec: 0 };
    // SAFETY: as in `time_of_day`.
    unsafe { libc::syscall(libc::SYS_gettimeofday, &raw mut time, std::ptr::null_mut::<libc::c_void>()) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_usec as u64 * 1_000
}

/// `time` through the C library, in nanoseconds: whole seconds.
#[inline(always)]
pub fn time() -> u64 {
    // SAFETY: with a null pointer the time is only returned.
    unsafe { libc::time(std::ptr::null_mut()) as u64 * 1_000_000_000 }
}

/// `time` by a system call, in nanoseconds: whole seconds. Architectures newer than x86-64 have no such call.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub fn time_raw() -> u64 {
    // SAFETY: as in `time`.
    unsafe { libc::syscall(libc::SYS_time, std::ptr::null_mut::<libc::c_void>()) as u64 * 1_000_000_000 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ways_read_the_same_clock() {
        let clocks = existing();
        assert!(clocks.contains(&ClockId::MONOTONIC) && clocks.contains(&ClockId::THREAD_CPUTIME));
        for clock in clocks {
            let (before, raw, after) = (get(clock), get_raw(clock), get(clock));
            assert!(raw > 0 && before <= raw && raw <= after, "{}: {before} {raw} {after}", clock.name);
            assert!(resolution_ns(clock).is_some_and(|ns| ns > 0), "{}", clock.name);
        }
        let (day, day_raw) = (time_of_day(), time_of_day_raw());
        assert!(day_raw - day < 1_000_000_000, "{day} {day_raw}");
        // It lags by a tick, because it reads the coarse clock.
        assert!(time().abs_diff(day) <= 2_000_000_000);
        #[cfg(target_arch = "x86_64")]
        assert!(time_raw().abs_diff(day) <= 2_000_000_000);
    }
}
