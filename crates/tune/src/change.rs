//! Changes: one knob, from what to what, why, at what risk, against which noise.

use serde::{Deserialize, Serialize};

use crate::{Family, Knob};

/// One change of a plan.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Change {
    /// The family that it belongs to.
    pub family: Family,
    /// What is changed.
    pub knob: Knob,
    /// The value when the plan was made, without white space around it.
    pub from: String,
    /// The value to be.
    pub to: String,
    /// What is tried, in this order, where the kernel does not take that value.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub or_else: Vec<String>,
    /// Whether it may be made only if the one before it in the plan, of the same family, was made.
    #[serde(default)]
    pub after: bool,
    /// Why.
    pub reason: String,
    /// What it may cost or break; empty if nothing.
    pub risk: String,
    /// The noise that it removes from the CPUs.
    pub removes: Vec<Noise>,
}

/// Sources of noise, as recordings name them.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Noise {
    /// The kind of the activity: `irq`, `softirq`, `workqueue`, `kthread`, `task`.
    pub kind: String,
    /// The name of the source; a final `*` stands for any ending.
    pub source: String,
}

impl Noise {
    /// Of a kind and name.
    pub fn new(kind: &str, source: impl Into<String>) -> Self {
        Self { kind: kind.to_owned(), source: source.into() }
    }

    /// Whether it is the source of a recording with this kind and name.
    #[must_use]
    pub fn matches(&self, kind: &str, source: &str) -> bool {
        let name = match self.source.strip_suffix('*') {
            Some(beginning) => source.starts_with(beginning),
            None => source == self.source,
        };
        name && kind == self.kind
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn noise_is_matched_by_kind_and_name() {
        let noise = Noise::new("task", "sshd");
        assert!(noise.matches("task", "sshd") && !noise.matches("kthread", "sshd") && !noise.matches("task", "sshd2"));
        let workers = Noise::new("workqueue", "kworker:*");
        assert!(workers.matches("workqueue", "kworker:vmstat_update") && !workers.matches("workqueue", "other"));
        assert!(Noise::new("task", "*").matches("task", "anything"));
    }
}
