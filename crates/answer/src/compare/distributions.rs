//! Distributions that were imported, beside each other or beside a recording.

use std::path::{Path, PathBuf};

use becalm_analyze::distribution::{Side, beside};
use becalm_analyze::fleet::digest_of;
use becalm_analyze::summary::Selection;
use becalm_bundle::{Contents, StoredNodes, distribution};
use becalm_report::BesideReport;

use crate::{AnswerError, Asker};

/// Whether any of these is a distribution, which stand beside each other by [`beside`](super::beside). What cannot be read is refused with its reason later.
pub fn are_distributions(paths: &[PathBuf]) -> bool {
    paths.iter().any(|path| matches!(Contents::read(path), Ok(Contents::Distribution)))
}

/// Shows the two beside each other.
pub(super) fn answer(
    paths: &[PathBuf],
    (select_a, select_b): (&Selection, &Selection),
    asker: &mut impl Asker,
) -> Result<(), AnswerError> {
    let [a, b] = paths else {
        return Err(AnswerError::Usage("distributions are compared by twos: becalm compare A B".to_owned()));
    };
    let beside = beside(read(a, select_a)?, read(b, select_b)?);
    let beside = beside.map_err(|error| AnswerError::Usage(error.to_string()))?;
    Ok(asker.show(&BesideReport { beside: &beside })?)
}

/// A distribution, or the lengths of a recording's detours.
fn read(path: &Path, selection: &Selection) -> Result<Side, AnswerError> {
    let node = selection.node.as_deref();
    let name = path.display().to_string();
    let mut side = match Contents::read(path)? {
        Contents::Distribution => {
            let (_, mut docs) = distribution::load(path, node)?;
            let doc = docs.pop().filter(|_| docs.is_empty());
            Side::of_distribution(&name, doc.ok_or_else(|| several(path))?)
        }
        _ => {
            let nodes = StoredNodes::open(path)?;
            let only = nodes.names().next().filter(|_| nodes.names().len() == 1);
            let node = node.or(only).ok_or_else(|| several(path))?;
            Side::of_digest(&name, &digest_of(nodes.read(node)?)?)
        }
    };
    if let Some(cpus) = &selection.cpus {
        side.series.retain(|series| series.cpu.is_some_and(|cpu| cpus.contains(cpu)));
    }
    Ok(side)
}

fn several(path: &Path) -> AnswerError {
    AnswerError::Usage(format!("{} holds several nodes; choose one with --node-a or --node-b", path.display()))
}
