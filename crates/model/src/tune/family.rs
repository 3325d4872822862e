//! The families of knobs, by which `--only` and `--skip` choose.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A family of knobs. The order is that in which a plan changes them.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Family {
    /// Which CPUs take a device's interrupts.
    Irq,
    /// Where the workers of unbound work queues run.
    Workqueue,
    /// Where the softirqs of received packets run (receive packet steering).
    Rps,
    /// Which CPUs the lockup detectors watch.
    Watchdog,
    /// How often each CPU folds its memory statistics.
    Vmstat,
    /// Whether timers of an idle CPU fire on a busy one.
    Timers,
    /// What the kernel does to memory in the background: huge pages, merging, NUMA balancing.
    Memory,
    /// At which frequency the CPUs run.
    Frequency,
    /// How deep idle CPUs sleep.
    Idle,
    /// How much time the kernel keeps from real-time threads.
    Throttling,
    /// On which CPUs tasks and kernel threads may run.
    Affinity,
    /// The other hardware threads of the CPUs' cores.
    Smt,
    /// A cpuset of their own, out of the scheduler's balancing.
    Cpuset,
}

impl Family {
    /// All of them, in the order of a plan.
    pub const ALL: [Self; 13] = [
        Self::Irq,
        Self::Workqueue,
        Self::Rps,
        Self::Watchdog,
        Self::Vmstat,
        Self::Timers,
        Self::Memory,
        Self::Frequency,
        Self::Idle,
        Self::Throttling,
        Self::Affinity,
        Self::Smt,
        Self::Cpuset,
    ];

    /// The name by which it is chosen, and in documents.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Irq => "irq",
            Self::Workqueue => "workqueue",
            Self::Rps => "rps",
            Self::Watchdog => "watchdog",
            Self::Vmstat => "vmstat",
            Self::Timers => "timers",
            Self::Memory => "memory",
            Self::Frequency => "frequency",
            Self::Idle => "idle",
            Self::Throttling => "throttling",
            Self::Affinity => "affinity",
            Self::Smt => "smt",
            Self::Cpuset => "cpuset",
        }
    }
}

impl fmt::Display for Family {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A name that no family has.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is no family of knobs; there are {known}", known = Family::ALL.map(Family::name).join(", "))]
pub struct UnknownFamily(String);

impl FromStr for Family {
    type Err = UnknownFamily;

    fn from_str(text: &str) -> Result<Self, UnknownFamily> {
        Self::ALL.into_iter().find(|family| family.name() == text).ok_or_else(|| UnknownFamily(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_read_back_and_are_those_of_documents() {
        assert!(Family::ALL.is_sorted());
        for family in Family::ALL {
            assert_eq!(family.to_string().parse(), Ok(family));
            assert_eq!(serde_json::to_value(family).unwrap(), family.name());
        }
        assert!("irqs".parse::<Family>().unwrap_err().to_string().contains("'irqs'"));
    }
}
