//! What a campaign keeps of a step that it ran: `steps/NAME.json` in its folder.

use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

/// The version of the document's schema that this program writes and reads.
pub const SCHEMA: &str = "becalm.paper-step/1";

/// A step that was run.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct StepDocument {
    /// The schema that the document follows: [`SCHEMA`], or the step is run again.
    pub schema: String,
    /// The command, as a shell takes it.
    pub command: String,
    /// The version of becalm that ran it.
    pub version: String,
    /// How long it took.
    pub seconds: f64,
    /// What it printed with `--json`.
    pub document: Json,
}
