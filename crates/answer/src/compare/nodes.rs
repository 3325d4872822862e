//! Compares runs node by node, in summary form, if not all are readable full recordings.

use std::path::PathBuf;

use becalm_analyze::compare::{ComparedRun, Comparison, compare_nodes};
use becalm_analyze::summary::Selection;
use becalm_bundle::{BundleError, StoredNodes};
use becalm_model::node::NodeDoc;
use becalm_units::fault;

use super::repeated;

/// The runs of a side, and their selected parts.
type Side<'a> = (&'a [PathBuf], &'a Selection);

/// Compares them.
pub fn compare(a: Side<'_>, b: Side<'_>) -> fault::Result<Comparison> {
    let open = |paths: &[PathBuf]| -> Result<Vec<StoredNodes>, BundleError> {
        paths.iter().map(|path| StoredNodes::open(path)).collect()
    };
    let (nodes_a, nodes_b) = (open(a.0)?, open(b.0)?);
    let selected_a: Vec<_> = nodes_a.iter().map(|nodes| (nodes, a.1)).collect();
    let selected_b: Vec<_> = nodes_b.iter().map(|nodes| (nodes, b.1)).collect();
    let comparison = compare_nodes(&selected_a, &selected_b)?;
    refuse_repeated(&comparison)?;
    Ok(comparison)
}

/// Refuses a recording on both sides, or twice on one: a node with the same start by the same counter.
fn refuse_repeated(comparison: &Comparison) -> fault::Result<()> {
    let runs: Vec<&ComparedRun> = comparison.a.runs.iter().chain(&comparison.b.runs).collect();
    let shares = |a: &NodeDoc, b: &NodeDoc| a.cpus.iter().any(|cpu| b.cpus.iter().any(|other| other.cpu == cpu.cpu));
    let same = |a: &NodeDoc, b: &NodeDoc| {
        a.node == b.node && a.origin == b.origin && a.clock.origin_ticks == b.clock.origin_ticks && shares(a, b)
    };
    for (number, b) in runs.iter().enumerate() {
        for a in &runs[..number] {
            // Documents are sorted by node name.
            let found = b.docs.iter().find(|doc| {
                let at = a.docs.binary_search_by(|other| other.node.cmp(&doc.node));
                at.is_ok_and(|at| same(&a.docs[at], doc))
            });
            if let Some(doc) = found {
                return Err(repeated(&a.path, &b.path, doc).into());
            }
        }
    }
    Ok(())
}
