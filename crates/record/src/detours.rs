//! The store of detours: a bundle as written by `becalm record`.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use becalm_attribute::Tally;
use becalm_bundle::{BundleError, BundleWriter, HeldFolder};
use becalm_measure::{Names, Shelf, Unstored};
use becalm_model::cause::Cause;
use becalm_model::node::{CpuDoc, NodeDoc};
use becalm_model::{Activity, Detour, Labels, LoopThread, warning};
use becalm_units::Nanos;

use crate::output::{BundleOutput, PART_ROWS, SEGMENT_ROWS, enter_unmatched};
use crate::{LanePart, Store};

/// One CPU's part of the segment, and the totals of its run.
struct CpuDetours {
    detours: Shelf<Detour>,
    activities: Shelf<Activity>,
    longest: Nanos,
    total: Nanos,
    incomplete: u64,
    stored: u64,
    unstored: Unstored,
    /// The start and end of the time observed so far; `None` before the loop has started.
    watched: Option<(Nanos, Nanos)>,
}

impl CpuDetours {
    const fn new() -> Self {
        Self {
            detours: Shelf::new(PART_ROWS),
            activities: Shelf::new(PART_ROWS),
            longest: Nanos::ZERO,
            total: Nanos::ZERO,
            incomplete: 0,
            stored: 0,
            unstored: Unstored { count: 0, total: Nanos::ZERO },
            watched: None,
        }
    }

    /// The CPU's document for the recording so far; `None` before its loop has started.
    fn so_far(&self, started: &CpuDoc) -> Option<CpuDoc> {
        let (began, until) = self.watched?;
        Some(CpuDoc {
            start_ns: began,
            duration_ns: (until - began).max(Nanos::ZERO),
            detours: self.stored,
            max_ns: self.longest,
            total_ns: self.total,
            incomplete: self.incomplete,
            unstored: self.unstored.count,
            unstored_ns: self.unstored.total,
            ..started.clone()
        })
    }
}

/// Writes detours and their activities into a bundle.
pub struct DetourStore {
    /// `None` if the detours are only counted.
    path: Option<PathBuf>,
    output: Option<BundleOutput>,
    cpus: Vec<CpuDetours>,
    /// Rows that wait to be written.
    rows: usize,
}

impl DetourStore {
    /// Prepares to write to this path; the bundle is created when the recording starts.
    pub fn new(path: &Path) -> Self {
        Self { path: Some(path.to_owned()), ..Self::unstored() }
    }

    /// Prepares to count the detours without storing them.
    pub const fn unstored() -> Self {
        Self { path: None, output: None, cpus: Vec::new(), rows: 0 }
    }

    /// The number of bytes stored.
    pub fn bytes_written(&self) -> u64 {
        self.output.as_ref().map_or(0, |output| output.writer.bytes_written())
    }

    /// The bundle's directory; `None` before the recording starts, and if nothing is stored.
    pub fn held(&self) -> Option<Arc<HeldFolder>> {
        self.output.as_ref().map(|output| output.writer.held())
    }

    /// Stops storing.
    pub fn stop_storing(&mut self) {
        (self.path, self.output) = (None, None);
    }

    /// Stores in the document that the recording failed, with the reason. Returns whether anything of the recording was stored.
    pub fn fail(&mut self, why: &str) -> bool {
        let Some(output) = &mut self.output else { return false };
        output.fail(warning::recording_failed(why));
        true
    }

    /// Counts a part without storing its rows.
    pub(crate) fn count(&mut self, part: LanePart<'_>) {
        let cpu = &mut self.cpus[part.index];
        for detour in part.detours {
            cpu.longest = cpu.longest.max(detour.duration);
            cpu.total += detour.duration;
            cpu.incomplete += u64::from(detour.incomplete);
        }
        cpu.stored += part.detours.len() as u64;
        cpu.unstored += part.unstored;
        if let Some(began) = part.began {
            // After the last part, the loop itself reports how long it ran.
            let until = if part.complete_until == Nanos::MAX { began } else { part.complete_until };
            let known = cpu.watched.map_or(began, |(_, known)| known);
            cpu.watched = Some((began, until.max(known)));
        }
    }

    /// Updates the documents of the CPUs with the counts so far.
    pub(crate) fn note_into(&self, cpus: &mut [CpuDoc]) {
        for (doc, cpu) in cpus.iter_mut().zip(&self.cpus) {
            if let Some(so_far) = cpu.so_far(doc) {
                *doc = so_far;
            }
        }
    }

    fn writer(&mut self) -> Option<&mut BundleWriter> {
        self.output.as_mut().map(|output| &mut output.writer)
    }

    fn write_segment(&mut self, names: &Names, pause: &mut dyn FnMut()) -> Result<(), BundleError> {
        if self.rows == 0 {
            return Ok(());
        }
        let Self { output, cpus, .. } = self;
        let written = output.as_mut().map_or(Ok(()), |BundleOutput { writer, .. }| {
            let detours: Vec<&[Detour]> = cpus.iter().flat_map(|cpu| cpu.detours.parts()).collect();
            let activities: Vec<&[Activity]> = cpus.iter().flat_map(|cpu| cpu.activities.parts()).collect();
            writer.write_parts(&detours, &activities, &names.labels, pause)
        });
        for cpu in cpus {
            cpu.detours.clear();
            cpu.activities.clear();
        }
        self.rows = 0;
        written
    }
}

impl Store for DetourStore {
    type Error = BundleError;

    fn begin(&mut self, node: &NodeDoc, threads: &[LoopThread], _: &mut Names) -> Result<(), BundleError> {
        self.cpus = threads.iter().map(|_| CpuDetours::new()).collect();
        if let Some(path) = &self.path {
            self.output = Some(BundleOutput::create(path, node)?);
        }
        Ok(())
    }

    fn take(&mut self, part: LanePart<'_>, names: &Names, pause: &mut dyn FnMut()) -> Result<(), BundleError> {
        self.count(part);
        let cpu = &mut self.cpus[part.index];
        cpu.detours.extend(part.detours);
        cpu.activities.extend(part.activities);
        self.rows += part.detours.len() + part.activities.len();
        if self.rows >= SEGMENT_ROWS { self.write_segment(names, pause) } else { Ok(()) }
    }

    fn end_segment(&mut self, names: &Names, pause: &mut dyn FnMut()) -> Result<(), BundleError> {
        self.write_segment(names, pause)?;
        let Self { output: Some(output), cpus, .. } = self else { return Ok(()) };
        let so_far: Vec<_> = cpus.iter().enumerate().map(|(index, cpu)| cpu.so_far(output.cpu(index)?)).collect();
        output.note(so_far.into_iter())
    }

    fn take_causes(&mut self, causes: &[Cause], labels: &Labels) -> Result<(), BundleError> {
        self.writer().map_or(Ok(()), |writer| writer.write_causes(causes, labels))
    }

    fn enter(&mut self, cpus: &mut [CpuDoc], tallies: &[Tally]) {
        for ((doc, cpu), tally) in cpus.iter_mut().zip(&self.cpus).zip(tallies) {
            doc.max_ns = cpu.longest;
            doc.total_ns = cpu.total;
            doc.incomplete = cpu.incomplete;
            enter_unmatched(doc, tally);
            doc.below_threshold_events = tally.below_threshold_events;
            doc.below_threshold_max_ns = tally.below_threshold_max;
        }
    }

    fn close(&mut self, node: &mut NodeDoc) -> Result<(), BundleError> {
        self.writer().map_or(Ok(()), |writer| writer.write_doc(node))
    }
}
