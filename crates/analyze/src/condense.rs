//! Condenses a full recording to summary form.

use becalm_account::BatchOwners;
use becalm_bundle::{Bundle, StoredNode};
use becalm_condense::{ActivityRow, Condenser};
use becalm_model::digest::DigestDoc;
use becalm_model::node::{NodeDoc, Rung};
use becalm_units::CpuId;

use crate::summary::{Selection, SummaryError};

/// Condenses one node of a recording, reading its activities and its detours once each. Fails if the node is not in the bundle, is a recording of
/// work, or cannot be read.
pub fn condense(bundle: &Bundle, node: &str) -> Result<DigestDoc, SummaryError> {
    let selection = Selection { node: Some(node.to_owned()), ..Selection::default() };
    let doc = selection.documents(bundle)?.swap_remove(0);
    condense_doc(bundle, doc)
}

/// The summary form of a node's recording. Fails if the recording is of work, or cannot be read.
pub fn digest(stored: StoredNode) -> Result<DigestDoc, SummaryError> {
    match stored {
        StoredNode::Summary(digest) => Ok(*digest),
        StoredNode::Full(bundle) => condense(&bundle, &bundle.nodes()[0].node),
    }
}

fn condense_doc(bundle: &Bundle, doc: NodeDoc) -> Result<DigestDoc, SummaryError> {
    let traced = doc.rung == Rung::Tracepoints;
    let origin = i64::try_from(doc.origin_ns()).unwrap_or(0);
    let mut counts = Condenser::new(origin, doc.cpus.iter().map(|cpu| cpu.cpu), traced);
    let place = |number: i32| {
        let cpu = CpuId::new(u32::try_from(number).ok()?);
        doc.cpus.binary_search_by_key(&cpu, |listed| listed.cpu).ok()
    };
    if traced {
        for batch in bundle.activities(&doc.node)? {
            let batch = batch?;
            let (sources, details) = (batch.source_values(), batch.detail_values());
            let mut owners = BatchOwners::new(&sources, &details);
            let mut at = (None, None);
            for row in 0..batch.len() {
                let cpu = batch.cpus()[row];
                if at.0 != Some(cpu) {
                    at = (Some(cpu), place(cpu));
                }
                let Some(place) = at.1 else { continue };
                let (kind, source, detail) = (batch.kind(row), batch.source_key(row), batch.detail_key(row));
                let activity = ActivityRow {
                    detour: u64::try_from(batch.detours()[row]).unwrap_or(0),
                    start_ns: batch.starts()[row],
                    self_ns: batch.self_times()[row],
                    owner: owners.owner(counts.sources(), kind, source, detail),
                };
                counts.activity(place, &activity);
            }
        }
    }
    for batch in bundle.detours(&doc.node)? {
        let batch = batch?;
        let mut at = (None, None);
        for row in 0..batch.len() {
            let cpu = batch.cpus()[row];
            if at.0 != Some(cpu) {
                at = (Some(cpu), place(cpu));
            }
            if let Some(place) = at.1 {
                counts.detour(place, batch.starts()[row], batch.durations()[row], batch.incomplete(row));
            }
        }
    }
    Ok(counts.document(doc))
}

#[cfg(test)]
mod tests {
    use becalm_bundle::{SummaryBundle, SummaryWriter};
    use becalm_model::Document;
    use becalm_model::digest::WINDOWS;

    use super::*;
    use crate::summary::{Detail, RANKS, Summary, summarize, summarize_digests};

    fn both(name: &str) -> (Summary, Summary, DigestDoc) {
        summarize_both(name, &Selection::default())
    }

    /// The selected part of a full recording, the same of its summary form, and the whole summary form.
    fn summarize_both(name: &str, selection: &Selection) -> (Summary, Summary, DigestDoc) {
        let folder = tempfile::tempdir().unwrap();
        becalm_fixtures::write_all(folder.path());
        let (full, short) = (folder.path().join(name), folder.path().join("short.becalm"));
        let bundle = Bundle::open(&full).unwrap();
        let digest = condense(&bundle, &bundle.nodes()[0].node).unwrap();
        digest.check().unwrap();
        drop(SummaryWriter::create(&short, &digest).unwrap());
        let selection = selection.with_detail(Detail::Scale);
        let mut short_summary = summarize_digests(&SummaryBundle::open(&short).unwrap(), &selection).unwrap();
        let mut full_summary = summarize(&bundle, &selection).unwrap();
        short_summary.ask_for_ranks(RANKS);
        full_summary.ask_for_ranks(RANKS);
        (full_summary, short_summary, digest)
    }

    /// Sums are equal, quantiles equal except for a bucket, and everything else is marked as unknown.
    #[test]
    fn the_summary_form_says_what_the_full_recording_says_or_nothing() {
        let (full, short, digest) = both("busy.becalm");
        assert_eq!(short.cpus.len(), full.cpus.len());
        let figures = full.cpus.iter().map(|cpu| &cpu.figures).zip(short.cpus.iter().map(|cpu| &cpu.figures));
        for (all, one) in figures.chain([(&full.total, &short.total)]) {
            assert_eq!((one.noise_ratio(), one.rate_hz()), (all.noise_ratio(), all.rate_hz()));
            assert_eq!((one.durations.max(), one.durations.min()), (all.durations.max(), all.durations.min()));
            assert_eq!((one.long.count(), one.long.total()), (all.long.count(), all.long.total()));
            assert_eq!(
                (one.own_ns, one.own_longest_ns, one.unseen_ns),
                (all.own_ns, all.own_longest_ns, all.unseen_ns)
            );
            for (one, other) in [(one.median_ns, all.median_ns), (one.p99_ns, all.p99_ns), (one.p999_ns, all.p999_ns)] {
                let (one, other) = (one.unwrap() as f64, other.unwrap() as f64);
                assert!((one / other - 1.0).abs() < 0.01, "{one} for {other}");
            }
        }
        let ends = |summary: &Summary| {
            let interval = summary.total.interval.unwrap();
            [interval.low().unwrap(), interval.high().unwrap()]
        };
        for (one, other) in ends(&short).into_iter().zip(ends(&full)) {
            assert!((one / other - 1.0).abs() < 0.1, "{one} for {other}");
        }
        let work = |summary: &Summary| summary.total.work_p99_ns.unwrap() as f64;
        assert!((work(&short) / work(&full) - 1.0).abs() < 0.02, "{} for {}", work(&short), work(&full));
        assert_eq!(short.sources.len(), full.sources.len());
        for (one, other) in short.sources.iter().zip(&full.sources) {
            assert_eq!((one.kind, &one.source, one.whole_ns), (other.kind, &other.source, other.whole_ns));
            assert_eq!((one.times.count(), one.times.total()), (other.times.count(), other.times.total()));
        }
        assert_eq!(short.books, full.books);
        assert!(short.anatomy.is_none() && short.periods.is_empty() && short.spectrum.is_none());
        let slowdown = |summary: &Summary| summary.at_scale.clone().unwrap().map(|scaled| scaled.slowdown);
        let (short_scale, full_scale) = (slowdown(&short), slowdown(&full));
        match (&short_scale, &full_scale) {
            (Ok(short), Ok(full)) => assert!(((short - 1.0) / (full - 1.0) - 1.0).abs() < 0.1, "{short} {full}"),
            _ => assert_eq!(short_scale, full_scale),
        }
        assert!(short.warnings.iter().any(|(_, warning)| warning.code == "summary_form"));
        assert_eq!(
            digest.cpus[0].longest.iter().map(|detour| detour.duration_ns).max(),
            full.cpus[0].figures.durations.max()
        );
    }

    /// CPUs that are not selected leave nothing behind, neither their detours nor the kernel's counts there.
    #[test]
    fn a_selection_of_cpus_is_the_same_of_both_forms() {
        let (whole, ..) = both("busy.becalm");
        let selection = Selection { cpus: Some("1".parse().unwrap()), ..Selection::default() };
        let (full, short, _) = summarize_both("busy.becalm", &selection);
        let has_one = |summary: &Summary| summary.nodes[0].doc.counters.iter().all(|counter| counter.cpu.get() == 1);
        assert!(whole.cpus.len() == 2 && !has_one(&whole), "{:?}", whole.nodes[0].doc.counters);
        for one in [&full, &short] {
            assert_eq!(one.cpus.iter().map(|cpu| cpu.cpu.get()).collect::<Vec<_>>(), [1]);
            assert!(one.nodes[0].doc.cpus.len() == 1 && has_one(one), "{:?}", one.nodes[0].doc);
            assert_eq!(one.total.durations.total(), whole.cpus[1].figures.durations.total());
        }
        assert_eq!(short.sources.len(), full.sources.len());
    }

    #[test]
    fn a_recording_without_sources_has_a_summary_form_without_sources() {
        let (full, short, digest) = both("plain.becalm");
        assert_eq!((short.total.noise_ratio(), short.sources.len()), (full.total.noise_ratio(), 0));
        let cpu = &digest.cpus[0];
        let delays = cpu.delays[0].cells.0.iter().map(|cell| cell.delay_ns).sum::<i64>();
        assert_eq!(delays, cpu.durations.total_ns * WINDOWS as i64);
    }
}
