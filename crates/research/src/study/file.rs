//! The document of a study as the file `study.json` in its directory.

use std::fmt::Display;
use std::io::Write;
use std::path::Path;

use becalm_bundle::{BundleError, Draft};
use becalm_linux::file::read_regular;
use becalm_units::fault::{Context, Error, Result};

use super::document::{SCHEMA, StudyDoc};

/// The largest document, in bytes.
const LARGEST: u64 = 256 << 20;

/// The document's name in the directory.
pub const FILE: &str = "study.json";

/// Writes the document into the directory atomically, in place of an earlier one. Fails if it could not be read again, or cannot be
/// written.
pub fn store(study: &StudyDoc, folder: &Path) -> Result<()> {
    let path = folder.join(FILE);
    study.check().map_err(|why| wrong(&path, why))?;
    let mut text = serde_json::to_vec_pretty(study).map_err(|cause| wrong(&path, cause))?;
    text.push(b'\n');
    let mut draft = Draft::for_bundle(folder, path.clone())?;
    draft.write_all(&text).with_context(|| format!("cannot write {}", path.display()))?;
    Ok(draft.finish()?)
}

/// Reads the document of a study's directory. Fails if it is missing, of another version, or contradictory.
pub fn load(folder: &Path) -> Result<StudyDoc> {
    let path = folder.join(FILE);
    let text = read_regular(&path, LARGEST).with_context(|| format!("cannot read {}", path.display()))?;
    let value: serde_json::Value = serde_json::from_slice(&text).map_err(|cause| wrong(&path, cause))?;
    match value.get("schema").and_then(serde_json::Value::as_str) {
        Some(SCHEMA) => {}
        Some(found) => {
            return Err(BundleError::Version { path, found: found.to_owned(), known: SCHEMA }.into());
        }
        None => return Err(wrong(&path, "it names no schema")),
    }
    let doc: StudyDoc = serde_json::from_value(value).map_err(|cause| wrong(&path, cause))?;
    doc.check().map_err(|why| wrong(&path, why))?;
    Ok(doc)
}

/// The error for an invalid document.
fn wrong(path: &Path, why: impl Display) -> Error {
    Error::new(format!("cannot read {} as the document of a study: {why}", path.display()))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use becalm_model::node::MachineDoc;
    use becalm_units::CpuList;

    use super::*;
    use crate::study::{ConfigurationDoc, ConfigurationOutcome};

    fn recorded(runs: &[&str]) -> ConfigurationOutcome {
        ConfigurationOutcome::Recorded { runs: runs.iter().map(|run| (*run).to_owned()).collect(), failed: None }
    }

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
            machine: MachineDoc::default(),
            duration_ns: 1_000_000_000,
            turns: 2,
            configurations: vec![
                configuration("baseline", recorded(&["baseline-1.becalm", "baseline-2.becalm"])),
                configuration("priority", ConfigurationOutcome::Skipped { why: "needs root".to_owned() }),
                configuration("isolated", ConfigurationOutcome::Planned),
            ],
        }
    }

    #[test]
    fn what_is_stored_is_read_again() {
        let folder = tempfile::tempdir().unwrap();
        store(&doc(), folder.path()).unwrap();
        let mut later = doc();
        later.configurations[2].outcome = ConfigurationOutcome::Recorded {
            runs: vec!["isolated-1.becalm".to_owned()],
            failed: Some("full".to_owned()),
        };
        store(&later, folder.path()).unwrap();
        assert_eq!(load(folder.path()).unwrap(), later);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "no draft stays");
    }

    #[test]
    fn what_cannot_be_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let error = |text: &str| {
            fs::write(folder.path().join(FILE), text).unwrap();
            load(folder.path()).unwrap_err().to_string()
        };
        assert!(error("{").contains("study.json"));
        assert!(error("{}").contains("it names no schema"));
        assert!(error(r#"{"schema": "becalm.study/2"}"#).contains("becalm.study/2"));
        assert!(error(r#"{"schema": "becalm.study/1"}"#).contains("missing field"));
        let spoiled = |spoil: &dyn Fn(&mut StudyDoc)| {
            let mut doc = doc();
            spoil(&mut doc);
            assert!(store(&doc, folder.path()).is_err());
            error(&serde_json::to_string(&doc).unwrap())
        };
        assert!(spoiled(&|doc| doc.configurations[1].name = "baseline".into()).contains("appears twice"));
        for run in ["", "../elsewhere", "/etc", ".hidden"] {
            let outcome = recorded(&["baseline-1.becalm", run]);
            assert!(
                spoiled(&|doc| doc.configurations[0].outcome = outcome.clone()).contains("is not the name"),
                "{run}"
            );
        }
        let twice = recorded(&["isolated-1.becalm", "baseline-2.becalm"]);
        assert!(spoiled(&|doc| doc.configurations[2].outcome = twice.clone()).contains("is named twice"));
        assert!(spoiled(&|doc| doc.configurations[2].outcome = recorded(&[])).contains("no run of it"));
        assert!(spoiled(&|doc| doc.turns = 0).contains("0 turns"));
        fs::remove_file(folder.path().join(FILE)).unwrap();
        assert!(load(folder.path()).unwrap_err().to_string().contains("study.json"));
    }
}
