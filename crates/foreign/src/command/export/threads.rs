//! Observed threads on a time axis: a trace of Perfetto with the states of threads, who had the CPU, and spans.

use std::collections::BTreeMap;
use std::io;

use becalm_bundle::{ObservedTables, node_document};
use becalm_explain::clocks::{self, span_of};
use becalm_explain::joined::place;
use becalm_explain::spans::{self, SpanRequest};
use becalm_explain::subjects::Subjects;
use becalm_model::Labels;
use becalm_model::observed::{Owner, Stay};
use becalm_observe::document::ObservedDoc;
use becalm_observe::words::{taker_name, taker_names, taker_thread};
use becalm_units::fault::{self, UsageError};

use super::destination::Destination;
use super::{ExportArgs, ExportFormat};
use crate::write::perfetto_threads::{ClocksAtOrigin, ThreadTrack, ThreadsTrace};

/// A slice below a thread: start, end, name.
type Slice = ((i64, i64), String);

/// Writes the trace. The stays of all observed threads are in memory.
pub fn export(args: &ExportArgs, destination: Destination<'_>) -> fault::Result<()> {
    let path = args.path.display();
    if args.to != ExportFormat::Perfetto {
        let why = format!(
            "{path} holds observed threads, which are exported --to perfetto; their tables are Parquet files in it"
        );
        return Err(UsageError::new(why).into());
    }
    if args.cpus.is_some() {
        return Err(UsageError::new(format!(
            "{path} holds observed threads, which move between CPUs; leave --cpus out"
        ))
        .into());
    }
    let stored = node_document::load::<ObservedDoc>(&args.path, args.node.as_deref())?;
    let doc = stored.doc;
    fault::ensure!(
        doc.tracing.is_some() && doc.ended.is_some(),
        "{path} has no lives of threads: becalm observe was killed, or ran without root"
    );
    let tables = ObservedTables::new(&stored.bundle, &doc.node, doc.rows);
    let mut labels = Labels::new();
    let threads = tables.threads(&mut labels)?;
    let mut stays: BTreeMap<usize, Vec<Stay>> = BTreeMap::new();
    tables.stays(&mut labels, &mut |stay, _| stays.entry(stay.thread.0 as usize).or_default().push(*stay))?;
    let texts = labels.clone();
    let names = taker_names(&threads, &texts);
    let mut slices: BTreeMap<usize, Vec<Slice>> = BTreeMap::new();
    tables.detours(&mut labels, &mut |detour, rows, labels| {
        // The time of the hypervisor has no place of its own.
        let most = rows.iter().filter(|row| row.owner != Owner::Host).max_by_key(|row| row.time);
        let Some(most) = most else { return };
        let taker = most.thread.and_then(|taker| threads.get(taker.0 as usize)).map(taker_thread);
        let name = taker_name(most.kind, &names.source(most.owner, labels.text(most.source), taker));
        let times = (detour.start.get(), (detour.start + detour.duration).get());
        slices.entry(detour.thread.0 as usize).or_default().push((times, name));
    })?;
    let spans = args.spans.as_deref().map(|file| read_spans(file, &doc, &threads)).transpose()?;

    destination.write(|out| {
        let mut trace = ThreadsTrace::begin(out, clocks_at_origin(&doc), &threads, &labels)?;
        for (thread, stays) in &stays {
            trace.tracks(*thread)?;
            trace.life(stays)?;
        }
        for (thread, (times, name)) in slices.iter().flat_map(|(thread, all)| all.iter().map(move |one| (thread, one)))
        {
            trace.slice(*thread, ThreadTrack::Takers, *times, name)?;
        }
        for (thread, (times, name)) in spans.into_iter().flatten() {
            trace.slice(thread, ThreadTrack::Spans, times, &name)?;
        }
        Ok(io::Write::flush(&mut trace.end()?)?)
    })
}

/// The spans of a file on the time of the recording, each with its thread.
fn read_spans(
    file: &std::path::Path,
    doc: &ObservedDoc,
    threads: &[becalm_bundle::ThreadRow],
) -> fault::Result<Vec<(usize, Slice)>> {
    let read = spans::read(file, &SpanRequest::default())?;
    let books = span_of(doc);
    let (map, _) = clocks::choose(None, &read, &doc.clock, books)?;
    let subjects = Subjects::threads(threads, books);
    let (placed, left_out) = place(&read.all, &map, &subjects);
    left_out.refuse_many(read.all.len(), map.clock(), &subjects)?;
    let pieces = placed.iter().flat_map(|span| span.pieces.iter().map(move |piece| (span.name, piece)));
    let slice = |(name, piece): (becalm_model::Label, &becalm_explain::joined::Piece)| {
        (piece.thread.0 as usize, ((piece.start, piece.end), read.labels.text(name).to_owned()))
    };
    Ok(pieces.map(slice).collect())
}

/// The kernel's clocks at the origin, by the first reading of all.
fn clocks_at_origin(doc: &ObservedDoc) -> ClocksAtOrigin {
    let Some(pair) = doc.clock.pairs.first() else { return ClocksAtOrigin::default() };
    let at_origin = |reading: u64| i64::try_from(reading).unwrap_or(i64::MAX).saturating_sub(pair.at_ns.get());
    ClocksAtOrigin {
        boottime: at_origin(pair.boottime_ns),
        monotonic: at_origin(pair.monotonic_ns),
        realtime: at_origin(pair.realtime_ns),
    }
}
