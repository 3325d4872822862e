//! Sleeping until an instant of `CLOCK_MONOTONIC`, unless called off.

use std::num::{NonZeroU32, NonZeroU64};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use rustix::io::Errno;
use rustix::thread::{futex, set_current_timer_slack};
use rustix::time::Timespec;

use crate::clock::clock_gettime_ns;

/// Reads `CLOCK_MONOTONIC`: nanoseconds since boot, not counting suspension.
#[inline]
pub fn monotonic_ns() -> u64 {
    clock_gettime_ns(libc::CLOCK_MONOTONIC)
}

/// `CLOCK_REALTIME` now, in nanoseconds: the wall clock, which the nodes of a cluster share.
pub fn wall_ns() -> u64 {
    clock_gettime_ns(libc::CLOCK_REALTIME)
}

/// An alarm that any number of threads can sleep on.
#[derive(Debug, Default)]
pub struct Alarm(AtomicU32);

impl Alarm {
    /// An alarm that has not been called off.
    pub const fn new() -> Self {
        Self(AtomicU32::new(0))
    }

    /// Sleeps until `CLOCK_MONOTONIC` reaches an instant; returns false as soon as it is called off.
    ///
    /// Before Linux 6.13 the kernel may be late by the thread's timer slack, even for real-time threads; see [`set_timer_slack`].
    pub fn sleep_until(&self, at_ns: u64) -> bool {
        let at = Duration::from_nanos(at_ns);
        let at = Timespec { tv_sec: at.as_secs() as i64, tv_nsec: at.subsec_nanos().into() };
        while !self.is_called_off() {
            // The time is absolute with this operation.
            let woken = futex::wait_bitset(&self.0, futex::Flags::PRIVATE, 0, Some(&at), NonZeroU32::MAX);
            if woken == Err(Errno::TIMEDOUT) {
                return true;
            }
        }
        false
    }

    /// Wakes all threads that sleep on it; from now on, none sleeps.
    pub fn call_off(&self) {
        self.0.store(1, Ordering::Release);
        let _ = futex::wake(&self.0, futex::Flags::PRIVATE, i32::MAX as u32);
    }

    /// Whether it was called off.
    #[inline]
    pub fn is_called_off(&self) -> bool {
        self.0.load(Ordering::Acquire) != 0
    }
}

/// How much later the kernel may wake the calling thread to save interrupts, at least a nanosecond.
pub fn set_timer_slack(slack_ns: u32) {
    // It cannot fail.
    let _ = set_current_timer_slack(NonZeroU64::new(slack_ns.max(1).into()));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_sleeps_until_then_or_until_called_off() {
        let alarm = Alarm::new();
        let then = monotonic_ns() + 5_000_000;
        assert!(alarm.sleep_until(then));
        assert!(monotonic_ns() >= then);
        assert!(alarm.sleep_until(0), "what is past is not waited for");
        std::thread::scope(|scope| {
            let sleeper = scope.spawn(|| alarm.sleep_until(u64::MAX / 2));
            std::thread::sleep(Duration::from_millis(5));
            alarm.call_off();
            assert!(!sleeper.join().unwrap());
        });
        assert!(alarm.is_called_off() && !alarm.sleep_until(0));
    }
}
