//! Changes: one knob, from what to what, why, at what risk, against which noise.

use becalm_model::remedy::NoiseSource;
use becalm_model::tune::Family;
use serde::{Deserialize, Serialize};

use super::{Knob, text};

/// One change of a plan.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct Change {
    /// The family that the knob belongs to.
    pub family: Family,
    /// The knob that gets the value.
    pub knob: Knob,
    /// The value when the plan was made, without white space around it.
    pub from: String,
    /// The value that it is to have.
    pub to: String,
    /// Values that are tried, in this order, where the kernel does not take `to`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub or_else: Vec<String>,
    /// Whether it may be made only if the change before it in the plan, of the same family, was made.
    #[serde(default)]
    pub after: bool,
    /// Why the change is made.
    pub reason: String,
    /// What it may cost or break; `None` if nothing.
    #[serde(with = "text")]
    #[cfg_attr(feature = "schemas", schemars(with = "String"))]
    pub risk: Option<String>,
    /// The noise that it removes from the CPUs.
    pub removes: Vec<NoiseSource>,
}
