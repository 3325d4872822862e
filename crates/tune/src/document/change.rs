//! Changes: the knob, its values before and after, the reason, the risk, and the noise that it removes.

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
    /// The trimmed value when the plan was made.
    pub from: String,
    /// The wanted value.
    pub to: String,
    /// Alternatives, tried in order if the kernel refuses `to`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub or_else: Vec<String>,
    /// Whether it requires the previous change in the plan, of the same family.
    #[serde(default)]
    pub after: bool,
    /// The reason for the change.
    pub reason: String,
    /// The cost or risk; `None` if there is none.
    #[serde(with = "text")]
    #[cfg_attr(feature = "schemas", schemars(with = "String"))]
    pub risk: Option<String>,
    /// The noise that it removes from the CPUs.
    pub removes: Vec<NoiseSource>,
}
