//! The kernel's statistics of this process's resource usage.

use std::fs;

use becalm_units::Nanos;

use crate::clock::clock_gettime_ns;
use crate::sched::rusage;

/// The resources that the process uses now.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Usage {
    /// CPU time of all its threads since it started, including ended ones.
    pub cpu: Nanos,
    /// Resident memory, in bytes; zero if `/proc` cannot be read.
    pub resident_bytes: u64,
    /// Open file descriptors; zero if `/proc` cannot be read.
    pub descriptors: u64,
}

/// CPU time of all threads of the process since it started (`CLOCK_PROCESS_CPUTIME_ID`).
pub fn cpu_time() -> Nanos {
    Nanos::new(i64::try_from(clock_gettime_ns(libc::CLOCK_PROCESS_CPUTIME_ID)).unwrap_or(i64::MAX))
}

/// No process has a larger number (the kernel's `PID_MAX_LIMIT`).
const LARGEST_PID: i32 = 1 << 22;

/// CPU time of all threads of the process with this number since it started; zero if it is gone.
pub fn cpu_time_of(pid: i32) -> Nanos {
    // 0 means the caller, and the bits of the largest numbers mean the caller's own clock.
    if !(1..=LARGEST_PID).contains(&pid) {
        return Nanos::ZERO;
    }
    let mut clock: libc::clockid_t = 0;
    // SAFETY: `clock` is a valid place to write a number to.
    if unsafe { libc::clock_getcpuclockid(pid, &raw mut clock) } != 0 {
        return Nanos::ZERO;
    }
    Nanos::new(i64::try_from(clock_gettime_ns(clock)).unwrap_or(i64::MAX))
}

/// CPU time of all children that have ended and were reaped, including their own: in user mode, and in the kernel.
pub fn cpu_time_of_children() -> (Nanos, Nanos) {
    let usage = rusage(libc::RUSAGE_CHILDREN);
    let time = |time: libc::timeval| Nanos::from_secs(time.tv_sec) + Nanos::from_micros(time.tv_usec);
    (time(usage.ru_utime), time(usage.ru_stime))
}

impl Usage {
    /// Asks the kernel.
    pub fn now() -> Self {
        let pages = fs::read_to_string("/proc/self/statm").ok();
        let pages = pages.and_then(|text| text.split_whitespace().nth(1)?.parse::<u64>().ok());
        // Not counting the descriptor that reads the list.
        let descriptors = fs::read_dir("/proc/self/fd").map_or(0, |list| list.count().saturating_sub(1));
        Self {
            cpu: cpu_time(),
            resident_bytes: pages.unwrap_or(0).saturating_mul(rustix::param::page_size() as u64),
            descriptors: descriptors as u64,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_takes_something() {
        let before = Usage::now();
        assert!(before.cpu > Nanos::ZERO && before.resident_bytes > 1 << 16 && before.descriptors >= 3, "{before:?}");
        let mut sum = 0_u64;
        while cpu_time() == before.cpu {
            sum = std::hint::black_box(sum + 1);
        }
        assert!(cpu_time() > before.cpu);
        let own = i32::try_from(std::process::id()).unwrap();
        assert!(cpu_time_of(own) > before.cpu);
        let (user, system) = cpu_time_of_children();
        let script = "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done";
        std::process::Command::new("sh").args(["-c", script]).status().unwrap();
        assert!(cpu_time_of_children() > (user, system));
        let mut other = std::process::Command::new("true").spawn().unwrap();
        let gone = i32::try_from(other.id()).unwrap();
        other.wait().unwrap();
        for pid in [gone, 0, -1, LARGEST_PID + 1, i32::MAX] {
            assert_eq!(cpu_time_of(pid), Nanos::ZERO, "{pid}");
        }
    }
}
