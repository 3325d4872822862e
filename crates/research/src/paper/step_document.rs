//! The stored result of a step: `steps/NAME.json` in the campaign's directory.

use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

/// The version of the document's schema that this program writes and reads.
pub const SCHEMA: &str = "becalm.paper-step/1";

/// A step that was run.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct StepDocument {
    /// The schema that the document follows: [`SCHEMA`], or the step is run again.
    pub schema: String,
    /// The command, quoted for a shell.
    pub command: String,
    /// The version of becalm that ran it.
    pub version: String,
    /// How long it took.
    pub seconds: f64,
    /// Its output with `--json`.
    #[cfg_attr(
        feature = "schemas",
        schemars(extend(
            "type" = "object",
            "properties" = { "schema": { "type": "string" } },
            "required" = ["schema"],
            "additionalProperties" = true
        ))
    )]
    pub document: Json,
}
