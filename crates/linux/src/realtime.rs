//! What the kernel keeps from real-time threads: the throttling of `sched_rt_runtime_us`, and since Linux 6.12 the fair server of each
//! CPU, a deadline task that runs ordinary threads once others have kept them waiting for most of a period.
//!
//! The fair server comes before every real-time thread, whatever its priority, and knows nothing of `sched_rt_runtime_us`: where
//! that is -1, the server still takes its share.

use std::collections::BTreeMap;
use std::path::Path;

use becalm_units::{CpuId, Nanos};

use crate::file::{FileError, value};
use crate::procfs::kernel::{RtThrottling, release, rt_throttling};

/// What the kernel starts a fair server with: 50 ms of every second (`kernel/sched/deadline.c`, `fair_server_init`).
const RUNTIME: Nanos = Nanos::from_millis(50);
const PERIOD: Nanos = Nanos::from_secs(1);
/// The first release with fair servers.
const SINCE: (u32, u32) = (6, 12);

/// How much of each period a CPU's fair server takes from real-time threads, where ordinary threads wait for as long.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FairServer {
    /// The time that it may take; 0 if it was switched off.
    pub runtime: Nanos,
    /// The time after which it may take as much again.
    pub period: Nanos,
    /// Whether the kernel does not tell, as debugfs is not mounted or not to be read, and these are what it starts with.
    pub assumed: bool,
}

impl FairServer {
    /// That of a CPU; `None` on a kernel that has none.
    #[must_use]
    pub fn read(root: &Path, cpu: CpuId) -> Option<Self> {
        let folder = format!("sys/kernel/debug/sched/fair_server/cpu{cpu}");
        let file = |name: &str| -> Result<Nanos, FileError> {
            let ns: u64 = value(root, format!("{folder}/{name}"), "the share of a CPU's fair server")?;
            Ok(Nanos::new(ns.min(i64::MAX as u64) as i64))
        };
        if let (Ok(runtime), Ok(period)) = (file("runtime"), file("period")) {
            return Some(Self { runtime, period, assumed: false });
        }
        let has_one = release(root).ok().and_then(|release| numbers(&release)).is_some_and(|numbers| numbers >= SINCE);
        has_one.then_some(Self { runtime: RUNTIME, period: PERIOD, assumed: true })
    }
}

/// The first two numbers of a release: 6 and 18 of `6.18.44-fc`.
fn numbers(release: &str) -> Option<(u32, u32)> {
    let mut parts = release.split(|c: char| !c.is_ascii_digit());
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}

/// The limits of real-time threads on some CPUs.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct RealTimeLimits {
    /// The throttling; `None` if it cannot be read.
    pub throttling: Option<RtThrottling>,
    /// The fair servers of the CPUs that have one.
    pub fair_servers: BTreeMap<CpuId, FairServer>,
}

impl RealTimeLimits {
    /// Those of these CPUs.
    #[must_use]
    pub fn read(root: &Path, cpus: impl IntoIterator<Item = CpuId>) -> Self {
        let server = |cpu| Some((cpu, FairServer::read(root, cpu)?));
        Self { throttling: rt_throttling(root).ok(), fair_servers: cpus.into_iter().filter_map(server).collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(root: &Path, name: &str, text: &str) {
        let path = root.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    #[test]
    fn a_fair_server_is_what_debugfs_says_or_what_the_kernel_starts_with() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path();
        let cpu = CpuId::new(3);
        assert_eq!(FairServer::read(root, cpu), None);
        for (release, has_one) in [("5.10.0-28-amd64", false), ("6.11.9", false), ("6.12.0", true), ("7.0.0-rc1", true)]
        {
            write(root, "proc/sys/kernel/osrelease", release);
            let assumed = FairServer { runtime: RUNTIME, period: PERIOD, assumed: true };
            assert_eq!(FairServer::read(root, cpu), has_one.then_some(assumed), "{release}");
        }
        write(root, "sys/kernel/debug/sched/fair_server/cpu3/runtime", "0\n");
        write(root, "sys/kernel/debug/sched/fair_server/cpu3/period", "2000000000\n");
        let off = FairServer { runtime: Nanos::ZERO, period: Nanos::from_secs(2), assumed: false };
        assert_eq!(FairServer::read(root, cpu), Some(off));
        let limits = RealTimeLimits::read(root, [cpu, CpuId::new(4)]);
        assert_eq!(limits.fair_servers.len(), 2);
        assert!(limits.fair_servers[&CpuId::new(4)].assumed && limits.throttling.is_none());
    }
}
