//! The families of knobs that `--only` and `--skip` select.

use becalm_units::UnknownName;
use serde::{Deserialize, Serialize};

/// A family of knobs. A plan changes them in this order.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
#[derive(strum::Display, strum::EnumString, strum::IntoStaticStr, strum::VariantArray)]
#[strum(serialize_all = "kebab-case", parse_err_ty = UnknownName, parse_err_fn = unknown)]
pub enum Family {
    /// Which CPUs take a device's interrupts.
    Irq,
    /// The CPUs of the workers of unbound work queues.
    Workqueue,
    /// The CPUs of the softirqs of received packets (receive packet steering).
    Rps,
    /// Which CPUs the lockup detectors watch.
    Watchdog,
    /// How often each CPU folds its memory statistics.
    Vmstat,
    /// Whether timers of an idle CPU fire on a busy one.
    Timers,
    /// Background work of the kernel on memory: huge pages, merging, NUMA balancing.
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

fn unknown(text: &str) -> UnknownName {
    UnknownName::new::<Family>("family of knobs", text)
}

#[cfg(test)]
mod tests {
    use becalm_units::Named;

    use super::*;

    #[test]
    fn names_read_back_and_are_those_of_documents() {
        assert!(Family::ALL.is_sorted());
        for family in Family::ALL.iter().copied() {
            assert_eq!(family.to_string().parse(), Ok(family));
            assert_eq!(serde_json::to_value(family).unwrap(), family.name());
        }
        assert!("irqs".parse::<Family>().unwrap_err().to_string().contains("'irqs'"));
    }
}
