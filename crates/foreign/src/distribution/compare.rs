//! Compares imported distributions with each other or with a recording.

use std::path::{Path, PathBuf};

use becalm_analyze::condense::digest;
use becalm_analyze::summary::Selection;
use becalm_answer::Asker;
use becalm_bundle::{Contents, StoredNode, StoredNodes, load_documents};
use becalm_units::Nanos;
use becalm_units::fault::{self, UsageError, Wording};

use super::{Side, SideBySideReport, side_by_side, times_of};

/// Shows distributions, or distributions and recordings, next to each other: the selected node and CPUs of each, in lengths from `least`
/// on. Fails if a run cannot be read or is given twice, their quantities differ, or the answer cannot be shown.
pub fn compare(
    sides: [&[PathBuf]; 2],
    selections: [&Selection; 2],
    least: Nanos,
    asker: &mut impl Asker,
) -> fault::Result<()> {
    let read = |side: usize| -> fault::Result<Vec<(Side, Option<String>)>> {
        sides[side].iter().map(|path| read(path, selections[side])).collect()
    };
    let (read_a, read_b) = (read(0)?, read(1)?);
    refuse_repeated(&sides.concat())?;
    let nodes = [&read_a, &read_b].map(|side| side.iter().map(|(_, node)| node.clone()).collect::<Vec<_>>());
    let [a, b] = [read_a, read_b].map(|side| side.into_iter().map(|(side, _)| side).collect::<Vec<_>>());
    let mut times = |side: usize, run: usize, cpu, cut_ns| -> fault::Result<_> {
        let Some(node) = &nodes[side][run] else { return Ok(None) };
        match StoredNodes::open(&sides[side][run])?.read(node)? {
            StoredNode::Full(bundle) => Ok(times_of(&bundle, node, cpu, cut_ns)?),
            StoredNode::Summary(_) => Ok(None),
        }
    };
    let sides = side_by_side(&a, &b, least.get(), &mut times)?;
    asker.show(&SideBySideReport { sides: &sides })
}

/// Refuses a run that is given twice, because it would scatter too little.
fn refuse_repeated(paths: &[PathBuf]) -> fault::Result<()> {
    for (number, path) in paths.iter().enumerate() {
        let same = |other: &&PathBuf| match (path.canonicalize(), other.canonicalize()) {
            (Ok(path), Ok(other)) => path == other,
            _ => path == *other,
        };
        if paths[..number].iter().any(|other| same(&other)) {
            let text = format!("{} is given twice: against itself it shows nothing", path.display());
            return Err(UsageError::new(text).into());
        }
    }
    Ok(())
}

/// A distribution, or the lengths of a recording's detours with its node.
fn read(path: &Path, selection: &Selection) -> fault::Result<(Side, Option<String>)> {
    let node = selection.node.as_deref();
    let name = path.display().to_string();
    let (mut side, node) = match Contents::read(path)? {
        Contents::Distribution => {
            let mut docs = load_documents(path, node)?;
            let doc = docs.pop().filter(|_| docs.is_empty());
            (Side::from_distribution(&name, doc.ok_or_else(|| several(path))?), None)
        }
        _ => {
            let nodes = StoredNodes::open(path)?;
            let only = nodes.names().next().filter(|_| nodes.names().len() == 1);
            let node = node.or(only).ok_or_else(|| several(path))?;
            (Side::from_digest(&name, &digest(nodes.read(node)?)?), Some(node.to_owned()))
        }
    };
    if let Some(cpus) = &selection.cpus {
        side.series.retain(|series| series.cpu.is_some_and(|cpu| cpus.contains(cpu)));
    }
    Ok((side, node))
}

fn several(path: &Path) -> UsageError {
    let text = Wording::new("{} holds several nodes; choose one with {node_before} or {node_after}");
    UsageError::new(text.with(path.display()))
}
