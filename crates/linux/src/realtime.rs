//! The time that the kernel withholds from real-time threads: the throttling of `sched_rt_runtime_us`, and since Linux 6.12 the fair server of each
//! CPU, a deadline task that runs ordinary threads once others have kept them waiting for most of a period.
//!
//! The fair server runs before every real-time thread, whatever its priority, and ignores `sched_rt_runtime_us`: even if that is -1, the server takes
//! its share. Kernels with fair servers throttle only if built with `CONFIG_RT_GROUP_SCHED` (5f6bd380c7bd, "sched/rt: Remove default bandwidth
//! control").

use std::collections::BTreeMap;
use std::path::Path;

use becalm_units::{CpuId, Nanos};

use crate::file::{FileError, value};
use crate::procfs::config::KernelConfig;
use crate::procfs::kernel::{RtThrottling, release, rt_throttling};

/// The kernel's default for a fair server: 50 ms of every second (`kernel/sched/deadline.c`, `fair_server_init`).
const RUNTIME: Nanos = Nanos::from_millis(50);
const PERIOD: Nanos = Nanos::from_secs(1);
/// The first release with fair servers.
const SINCE: (u32, u32) = (6, 12);

/// How long per period a CPU's fair server takes from real-time threads while ordinary threads wait.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FairServer {
    /// The time that it may take; 0 if it was disabled.
    pub runtime: Nanos,
    /// The time after which it may take as much again.
    pub period: Nanos,
    /// Whether these are the defaults because debugfs is not mounted or not readable.
    pub assumed: bool,
}

impl FairServer {
    /// The fair server of a CPU; `None` on a kernel without them.
    pub fn read(root: &Path, cpu: CpuId) -> Option<Self> {
        let folder = format!("sys/kernel/debug/sched/fair_server/cpu{cpu}");
        let file = |name: &str| -> Result<Nanos, FileError> {
            let ns: u64 = value(root, format!("{folder}/{name}"), "the share of a CPU's fair server")?;
            Ok(Nanos::new(ns.min(i64::MAX as u64) as i64))
        };
        if let (Ok(runtime), Ok(period)) = (file("runtime"), file("period")) {
            return Some(Self { runtime, period, assumed: false });
        }
        (has_fair_servers(root) == Some(true)).then_some(Self { runtime: RUNTIME, period: PERIOD, assumed: true })
    }
}

/// Whether this kernel's CPUs have fair servers, by its release; `None` if that cannot be read.
pub fn has_fair_servers(root: &Path) -> Option<bool> {
    numbers(&release(root).ok()?).map(|numbers| numbers >= SINCE)
}

/// Whether `sched_rt_runtime_us` applies to real-time threads; `None` if the kernel's configuration is unknown.
pub fn throttles(root: &Path) -> Option<bool> {
    if has_fair_servers(root) == Some(false) {
        return Some(true);
    }
    KernelConfig::read(root).ok().flatten().map(|config| config.has("RT_GROUP_SCHED"))
}

/// The first two numbers of a release: 6 and 18 of `6.18.44-fc`.
fn numbers(release: &str) -> Option<(u32, u32)> {
    let mut parts = release.split(|c: char| !c.is_ascii_digit());
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}

/// The limits of real-time threads on some CPUs.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct RealTimeLimits {
    /// The throttling; `None` if it cannot be read, or if this kernel does not throttle.
    pub throttling: Option<RtThrottling>,
    /// The fair servers of the CPUs that have one.
    pub fair_servers: BTreeMap<CpuId, FairServer>,
}

impl RealTimeLimits {
    /// Reads the limits on these CPUs.
    pub fn read(root: &Path, cpus: impl IntoIterator<Item = CpuId>) -> Self {
        let server = |cpu| Some((cpu, FairServer::read(root, cpu)?));
        let throttling = rt_throttling(root).ok().filter(|_| throttles(root) != Some(false));
        Self { throttling, fair_servers: cpus.into_iter().filter_map(server).collect() }
    }

    /// The limits on a real-time thread that never sleeps, in the worst case: of the fair servers, the one that takes the most.
    pub fn held_up(&self) -> Vec<HeldUp> {
        let throttling = self
            .throttling
            .and_then(|limit| Some(HeldUp { holder: Holder::Throttling, time: limit.stolen()?, period: limit.period }));
        let servers = self.fair_servers.iter().filter(|(_, server)| server.runtime > Nanos::ZERO);
        let server = servers.min_by_key(|(_, server)| std::cmp::Reverse(server.runtime));
        let server = server.map(|(cpu, server)| HeldUp {
            holder: Holder::FairServer(*cpu),
            time: server.runtime,
            period: server.period,
        });
        throttling.into_iter().chain(server).collect()
    }
}

/// How long per period a real-time thread may be kept from its CPU, and by what.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HeldUp {
    /// The reason.
    pub holder: Holder,
    /// The time without the CPU.
    pub time: Nanos,
    /// The length of the period.
    pub period: Nanos,
}

/// Reasons why real-time threads lose their CPU.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Holder {
    /// The limit `sched_rt_runtime_us`: the CPU idles, or runs other threads.
    Throttling,
    /// The fair server of a CPU, if ordinary threads wait.
    FairServer(CpuId),
}

impl Holder {
    /// A clause that explains how to lift it.
    #[must_use]
    pub fn lift(self) -> String {
        match self {
            Self::Throttling => "sysctl kernel.sched_rt_runtime_us=-1".to_owned(),
            Self::FairServer(cpu) => format!("echo 0 > /sys/kernel/debug/sched/fair_server/cpu{cpu}/runtime"),
        }
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
        // A disabled one keeps no thread from its CPU.
        let held_up = HeldUp { holder: Holder::FairServer(CpuId::new(4)), time: RUNTIME, period: PERIOD };
        assert_eq!(limits.held_up(), [held_up]);
        assert_eq!(held_up.holder.lift(), "echo 0 > /sys/kernel/debug/sched/fair_server/cpu4/runtime");
    }

    /// Measured on Linux 6.18 with `CONFIG_RT_GROUP_SCHED`: a FIFO thread loses 210 ms of 4 s to a waiting thread with 950000, 203 ms with -1.
    #[test]
    fn throttling_holds_where_there_are_no_fair_servers_or_groups_of_real_time_threads() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path();
        write(root, "proc/sys/kernel/sched_rt_runtime_us", "950000\n");
        write(root, "proc/sys/kernel/sched_rt_period_us", "1000000\n");
        let held_up_by = |release: &str, config: Option<&str>| {
            write(root, "proc/sys/kernel/osrelease", release);
            let file = format!("lib/modules/{release}/config");
            match config {
                Some(text) => write(root, &file, text),
                None => _ = std::fs::remove_file(root.join(&file)),
            }
            let limits = RealTimeLimits::read(root, [CpuId::new(1)]);
            limits.held_up().into_iter().map(|held_up| held_up.holder).collect::<Vec<Holder>>()
        };
        let server = Holder::FairServer(CpuId::new(1));
        assert_eq!(held_up_by("6.1.0", None), [Holder::Throttling]);
        assert_eq!(held_up_by("6.18.1", Some("CONFIG_RT_GROUP_SCHED=y\n")), [Holder::Throttling, server]);
        assert_eq!(held_up_by("6.18.1", Some("CONFIG_HZ=250\n")), [server]);
        assert_eq!(held_up_by("6.18.1", None), [Holder::Throttling, server], "where nothing is known, either may");
        write(root, "proc/sys/kernel/sched_rt_runtime_us", "-1\n");
        assert_eq!(held_up_by("6.18.1", Some("CONFIG_RT_GROUP_SCHED=y\n")), [server]);
        assert_eq!(held_up_by("6.1.0", None), []);
    }
}
