//! A log of HdrHistogram with the lengths of the detours of each CPU.

use std::io::Write;

use becalm_command::progress::ReadingProgress;
use becalm_model::NodeDoc;
use becalm_units::Nanos;
use becalm_units::fault;

use super::destination::Destination;
use super::stacks::{Source, open};
use super::{ExportArgs, tell_unstored};
use crate::rows::attributed_detours;
use crate::write::hdrhistogram::{HistogramLog, Lengths};

/// Significant digits of the histograms of single detours. The summary form has no more either.
const DIGITS: u8 = 3;
const SUMMARY_DIGITS: u8 = 2;

/// Writes the log. In memory are a histogram of each CPU of a node, about 250 KiB, and 65,536 rows of each table.
pub fn export(args: &ExportArgs, destination: Destination<'_>) -> fault::Result<()> {
    let source = open(args)?;
    tell_unstored(source.docs());
    destination.write(|out| {
        let base = source.docs().filter_map(|doc| doc.origin).min();
        let mut log = HistogramLog::begin(out, base)?;
        match &source {
            Source::Full(bundle, docs) => {
                let _reading = ReadingProgress::begin(bundle, 1);
                for doc in docs {
                    // The lengths, and the end of the last detour.
                    let mut cpus = vec![(Lengths::new(DIGITS), Nanos::ZERO); doc.cpus.len()];
                    attributed_detours::<fault::Error>(bundle, doc, &mut |shown| {
                        let place = doc.cpus.binary_search_by_key(&shown.detour.cpu, |listed| listed.cpu);
                        if let Some((lengths, end)) = place.ok().and_then(|place| cpus.get_mut(place)) {
                            *end = shown.detour.start + shown.detour.duration;
                            if let Some(noise) = shown.noise() {
                                lengths.add(noise.get(), 1);
                            }
                        }
                        Ok(())
                    })?;
                    add(&mut log, base, doc, &cpus);
                }
            }
            Source::Summary(docs) => {
                for doc in docs {
                    let of_cpu = |cpu: &becalm_model::digest::CpuDigest| {
                        let mut lengths = Lengths::new(SUMMARY_DIGITS);
                        cpu.lengths.buckets().for_each(|(ns, count)| lengths.add(ns.cast_signed(), count));
                        (lengths, Nanos::new(cpu.last_end_ns))
                    };
                    let cpus: Vec<_> = doc.cpus.iter().map(of_cpu).collect();
                    add(&mut log, base, &doc.run, &cpus);
                }
            }
        }
        Ok(log.end()?.flush()?)
    })
}

fn add<W: Write>(log: &mut HistogramLog<W>, base: Option<jiff::Timestamp>, doc: &NodeDoc, cpus: &[(Lengths, Nanos)]) {
    for (cpu, (lengths, end)) in doc.cpus.iter().zip(cpus) {
        // A node without a start time starts with the log.
        let origin = doc.origin.or(base).map_or(0, jiff::Timestamp::as_nanosecond);
        let begin = origin + i128::from(cpu.start_ns.get());
        // The document of a killed run has no duration.
        let length = cpu.duration_ns.max(*end - cpu.start_ns);
        log.interval(&format!("{}/cpu{}", doc.node, cpu.cpu), begin, length, lengths);
    }
}
