//! Takes a recording: attributes its detours and stores them, segment by segment.

use std::path::{Path, PathBuf};

use becalm_attribute::{Attributor, Tally};
use becalm_bundle::{BundleError, BundleWriter};
use becalm_measure::{Batch, Loop, Names, Sink};
use becalm_model::node::{CpuDoc, Ended, NodeDoc, Warning};
use becalm_model::{Activity, Detour};
use becalm_model::{LoopThread, Step};
use becalm_units::Nanos;

/// A segment with more rows than this ends before its time, so that a noisy machine does not fill the memory: 56 bytes
/// each, and about as much again while it is written.
const SEGMENT_ROWS: usize = 4 << 20;

/// One CPU's part of the segment, and the totals of its run.
struct Cpu {
    thread: LoopThread,
    attributor: Option<Attributor>,
    steps: Vec<Step>,
    detours: Vec<Detour>,
    activities: Vec<Activity>,
    longest: Nanos,
    total: Nanos,
    incomplete: u64,
}

/// The rows that a batch gave.
#[derive(Clone, Copy, Debug)]
pub struct Rows<'a> {
    /// Detours, in order of time.
    pub detours: &'a [Detour],
    /// What they are split over, in the order of the detours; none on the lower rungs.
    pub activities: &'a [Activity],
}

/// Writes a recording into a bundle.
pub struct BundleSink {
    /// Nothing, if the rows are only looked at.
    path: Option<PathBuf>,
    writer: Option<BundleWriter>,
    /// The document as it was at the start.
    node: Option<NodeDoc>,
    cpus: Vec<Cpu>,
    rows: usize,
}

impl BundleSink {
    /// Will write to this path; nothing is created yet.
    pub fn new(path: &Path) -> Self {
        Self { path: Some(path.to_owned()), ..Self::unstored() }
    }

    /// Attributes all the same, and stores nothing.
    pub const fn unstored() -> Self {
        Self { path: None, writer: None, node: None, cpus: Vec::new(), rows: 0 }
    }

    /// How many bytes were stored.
    pub fn bytes_written(&self) -> u64 {
        self.writer.as_ref().map_or(0, BundleWriter::bytes_written)
    }

    /// Attributes a batch, and gives the rows that came of it. They wait for [`Self::end_batch`].
    pub fn attribute(&mut self, batch: Batch<'_>, names: &Names) -> Rows<'_> {
        let cpu = &mut self.cpus[batch.index];
        let before = (cpu.detours.len(), cpu.activities.len());
        match &mut cpu.attributor {
            Some(attributor) => {
                cpu.steps.clear();
                cpu.steps.extend(batch.steps.iter().map(|(start, end)| Step { start: *start, end: *end }));
                attributor.attribute(&cpu.steps, batch.events, &names.tasks, &mut cpu.detours, &mut cpu.activities);
                attributor.advance(batch.complete_until);
            }
            None => cpu.detours.extend(batch.steps.iter().map(|(start, end)| Detour {
                cpu: cpu.thread.cpu,
                start: *start,
                duration: (*end - *start - cpu.thread.t_min).max(Nanos::ZERO),
                incomplete: false,
            })),
        }
        let rows = Rows { detours: &cpu.detours[before.0..], activities: &cpu.activities[before.1..] };
        for detour in rows.detours {
            cpu.longest = cpu.longest.max(detour.duration);
            cpu.total += detour.duration;
            cpu.incomplete += u64::from(detour.incomplete);
        }
        self.rows += rows.detours.len() + rows.activities.len();
        rows
    }

    /// Stores the segment before its time if its rows have become too many.
    pub fn end_batch(&mut self, names: &Names) -> Result<(), BundleError> {
        if self.rows >= SEGMENT_ROWS { self.write_segment(names) } else { Ok(()) }
    }

    /// From now on stores nothing more.
    pub fn stop_storing(&mut self) {
        (self.path, self.writer) = (None, None);
    }

    /// Completes the document with what attribution found, and stores it.
    ///
    /// `realtime_limit` is for how long of each second real-time loops could be kept from their CPU.
    pub fn finish(&mut self, node: &mut NodeDoc, realtime_limit: Option<Nanos>) -> Result<(), BundleError> {
        for (doc, cpu) in node.cpus.iter_mut().zip(&mut self.cpus) {
            cpu.complete(doc);
        }
        let warnings = becalm_measure::closing_warnings(&node.cpus, node.tracing.as_ref(), realtime_limit);
        node.warnings.extend(warnings);
        match &mut self.writer {
            Some(writer) => writer.write_doc(node),
            None => Ok(()),
        }
    }

    /// Says in the document that the recording failed, and why. Tells whether there is anything of a recording.
    pub fn fail(&mut self, why: &str) -> bool {
        let (Some(writer), Some(mut node)) = (&mut self.writer, self.node.take()) else { return false };
        node.ended = Some(Ended::Failed);
        node.warnings.push(Warning {
            code: "failed".to_owned(),
            message: format!("the recording failed: {why}; what is shown is what was stored until then"),
            advice: "remove the cause and record again".to_owned(),
        });
        // Should even this fail, the document of the start says that the recording did not end.
        let _ = writer.write_doc(&node);
        true
    }

    fn write_segment(&mut self, names: &Names) -> Result<(), BundleError> {
        if self.rows == 0 {
            return Ok(());
        }
        let mut detours = Vec::with_capacity(self.cpus.iter().map(|cpu| cpu.detours.len()).sum());
        let mut activities = Vec::with_capacity(self.cpus.iter().map(|cpu| cpu.activities.len()).sum());
        for cpu in &mut self.cpus {
            detours.append(&mut cpu.detours);
            activities.append(&mut cpu.activities);
        }
        self.rows = 0;
        match &mut self.writer {
            Some(writer) => writer.write_segment(&detours, &activities, &names.labels),
            None => Ok(()),
        }
    }
}

impl Cpu {
    fn new(of: &Loop, tracing: bool, names: &mut Names) -> Self {
        let thread = LoopThread { cpu: of.cpu, pid: of.pid, t_min: of.t_min, realtime: of.realtime };
        Self {
            thread,
            // Without a trace nothing is known of the sources, which is not the same as `unseen`.
            attributor: tracing.then(|| Attributor::new(thread, &mut names.labels)),
            steps: Vec::new(),
            detours: Vec::new(),
            activities: Vec::new(),
            longest: Nanos::ZERO,
            total: Nanos::ZERO,
            incomplete: 0,
        }
    }

    fn complete(&mut self, doc: &mut CpuDoc) {
        doc.max_ns = self.longest;
        doc.total_ns = self.total;
        doc.incomplete = self.incomplete;
        let tally = self.attributor.as_mut().map_or_else(Tally::default, Attributor::finish);
        doc.unmatched_events = tally.unmatched_switches + tally.unmatched_entries + tally.unmatched_exits;
        doc.below_threshold_events = tally.below_threshold_events;
        doc.below_threshold_max_ns = tally.below_threshold_max;
    }
}

impl Sink for BundleSink {
    type Error = BundleError;

    fn begin(&mut self, node: &NodeDoc, loops: &[Loop], names: &mut Names) -> Result<(), BundleError> {
        let tracing = node.tracing.is_some();
        self.cpus = loops.iter().map(|of| Cpu::new(of, tracing, names)).collect();
        if let Some(path) = &self.path {
            self.writer = Some(BundleWriter::create(path, node)?);
        }
        self.node = Some(node.clone());
        Ok(())
    }

    fn batch(&mut self, batch: Batch<'_>, names: &Names) -> Result<(), BundleError> {
        self.attribute(batch, names);
        self.end_batch(names)
    }

    fn end_segment(&mut self, names: &Names) -> Result<(), BundleError> {
        self.write_segment(names)
    }
}
