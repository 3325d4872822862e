//! Kernel command-line parameters, for settings that need a reboot.

use serde::{Deserialize, Serialize};

use super::text;

/// A parameter that the kernel's command line lacks, or has with another value.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct BootParameter {
    /// The parameter's name: `nohz_full`.
    pub name: String,
    /// The value that it should have; `None` for a parameter that takes no value.
    #[serde(with = "text")]
    #[cfg_attr(feature = "schemas", schemars(with = "String"))]
    pub value: Option<String>,
    /// The value in the running kernel's command line; `None` if it has none.
    pub from: Option<String>,
    /// Its effect, which no change at run time has.
    pub reason: String,
    /// Its possible cost; `None` if there is none.
    #[serde(with = "text")]
    #[cfg_attr(feature = "schemas", schemars(with = "String"))]
    pub risk: Option<String>,
}

impl BootParameter {
    /// The parameter as written on the command line.
    pub fn text(&self) -> String {
        self.value.as_ref().map_or_else(|| self.name.clone(), |value| format!("{}={value}", self.name))
    }
}
