//! What only a reboot can give: parameters of the kernel's command line.

use serde::{Deserialize, Serialize};

/// A parameter that the kernel's command line lacks, or has with another value.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct BootParameter {
    /// Its name: `nohz_full`.
    pub name: String,
    /// The value that it should have; empty for a parameter without one.
    pub value: String,
    /// What the running kernel was booted with; nothing if the parameter is not there.
    pub from: Option<String>,
    /// What it gives that nothing can at run time.
    pub reason: String,
    /// What it may cost.
    pub risk: String,
}

impl BootParameter {
    /// As it stands on the command line.
    #[must_use]
    pub fn text(&self) -> String {
        if self.value.is_empty() { self.name.clone() } else { format!("{}={}", self.name, self.value) }
    }
}
