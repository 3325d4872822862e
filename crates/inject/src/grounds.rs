//! Facts about the CPUs that need no measurement: which are of one kind, and how much the kernel withholds from real-time threads.

use std::collections::BTreeMap;
use std::path::Path;

use becalm_linux::procfs::kernel::RtThrottling;
use becalm_linux::realtime::{FairServer, RealTimeLimits};
use becalm_linux::sysfs::cpu::CpuKind;
use becalm_units::{CpuId, Nanos};

use crate::InjectError;
use crate::error::RealTimeLimit;

/// Facts about the CPUs.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Grounds {
    kinds: BTreeMap<CpuId, CpuKind>,
    limits: RealTimeLimits,
}

impl Grounds {
    /// Reads the facts about these CPUs.
    pub fn read(root: &Path, cpus: impl IntoIterator<Item = CpuId>) -> Self {
        let kinds: BTreeMap<CpuId, CpuKind> = cpus.into_iter().map(|cpu| (cpu, CpuKind::read(root, cpu))).collect();
        let limits = RealTimeLimits::read(root, kinds.keys().copied());
        Self { kinds, limits }
    }

    /// The kind of a CPU; `None` if nothing is known, so it is like no other.
    pub(crate) fn kind(&self, cpu: CpuId) -> Option<&CpuKind> {
        self.kinds.get(&cpu)
    }

    /// The fair server of a CPU, if it takes time from real-time threads.
    pub(crate) fn fair_server(&self, cpu: CpuId) -> Option<FairServer> {
        self.limits.fair_servers.get(&cpu).copied().filter(|server| server.runtime > Nanos::ZERO)
    }

    /// Checks that the kernel lets a real-time thread run on a CPU for `longest` at a time, and for the share `ratio` of the time. Fails if one of
    /// the kernel's limits forbids it.
    pub(crate) fn allows(&self, cpu: CpuId, longest: Option<Nanos>, ratio: f64) -> Result<(), InjectError> {
        let refused = |runtime: Nanos, period: Nanos, limit: RealTimeLimit| {
            let asked = match longest {
                Some(longest) if longest > runtime => format!("a detour of {longest}"),
                _ if ratio > runtime.as_secs_f64() / period.as_secs_f64() => {
                    format!("{:.1}% of the time", ratio * 100.0)
                }
                _ => return Ok(()),
            };
            Err(InjectError::Throttled { runtime, period, asked, limit })
        };
        if let Some(RtThrottling { runtime: Some(runtime), period }) = self.limits.throttling {
            refused(runtime, period, RealTimeLimit::Throttling)?;
        }
        match self.fair_server(cpu) {
            Some(server) => {
                refused(server.period - server.runtime, server.period, RealTimeLimit::FairServer(cpu, server))
            }
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grounds(throttling_us: i64, server_ms: Option<i64>) -> Grounds {
        let throttling = RtThrottling {
            runtime: (throttling_us >= 0).then(|| Nanos::from_micros(throttling_us)),
            period: Nanos::from_secs(1),
        };
        let server = |ms| FairServer { runtime: Nanos::from_millis(ms), period: Nanos::from_secs(1), assumed: false };
        let fair_servers = server_ms.map(|ms| (CpuId::new(1), server(ms))).into_iter().collect();
        Grounds { kinds: BTreeMap::new(), limits: RealTimeLimits { throttling: Some(throttling), fair_servers } }
    }

    fn refusal(grounds: &Grounds, longest_ms: i64, ratio: f64) -> Option<String> {
        let longest = Some(Nanos::from_millis(longest_ms));
        grounds.allows(CpuId::new(1), longest, ratio).err().map(|error| error.to_string())
    }

    #[test]
    fn each_of_the_limits_refuses_what_it_would_not_let_happen() {
        let none = grounds(-1, None);
        assert_eq!(refusal(&none, 5_000, 0.99), None);
        let throttled = grounds(950_000, None);
        assert_eq!(refusal(&throttled, 900, 0.9), None);
        assert!(refusal(&throttled, 960, 0.5).unwrap().contains("sysctl kernel.sched_rt_runtime_us=-1"));
        assert!(refusal(&throttled, 10, 0.96).unwrap().contains("96.0% of the time"));
    }

    /// It takes its share whatever `sched_rt_runtime_us` is; lifting that limit would not help.
    #[test]
    fn a_fair_server_refuses_where_throttling_is_off() {
        let served = grounds(-1, Some(50));
        assert_eq!(refusal(&served, 940, 0.94), None);
        let why = refusal(&served, 960, 0.5).unwrap();
        assert!(why.contains("a detour of 960ms") && why.contains("950ms of every 1s"), "{why}");
        assert!(
            why.contains("echo 0 > /sys/kernel/debug/sched/fair_server/cpu1/runtime") && !why.contains("sysctl"),
            "{why}"
        );
        assert_eq!(refusal(&grounds(-1, Some(0)), 5_000, 0.99), None);
        // Nothing is known about another CPU.
        assert!(served.allows(CpuId::new(2), Some(Nanos::from_secs(5)), 0.99).is_ok());
    }
}
