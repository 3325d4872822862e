//! The store of samples: a bundle as written by `becalm work`.
//!
//! Attribution treats a sample as a step that may be entirely interruption. Three of its results are not kept: `edge` and `unseen`, which are mostly
//! the work itself here, and page faults of the loop, which have no end in the trace, so the rest of the sample would count as fault. All of these
//! are left over after subtraction.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use becalm_attribute::Tally;
use becalm_bundle::{Bundle, BundleError, HeldFolder};
use becalm_measure::{Names, Shelf};
use becalm_model::node::{CpuDoc, Fixed, NodeDoc, Warning, WorkLoopDoc};
use becalm_model::{Activity, Kind, LoopThread, Sample, warning};
use becalm_units::{CpuId, Nanos};

use crate::output::{BundleOutput, PART_ROWS, SEGMENT_ROWS, enter_unmatched};
use crate::resumed::joined;
use crate::{LanePart, Store};

/// One CPU's part of the segment.
struct CpuSamples {
    samples: Shelf<Sample>,
    activities: Shelf<Activity>,
    /// The number of samples in previous sessions: the offset of the numbers of activities.
    before: u64,
    longest: Nanos,
    incomplete: u64,
}

impl CpuSamples {
    const fn new() -> Self {
        Self {
            samples: Shelf::new(PART_ROWS),
            activities: Shelf::new(PART_ROWS),
            before: 0,
            longest: Nanos::ZERO,
            incomplete: 0,
        }
    }
}

/// Writes samples, and the activities in them, into a bundle.
pub struct SampleStore {
    path: PathBuf,
    output: Option<BundleOutput>,
    /// The document of the resumed run; `None` for a new run.
    resumed: Option<NodeDoc>,
    /// From this session's origin to that of the run.
    offset: Nanos,
    cpus: Vec<CpuSamples>,
    /// Rows that wait to be written.
    rows: usize,
}

impl SampleStore {
    /// Prepares to write to this path; the bundle is created when the run starts.
    pub fn new(path: &Path) -> Self {
        Self { path: path.to_owned(), output: None, resumed: None, offset: Nanos::ZERO, cpus: Vec::new(), rows: 0 }
    }

    /// Prepares to append to the run with this document.
    pub fn resume(path: &Path, before: NodeDoc) -> Self {
        Self { resumed: Some(before), ..Self::new(path) }
    }

    /// Stores in the document that the run failed, with the reason. Returns whether anything of the run was stored.
    pub fn fail(&mut self, why: &str) -> bool {
        let Some(output) = &mut self.output else { return false };
        output.fail(warning::work_failed(why));
        true
    }

    /// The bundle's directory; `None` before the run starts.
    pub fn held(&self) -> Option<Arc<HeldFolder>> {
        self.output.as_ref().map(|output| output.writer.held())
    }

    /// Opens the resumed run, to append to its samples.
    fn go_on(&mut self, before: &NodeDoc, node: &NodeDoc, threads: &[LoopThread]) -> Result<BundleOutput, BundleError> {
        // A clock that was set back must not put new samples before existing ones.
        let apart = (node.origin_ns() - before.origin_ns()).max(0);
        let apart = Nanos::new(i64::try_from(apart).unwrap_or(i64::MAX / 4));
        let StoredSamples { end, counts } = stored_samples(&Bundle::open(&self.path)?, &before.node)?;
        for (cpu, thread) in self.cpus.iter_mut().zip(threads) {
            cpu.before = counts.get(&thread.cpu).copied().unwrap_or(0);
        }
        // The first reading of a loop may be slightly before its origin, but never by a second.
        self.offset = apart.max(end + Nanos::from_secs(1));
        BundleOutput::resume(&self.path, joined(before, node, self.offset))
    }

    fn write_segment(&mut self, names: &Names, pause: &mut dyn FnMut()) -> Result<(), BundleError> {
        let Self { output: Some(output), cpus, .. } = self else { return Ok(()) };
        if self.rows == 0 {
            return Ok(());
        }
        let samples: Vec<&[Sample]> = cpus.iter().flat_map(|cpu| cpu.samples.parts()).collect();
        let activities: Vec<&[Activity]> = cpus.iter().flat_map(|cpu| cpu.activities.parts()).collect();
        let written = output.writer.write_sample_parts(&samples, &activities, &names.labels, pause);
        for cpu in cpus {
            cpu.samples.clear();
            cpu.activities.clear();
        }
        self.rows = 0;
        written
    }
}

struct StoredSamples {
    end: Nanos,
    counts: BTreeMap<CpuId, u64>,
}

fn stored_samples(bundle: &Bundle, node: &str) -> Result<StoredSamples, BundleError> {
    let mut end = Nanos::ZERO;
    let mut counts = BTreeMap::new();
    for batch in bundle.samples(node)? {
        let batch = batch?;
        for row in 0..batch.len() {
            end = end.max(Nanos::new(batch.starts()[row].saturating_add(batch.durations()[row])));
            if let Ok(cpu) = u32::try_from(batch.cpus()[row]) {
                *counts.entry(CpuId::new(cpu)).or_insert(0) += 1;
            }
        }
    }
    Ok(StoredSamples { end, counts })
}

impl Store for SampleStore {
    type Error = BundleError;

    fn begin(&mut self, node: &NodeDoc, threads: &[LoopThread], _: &mut Names) -> Result<(), BundleError> {
        self.cpus = threads.iter().map(|_| CpuSamples::new()).collect();
        self.output = Some(match self.resumed.take() {
            None => BundleOutput::create(&self.path, node)?,
            Some(before) => {
                let output = self.go_on(&before, node, threads);
                self.resumed = Some(before);
                output?
            }
        });
        Ok(())
    }

    fn take(&mut self, part: LanePart<'_>, names: &Names, pause: &mut dyn FnMut()) -> Result<(), BundleError> {
        let offset = self.offset;
        let cpu = &mut self.cpus[part.index];
        let rows = cpu.samples.len() + cpu.activities.len();
        for (number, (step, work)) in part.steps.iter().zip(part.work).enumerate() {
            let incomplete = part.detours.get(number).is_some_and(|detour| detour.incomplete);
            let duration = step.end - step.start;
            cpu.longest = cpu.longest.max(duration);
            cpu.incomplete += u64::from(incomplete);
            let start = step.start + offset;
            cpu.samples.push(Sample { cpu: part.thread.cpu, start, duration, work: *work, incomplete });
        }
        let kept = part.activities.iter().filter(|row| !row.kind.is_rest() && row.kind != Kind::Fault);
        let before = cpu.before;
        for row in kept {
            cpu.activities.push(Activity { detour: row.detour + before, start: row.start + offset, ..*row });
        }
        self.rows += cpu.samples.len() + cpu.activities.len() - rows;
        if self.rows >= SEGMENT_ROWS { self.write_segment(names, pause) } else { Ok(()) }
    }

    fn end_segment(&mut self, names: &Names, pause: &mut dyn FnMut()) -> Result<(), BundleError> {
        self.write_segment(names, pause)
    }

    fn enter(&mut self, cpus: &mut [CpuDoc], tallies: &[Tally]) {
        for ((doc, cpu), tally) in cpus.iter_mut().zip(&self.cpus).zip(tallies) {
            doc.max_ns = cpu.longest;
            doc.incomplete = cpu.incomplete;
            enter_unmatched(doc, tally);
        }
    }

    fn close(&mut self, node: &mut NodeDoc) -> Result<(), BundleError> {
        node.warnings.extend(calibration_warnings(node));
        if let Some(before) = &self.resumed {
            *node = joined(before, node, self.offset);
        }
        self.output.as_mut().map_or(Ok(()), |output| output.writer.write_doc(node))
    }
}

/// Warnings if the calibrated work does not take the requested grain.
fn calibration_warnings(node: &NodeDoc) -> Vec<Warning> {
    let Some(work) = &node.settings.work else { return Vec::new() };
    let mut warnings = Vec::new();
    if work.cache_bytes.is_some() && !work.cache_known {
        warnings.push(warning::cache_unknown(&work.body, work.cache_bytes.unwrap_or(0)));
    }
    let longer = |one: &&WorkLoopDoc| one.iterations == 1 && one.calibrated_ns > work.grain_ns;
    if let Some(one) = work.loops.iter().find(longer).filter(|_| work.fixed == Fixed::Work) {
        warnings.push(warning::grain_too_short(work.body_on(one.cpu), one.calibrated_ns, one.cpu, work.grain_ns));
    }
    warnings
}
