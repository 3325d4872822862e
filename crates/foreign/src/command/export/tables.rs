//! The tables of a run as CSV, row by row.

use std::borrow::Cow;
use std::io::{self, Write};

use becalm_analyze::summary::SummaryError;
use becalm_bundle::{ActivityBatch, Bundle, BundleError, DetourBatch, SampleBatch};
use becalm_command::progress::ReadingProgress;
use becalm_model::NodeDoc;
use becalm_units::fault::{self, UsageError};
use becalm_units::{CpuId, CpuList, printable};

use super::destination::Destination;
use super::{ExportArgs, TableName, tell_unstored};
use crate::write::csv::CsvTable;

/// The columns of the tables: the node, then those of the bundle.
const DETOURS: [&str; 5] = ["node", "cpu", "start_ns", "duration_ns", "incomplete"];
const SAMPLES: [&str; 6] = ["node", "cpu", "start_ns", "duration_ns", "work", "incomplete"];
const ACTIVITIES: [&str; 8] = ["node", "cpu", "detour", "start_ns", "self_ns", "kind", "source", "detail"];

/// Writes the requested table. In memory are 65,536 rows at a time.
pub fn export(args: &ExportArgs, destination: Destination<'_>) -> fault::Result<()> {
    let bundle = args.open()?;
    let docs = documents(&bundle, args)?;
    let is_work = docs.iter().any(|doc| doc.settings.work.is_some());
    let table = args.table.unwrap_or(if is_work { TableName::Samples } else { TableName::Detours });
    let columns = match (table, is_work) {
        (TableName::Detours, false) => &DETOURS[..],
        (TableName::Samples, true) => &SAMPLES[..],
        (TableName::Activities, _) => &ACTIVITIES[..],
        (TableName::Detours, true) => return refused("samples of work and no detours; leave --table out"),
        (TableName::Samples, false) => return refused("detours and no samples of work; leave --table out"),
    };
    tell_unstored(&docs);
    let _reading = ReadingProgress::begin(&bundle, 1);
    destination.write(|out| {
        let mut file = CsvTable::begin(out, columns)?;
        write(&bundle, &docs, table, &mut file)?;
        Ok(file.end()?)
    })
}

fn refused(what: &str) -> fault::Result<()> {
    Err(UsageError::new(format!("the run holds {what}")).into())
}

/// The documents of the selected nodes with the selected CPUs, also for a run of work.
fn documents(bundle: &Bundle, args: &ExportArgs) -> fault::Result<Vec<NodeDoc>> {
    let selection = args.selection();
    if bundle.nodes().iter().all(|doc| doc.settings.work.is_none()) {
        return Ok(selection.documents(bundle)?);
    }
    let mut docs = bundle.nodes().to_vec();
    if let Some(name) = &args.node {
        // The bundle's own error names the existing nodes.
        drop(bundle.samples(name)?);
        docs.retain(|doc| doc.node == *name);
    }
    if let Some(cpus) = &args.cpus {
        let measured: CpuList = docs.iter().flat_map(|doc| &doc.cpus).map(|cpu| cpu.cpu).collect();
        let missing = cpus.without(&measured);
        if !missing.is_empty() {
            return Err(SummaryError::NotMeasured { missing, measured }.into());
        }
        docs.iter_mut().for_each(|doc| doc.cpus.retain(|cpu| cpus.contains(cpu.cpu)));
    }
    Ok(docs)
}

/// Writes the rows. Control characters in texts are replaced.
fn write(bundle: &Bundle, docs: &[NodeDoc], table: TableName, into: &mut CsvTable<impl Write>) -> fault::Result<()> {
    for doc in docs {
        let node = &doc.node;
        match table {
            TableName::Detours => rows(doc, bundle.detours(node)?, DetourBatch::cpus, |place, batch, row| {
                into.row((place, batch.starts()[row], batch.durations()[row], batch.incomplete(row)))
            })?,
            TableName::Samples => rows(doc, bundle.samples(node)?, SampleBatch::cpus, |place, batch, row| {
                let times = (batch.starts()[row], batch.durations()[row]);
                into.row((place, times, batch.work()[row], batch.incomplete(row)))
            })?,
            TableName::Activities => rows(doc, bundle.activities(node)?, ActivityBatch::cpus, |place, batch, row| {
                let numbers = (batch.detours()[row], batch.starts()[row], batch.self_times()[row]);
                let names = [batch.kind(row).name(), batch.source(row), batch.detail(row)];
                into.row((place, numbers, names.map(printable)))
            })?,
        }
    }
    Ok(())
}

/// Gives each row of the document's CPUs: the node and the CPU, then its batch and its number in that.
fn rows<'a, B>(
    doc: &'a NodeDoc,
    batches: impl Iterator<Item = Result<B, BundleError>>,
    cpus: fn(&B) -> &[i32],
    mut take: impl FnMut((Cow<'a, str>, i32), &B, usize) -> io::Result<()>,
) -> fault::Result<()> {
    for batch in batches {
        let batch = batch?;
        let numbers = cpus(&batch);
        for row in selected(doc, numbers) {
            take((printable(&doc.node), numbers[row]), &batch, row)?;
        }
    }
    Ok(())
}

/// The rows of the document's CPUs.
fn selected(doc: &NodeDoc, cpus: &[i32]) -> Vec<usize> {
    let mut last = (None, false);
    let mut is_selected = |cpu: i32| {
        if last.0 != Some(cpu) {
            let id = u32::try_from(cpu).map(CpuId::new);
            last = (Some(cpu), id.is_ok_and(|id| doc.cpus.binary_search_by_key(&id, |listed| listed.cpu).is_ok()));
        }
        last.1
    };
    (0..cpus.len()).filter(|row| is_selected(cpus[*row])).collect()
}
