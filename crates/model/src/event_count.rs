//! Hardware and kernel event counts of a measurement.

use serde::{Deserialize, Serialize};

/// The mode of a thread when its event was counted.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum CountedIn {
    /// In its own code.
    User,
    /// In the kernel, on its behalf.
    Kernel,
}

/// How often an event came, by a counter of the processor or of the kernel.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct EventCount {
    /// The event's name: `cycles`, `cache_misses`.
    pub event: String,
    /// The mode that was counted.
    pub space: CountedIn,
    /// How often while it was counted.
    pub value: u64,
    /// For how long it was to be counted.
    pub enabled_ns: i64,
    /// For how long it was: less where events take turns.
    pub running_ns: i64,
}

impl EventCount {
    /// Adds a count of the same event, from elsewhere or later.
    pub fn add(&mut self, other: &Self) {
        self.value = self.value.saturating_add(other.value);
        self.enabled_ns = self.enabled_ns.saturating_add(other.enabled_ns);
        self.running_ns = self.running_ns.saturating_add(other.running_ns);
    }

    /// Checks that the figures are plausible.
    pub fn check(&self) -> Result<(), String> {
        let Self { event, enabled_ns, running_ns, .. } = self;
        match (0..=LONGEST_NS).contains(enabled_ns) && (0..=*enabled_ns).contains(running_ns) {
            true => Ok(()),
            false => Err(format!("{event} cannot have been counted for {running_ns} of {enabled_ns} ns")),
        }
    }
}

/// A day: sums of the maximum number of such times do not overflow.
const LONGEST_NS: i64 = 86_400_000_000_000;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node::WorkCount;
    use becalm_units::CpuId;

    #[test]
    fn a_count_on_a_cpu_is_stored_as_one_row() {
        let count =
            EventCount { event: "cycles".to_owned(), space: CountedIn::User, value: 7, enabled_ns: 20, running_ns: 10 };
        let mut sum = count.clone();
        sum.add(&EventCount { value: u64::MAX, enabled_ns: 2, running_ns: 1, ..count.clone() });
        assert_eq!((sum.value, sum.enabled_ns, sum.running_ns), (u64::MAX, 22, 11));
        let row = WorkCount { cpu: CpuId::new(3), count };
        let text = r#"{"cpu":3,"event":"cycles","space":"user","value":7,"enabled_ns":20,"running_ns":10}"#;
        assert_eq!(serde_json::to_string(&row).unwrap(), text);
        assert_eq!(serde_json::from_str::<WorkCount>(text).unwrap(), row);
    }
}
