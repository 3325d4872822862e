//! The document of a study, `study.json` in its directory: the configurations of a machine that were recorded in turns, and the bundles of
//! their recordings in the same directory.
//!
//! The results are not stored: they are computed from the recordings each time.

use std::collections::HashSet;

use becalm_model::node::MachineDoc;
use becalm_units::CpuList;
use serde::{Deserialize, Serialize};

/// The version of the document's schema that this program writes and reads.
pub const SCHEMA: &str = "becalm.study/1";

/// A study of configurations of one machine.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct StudyDoc {
    /// The schema that the document follows: [`SCHEMA`], or it is refused.
    pub schema: String,
    /// Who wrote it: `becalm 0.1.0`.
    pub program: String,
    /// The name of the host that was studied.
    pub node: String,
    /// When it started, as RFC 3339 in UTC.
    pub begun: jiff::Timestamp,
    /// The machine that was studied.
    pub machine: MachineDoc,
    /// How long each configuration was to be recorded, all turns together, in nanoseconds.
    pub duration_ns: i64,
    /// In how many turns; at least 1.
    pub turns: u32,
    /// The configurations, in their order.
    pub configurations: Vec<ConfigurationDoc>,
}

/// One way to set up the machine, and the recordings that were made with it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct ConfigurationDoc {
    /// Its name: `baseline`, `isolated`.
    pub name: String,
    /// Its description, in a few words.
    pub what: String,
    /// The CPUs that were measured; none where it cannot be had.
    pub cpus: CpuList,
    /// The CPUs that the baseline uses and on which no part of the job runs here.
    pub idle: CpuList,
    /// The scheduling class of the measuring threads: `other`, `rr:80`.
    pub sched: String,
    /// The command that records its first turn, word by word; those of the others write other bundles.
    pub command: Vec<String>,
    /// What became of it.
    pub outcome: ConfigurationOutcome,
}

/// What became of a configuration.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(tag = "is", rename_all = "snake_case")]
pub enum ConfigurationOutcome {
    /// It was not reached yet.
    Planned,
    /// It was recorded in all turns that were reached.
    Recorded {
        /// The names of the recordings in the study's directory, turn by turn; at least one.
        runs: Vec<String>,
        /// Why it was not recorded in any further turn; `None` unless a recording failed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        failed: Option<String>,
    },
    /// This machine cannot do it.
    Skipped {
        /// What this machine lacks.
        why: String,
    },
}

/// The name of the configuration that the others are compared with.
pub const BASELINE: &str = "baseline";

impl ConfigurationDoc {
    /// True if the others are compared with it.
    pub fn is_baseline(&self) -> bool {
        self.name == BASELINE
    }

    /// The names of its recordings, turn by turn; empty if it was skipped or not reached.
    pub fn runs(&self) -> &[String] {
        match &self.outcome {
            ConfigurationOutcome::Recorded { runs, .. } => runs,
            ConfigurationOutcome::Planned | ConfigurationOutcome::Skipped { .. } => &[],
        }
    }
}

impl StudyDoc {
    /// Checks what the types do not ensure. Fails with the first problem, in words.
    pub fn check(&self) -> Result<(), String> {
        if self.schema != SCHEMA {
            return Err(format!("its schema is '{}' and not '{SCHEMA}'", self.schema));
        }
        if self.turns == 0 {
            return Err("it has 0 turns".to_owned());
        }
        let (mut names, mut recordings) = (HashSet::new(), HashSet::new());
        for configuration in &self.configurations {
            let name = &configuration.name;
            if !names.insert(name) {
                return Err(format!("the configuration '{name}' appears twice"));
            }
            if matches!(&configuration.outcome, ConfigurationOutcome::Recorded { runs, .. } if runs.is_empty()) {
                return Err(format!("'{name}' was recorded, but no run of it is named"));
            }
            for run in configuration.runs() {
                // Only files in the same directory are opened, wherever the document came from.
                if run.is_empty() || run.starts_with('.') || run.contains('/') {
                    return Err(format!(
                        "the run '{run}' of '{name}' is not the name of a recording in the study's directory"
                    ));
                }
                // A run compared with itself would show no difference, and a repeated one would make turns look alike.
                if !recordings.insert(run) {
                    return Err(format!("the run '{run}' of '{name}' is named twice"));
                }
            }
        }
        Ok(())
    }
}
