//! Sleeping until an instant of `CLOCK_MONOTONIC`, unless called off.

use std::io;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

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
        let at = libc::timespec { tv_sec: at.as_secs() as libc::time_t, tv_nsec: at.subsec_nanos() as libc::c_long };
        while !self.is_called_off() {
            // SAFETY: the word and the time outlive the call; the time is absolute with this operation.
            let woken = unsafe {
                libc::syscall(
                    libc::SYS_futex,
                    self.0.as_ptr(),
                    libc::FUTEX_WAIT_BITSET | libc::FUTEX_PRIVATE_FLAG,
                    0,
                    &raw const at,
                    std::ptr::null::<u32>(),
                    libc::FUTEX_BITSET_MATCH_ANY,
                )
            };
            if woken == -1 && io::Error::last_os_error().raw_os_error() == Some(libc::ETIMEDOUT) {
                return true;
            }
        }
        false
    }

    /// Wakes all threads that sleep on it; from now on, none sleeps.
    pub fn call_off(&self) {
        self.0.store(1, Ordering::Release);
        // SAFETY: the word's address is only compared with those that threads sleep on.
        unsafe {
            libc::syscall(libc::SYS_futex, self.0.as_ptr(), libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG, i32::MAX);
        }
    }

    /// Whether it was called off.
    #[inline]
    pub fn is_called_off(&self) -> bool {
        self.0.load(Ordering::Acquire) != 0
    }
}

/// How much later the kernel may wake the calling thread to save interrupts, at least a nanosecond.
pub fn set_timer_slack(slack_ns: u32) {
    // SAFETY: the operation takes an integer, and cannot fail.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, libc::c_ulong::from(slack_ns.max(1)), 0, 0, 0) };
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
