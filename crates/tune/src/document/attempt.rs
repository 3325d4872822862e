//! The outcome of applying or restoring a plan: one attempt for each knob.

use serde::Serialize;

use super::Change;

/// The outcome of changing or restoring a knob.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Attempt {
    /// The change that was made, refused or undone.
    pub change: Change,
    /// The trimmed value before.
    pub before: String,
    /// The trimmed value after; empty if the knob no longer exists.
    pub after: String,
    /// The outcome.
    pub outcome: Outcome,
    /// The reason; `None` if the outcome needs none.
    pub why: Option<String>,
}

impl Attempt {
    /// An attempt whose outcome needs no reason. Trims the values.
    pub fn new(change: Change, before: &str, after: &str, outcome: Outcome) -> Self {
        Self { before: before.trim().to_owned(), after: after.trim().to_owned(), change, outcome, why: None }
    }

    /// Adds the reason for the outcome.
    #[must_use]
    pub fn because(self, why: impl Into<String>) -> Self {
        Self { why: Some(why.into()), ..self }
    }
}

/// What came of the attempt to change one knob or to bring it back.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[derive(strum::IntoStaticStr, strum::VariantArray)]
#[strum(serialize_all = "snake_case")]
pub enum Outcome {
    /// It has the wanted value now.
    Changed,
    /// It had the wanted value already.
    Already,
    /// It is not there any more: a thread that ended, a device or a group that was removed.
    Gone,
    /// The kernel did not take the value; the knob is as it was.
    Refused,
    /// Another change that it needs was not made, so it was not tried.
    LeftOut,
    /// Its original value is back.
    Restored,
    /// It had its original value already.
    Unchanged,
    /// Others changed it meanwhile; it was left so.
    Foreign,
    /// Others changed it meanwhile, and it keeps their value, as was asked.
    Kept,
    /// The kernel did not take the original value.
    Failed,
}

impl Outcome {
    /// Whether the user should look at the knob.
    #[must_use]
    pub const fn needs_attention(self) -> bool {
        matches!(self, Self::Refused | Self::LeftOut | Self::Foreign | Self::Failed)
    }

    /// Whether a knob still has to be restored.
    #[must_use]
    pub const fn is_open(self) -> bool {
        matches!(self, Self::Foreign | Self::Failed)
    }
}

/// How far a machine's settings are changed or brought back.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    /// No setting is changed, and no journal tells of changes.
    Untuned,
    /// Settings are changed, and stay so until they are restored.
    Tuned,
    /// A command runs on changed settings, which are restored when it ends.
    Running,
    /// The process that was changing settings, or ran a command on them, died or is still at it.
    Unfinished,
    /// Everything is as it was.
    Restored,
    /// Some settings are still changed.
    PartlyRestored,
    /// The settings were those of an earlier boot of the machine, and are gone.
    EarlierBoot,
}
