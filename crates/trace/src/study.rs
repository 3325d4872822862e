//! The document of a study, `study.json` in its folder: which configurations of a machine were recorded one after another, and in
//! which bundles beside it their recordings are.
//!
//! What the recordings come to is not stored: it is computed again from them.

use std::collections::HashSet;
use std::fs;
use std::io::Write;
use std::path::Path;

use becalm_units::CpuList;
use serde::{Deserialize, Serialize};

use crate::bundle::BundleError;
use crate::bundle::draft::Draft;
use crate::node::Machine;

/// The version of the document's schema that this program writes and reads.
pub const SCHEMA: &str = "becalm.study/1";

/// The document's name in the folder.
pub const FILE: &str = "study.json";

/// A study of configurations of one machine.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct StudyDoc {
    /// Always [`SCHEMA`].
    pub schema: String,
    /// Who wrote it: `becalm 0.1.0`.
    pub program: String,
    /// The host's name.
    pub node: String,
    /// When it began, as RFC 3339 in UTC.
    pub begun: jiff::Timestamp,
    /// The machine.
    pub machine: Machine,
    /// How long each configuration was to be recorded.
    pub duration_ns: i64,
    /// The configurations, in their order.
    pub configurations: Vec<ConfigurationDoc>,
}

/// A configuration.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ConfigurationDoc {
    /// Its name: `baseline`, `isolated`.
    pub name: String,
    /// What it is, in a few words.
    pub what: String,
    /// The CPUs that were measured; none where it cannot be had.
    pub cpus: CpuList,
    /// The CPUs that nothing of the job runs on, of those that the baseline uses.
    pub idle: CpuList,
    /// The scheduling class of the measuring threads: `other`, `rr:80`.
    pub sched: String,
    /// The command that records it, word by word.
    pub command: Vec<String>,
    /// How it ended.
    pub outcome: Outcome,
}

/// What became of a configuration.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(tag = "is", rename_all = "snake_case")]
pub enum Outcome {
    /// It was not reached yet.
    Planned,
    /// It was recorded.
    Recorded {
        /// The bundle's name in the study's folder.
        run: String,
    },
    /// This machine cannot do it.
    Skipped {
        /// Why not.
        why: String,
    },
}

impl StudyDoc {
    /// Writes the document into the folder in one go, in place of an earlier one.
    ///
    /// # Errors
    /// If it holds what cannot be read again, or cannot be written.
    pub fn store(&self, folder: &Path) -> Result<(), BundleError> {
        let path = folder.join(FILE);
        let wrong = |why| BundleError::Study { path: path.clone(), why };
        self.check().map_err(wrong)?;
        let mut text = serde_json::to_vec_pretty(self).map_err(|cause| wrong(cause.to_string()))?;
        text.push(b'\n');
        let draft = Draft::new(path.clone())?;
        draft.file().write_all(&text).map_err(BundleError::io("write", &path))?;
        draft.sync()?;
        draft.publish()
    }

    /// Reads the document of a study's folder.
    ///
    /// # Errors
    /// If it is not there, is of another version, or says what cannot be.
    pub fn load(folder: &Path) -> Result<Self, BundleError> {
        let path = folder.join(FILE);
        let text = fs::read(&path).map_err(BundleError::io("read", &path))?;
        let wrong = |why| BundleError::Study { path: path.clone(), why };
        let value: serde_json::Value = serde_json::from_slice(&text).map_err(|cause| wrong(cause.to_string()))?;
        match value.get("schema").and_then(serde_json::Value::as_str) {
            Some(SCHEMA) => {}
            Some(found) => return Err(BundleError::Version { path, found: found.to_owned(), known: SCHEMA }),
            None => return Err(wrong("it names no schema".to_owned())),
        }
        let doc: Self = serde_json::from_value(value).map_err(|cause| wrong(cause.to_string()))?;
        doc.check().map_err(wrong)?;
        Ok(doc)
    }

    fn check(&self) -> Result<(), String> {
        if self.schema != SCHEMA {
            return Err(format!("its schema is '{}'", self.schema));
        }
        let mut names = HashSet::new();
        for configuration in &self.configurations {
            let name = &configuration.name;
            if !names.insert(name) {
                return Err(format!("'{name}' stands there twice"));
            }
            // What is opened lies beside the document, wherever that came from.
            if let Outcome::Recorded { run } = &configuration.outcome
                && (run.is_empty() || run.starts_with('.') || run.contains('/'))
            {
                return Err(format!("'{run}' of '{name}' is no name in its folder"));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn doc() -> StudyDoc {
        let configuration = |name: &str, outcome| ConfigurationDoc {
            name: name.to_owned(),
            what: "as it is".to_owned(),
            cpus: "0-3".parse().unwrap(),
            idle: CpuList::default(),
            sched: "other".to_owned(),
            command: vec!["becalm".to_owned(), "record".to_owned()],
            outcome,
        };
        StudyDoc {
            schema: SCHEMA.to_owned(),
            program: "becalm 0.1.0".to_owned(),
            node: "vm".to_owned(),
            begun: "2026-01-01T00:00:00Z".parse().unwrap(),
            machine: Machine::default(),
            duration_ns: 1_000_000_000,
            configurations: vec![
                configuration("baseline", Outcome::Recorded { run: "baseline.becalm".to_owned() }),
                configuration("priority", Outcome::Skipped { why: "needs root".to_owned() }),
                configuration("isolated", Outcome::Planned),
            ],
        }
    }

    #[test]
    fn what_is_stored_is_read_again() {
        let folder = tempfile::tempdir().unwrap();
        doc().store(folder.path()).unwrap();
        let mut later = doc();
        later.configurations[2].outcome = Outcome::Recorded { run: "isolated.becalm".to_owned() };
        later.store(folder.path()).unwrap();
        assert_eq!(StudyDoc::load(folder.path()).unwrap(), later);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "no draft stays");
    }

    #[test]
    fn what_cannot_be_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let error = |text: &str| {
            fs::write(folder.path().join(FILE), text).unwrap();
            StudyDoc::load(folder.path()).unwrap_err().to_string()
        };
        assert!(error("{").contains("study.json"));
        assert!(error("{}").contains("it names no schema"));
        assert!(error(r#"{"schema": "becalm.study/2"}"#).contains("becalm.study/2"));
        assert!(error(r#"{"schema": "becalm.study/1"}"#).contains("missing field"));
        let spoiled = |spoil: &dyn Fn(&mut StudyDoc)| {
            let mut doc = doc();
            spoil(&mut doc);
            assert!(doc.store(folder.path()).is_err());
            error(&serde_json::to_string(&doc).unwrap())
        };
        assert!(spoiled(&|doc| doc.configurations[1].name = "baseline".into()).contains("stands there twice"));
        for run in ["", "../elsewhere", "/etc", ".hidden"] {
            let outcome = Outcome::Recorded { run: run.to_owned() };
            assert!(spoiled(&|doc| doc.configurations[0].outcome = outcome.clone()).contains("is no name"), "{run}");
        }
        fs::remove_file(folder.path().join(FILE)).unwrap();
        assert!(StudyDoc::load(folder.path()).unwrap_err().to_string().contains("study.json"));
    }
}
