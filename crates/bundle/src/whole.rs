//! Checks that the tables of a node are complete: a copy may lack directories, segments or rows.

use std::path::Path;

use becalm_model::NodeDoc;
use becalm_model::node::StoredRows;

use super::decode::TableDecoder;
use super::names::SourcePool;
use super::reader::main_table;
use super::schema::{ACTIVITIES, Table};
use super::{BundleError, document, layout};

/// Reads a node's document and checks the rows of its tables against it.
pub(super) fn read(bundle: &Path, node: &str, document: &Path) -> Result<NodeDoc, BundleError> {
    let doc = document::read(document, node)?;
    check(bundle, &doc)?;
    Ok(doc)
}

/// Checks that the tables contain the rows that the document counts. A document written before the end, of a running, killed or failed recording, may
/// count fewer.
fn check(bundle: &Path, doc: &NodeDoc) -> Result<(), BundleError> {
    let table = main_table(doc);
    let stored = doc.stored.unwrap_or_else(|| told_of_cpus(doc));
    let may_hold_more = doc.stored.is_none() || !doc.is_complete();
    if may_hold_more && stored == StoredRows::default() {
        return Ok(());
    }
    let segments = layout::count_segments(&layout::table_folder(bundle, table.name, &doc.node))?;
    let compare = |table: &'static Table, stored: u64| {
        let found = count(bundle, &doc.node, table, segments)?;
        if found == stored || (may_hold_more && found > stored) {
            return Ok(());
        }
        let (table, node) = (table.name, &doc.node);
        let folder = layout::table_folder(bundle, table, node);
        let folder = folder.display();
        Err(BundleError::Other(format!(
            "{folder} holds {found} {table} of node '{node}', but {stored} were recorded; copy the whole recording"
        )))
    };
    compare(table, stored.rows)?;
    check_activities(bundle, &doc.node, table, segments)?;
    compare(&ACTIVITIES, stored.activities)
}

/// The counts in the documents of the CPUs, if another program wrote the recording without counting rows.
fn told_of_cpus(doc: &NodeDoc) -> StoredRows {
    let counts_detours = doc.is_complete() && doc.settings.work.is_none();
    let detours = doc.cpus.iter().fold(0_u64, |sum, cpu| sum.saturating_add(cpu.detours));
    StoredRows { rows: if counts_detours { detours } else { 0 }, activities: 0 }
}

/// The number of rows in the first segments of a node's table, according to their footers.
pub(super) fn count(bundle: &Path, node: &str, table: &'static Table, segments: u32) -> Result<u64, BundleError> {
    let folder = layout::table_folder(bundle, table.name, node);
    (0..segments).try_fold(0_u64, |sum, number| {
        let segment = TableDecoder::open(&folder.join(layout::segment(number)), table, &SourcePool::default())?;
        Ok(sum.saturating_add(segment.density().rows()))
    })
}

/// Checks that each segment of a table has one of activities.
pub(super) fn check_activities(bundle: &Path, node: &str, table: &Table, segments: u32) -> Result<(), BundleError> {
    let [folder, counted] = [ACTIVITIES.name, table.name].map(|name| layout::table_folder(bundle, name, node));
    for segment in (0..segments).map(layout::segment) {
        let path = folder.join(&segment);
        if !path.exists() {
            return Err(BundleError::missing(&path, &counted.join(&segment)));
        }
    }
    Ok(())
}
