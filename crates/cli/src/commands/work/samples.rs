//! Takes a run of work: finds the kernel's activity in each sample, and stores both, segment by segment.
//!
//! To attribution a sample is a step all of whose time may be somebody's. Of what it finds, three things are not kept:
//! `edge` and `unseen`, which here are mostly the work itself, and page faults of the loop, which have no end in the
//! trace, so that what follows them in the sample would count as theirs. All of that is what subtraction leaves.

use std::path::{Path, PathBuf};

use becalm_attribute::{Attributor, Tally};
use becalm_bundle::{BundleError, BundleWriter};
use becalm_measure::{Batch, Loop, Names, Sink};
use becalm_model::node::{Ended, NodeDoc, Warning, WorkCount, WorkSession};
use becalm_model::{Activity, Detour, Kind, Sample};
use becalm_model::{LoopThread, Step};
use becalm_units::Nanos;

/// A segment with more rows than this ends before its time.
const SEGMENT_ROWS: usize = 4 << 20;

/// One CPU's part of the segment.
struct Cpu {
    thread: LoopThread,
    attributor: Option<Attributor>,
    steps: Vec<Step>,
    detours: Vec<Detour>,
    found: Vec<Activity>,
    samples: Vec<Sample>,
    activities: Vec<Activity>,
    /// Samples of the sessions before, by which the numbers of activities are moved.
    before: u64,
    longest: Nanos,
    incomplete: u64,
}

/// Writes a run of work into a bundle.
pub struct SampleSink {
    path: PathBuf,
    writer: Option<BundleWriter>,
    /// The document of the run that goes on.
    resumed: Option<NodeDoc>,
    /// The document as it was at the start.
    node: Option<NodeDoc>,
    /// From this session's origin to that of the run.
    offset: Nanos,
    cpus: Vec<Cpu>,
    rows: usize,
}

impl SampleSink {
    /// Will write to this path, behind what is there if the document of a run to go on with is given.
    pub fn new(path: &Path, resumed: Option<NodeDoc>) -> Self {
        Self {
            path: path.to_owned(),
            writer: None,
            resumed,
            node: None,
            offset: Nanos::ZERO,
            cpus: Vec::new(),
            rows: 0,
        }
    }

    /// Completes the document, and stores it.
    ///
    /// `realtime_limit` is for how long of each second real-time loops could be kept from their CPU.
    pub fn finish(&mut self, node: &mut NodeDoc, realtime_limit: Option<Nanos>) -> Result<(), BundleError> {
        for (doc, cpu) in node.cpus.iter_mut().zip(&mut self.cpus) {
            doc.max_ns = cpu.longest;
            doc.incomplete = cpu.incomplete;
            let tally = cpu.attributor.as_mut().map_or_else(Tally::default, Attributor::finish);
            doc.unmatched_events = tally.unmatched_switches + tally.unmatched_entries + tally.unmatched_exits;
        }
        let warnings = becalm_measure::closing_warnings(&node.cpus, node.tracing.as_ref(), realtime_limit);
        node.warnings.extend(warnings);
        node.warnings.extend(calibration_warnings(node));
        if let Some(before) = &self.resumed {
            *node = joined(before, node, self.offset);
        }
        match &mut self.writer {
            Some(writer) => writer.write_doc(node),
            None => Ok(()),
        }
    }

    /// Says in the document that the run failed, and why. Tells whether there is anything of it.
    pub fn fail(&mut self, why: &str) -> bool {
        let (Some(writer), Some(mut node)) = (&mut self.writer, self.node.take()) else { return false };
        node.ended = Some(Ended::Failed);
        node.warnings.push(Warning {
            code: "failed".to_owned(),
            message: format!("the run failed: {why}; what is shown is what was stored until then"),
            advice: "remove the cause and resume it".to_owned(),
        });
        // Should even this fail, the document of the start says that the run did not end.
        let _ = writer.write_doc(&node);
        true
    }

    fn write_segment(&mut self, names: &Names) -> Result<(), BundleError> {
        let Some(writer) = &mut self.writer else { return Ok(()) };
        if self.rows == 0 {
            return Ok(());
        }
        let (mut samples, mut activities) = (Vec::new(), Vec::new());
        for cpu in &mut self.cpus {
            samples.append(&mut cpu.samples);
            activities.append(&mut cpu.activities);
        }
        self.rows = 0;
        writer.write_samples(&samples, &activities, &names.labels)
    }
}

impl Sink for SampleSink {
    type Error = BundleError;

    fn begin(&mut self, node: &NodeDoc, loops: &[Loop], names: &mut Names) -> Result<(), BundleError> {
        let tracing = node.tracing.is_some();
        self.cpus = loops
            .iter()
            .map(|of| {
                let thread = LoopThread { cpu: of.cpu, pid: of.pid, t_min: of.t_min, realtime: of.realtime };
                Cpu {
                    thread,
                    attributor: tracing.then(|| Attributor::new(thread, &mut names.labels)),
                    steps: Vec::new(),
                    detours: Vec::new(),
                    found: Vec::new(),
                    samples: Vec::new(),
                    activities: Vec::new(),
                    before: 0,
                    longest: Nanos::ZERO,
                    incomplete: 0,
                }
            })
            .collect();
        let node = match &self.resumed {
            None => {
                self.writer = Some(BundleWriter::create(&self.path, node)?);
                node.clone()
            }
            Some(before) => {
                // A clock that was set back must not bring samples before those that are there.
                let apart = (node.origin.as_nanosecond() - before.origin.as_nanosecond()).max(0);
                let apart = Nanos::new(i64::try_from(apart).unwrap_or(i64::MAX / 4));
                let bundle = becalm_bundle::Bundle::open(&self.path)?;
                let mut end = Nanos::ZERO;
                for batch in bundle.samples(&before.node)? {
                    let batch = batch?;
                    for row in 0..batch.len() {
                        let cpu = batch.cpus()[row];
                        end = end.max(Nanos::new(batch.starts()[row].saturating_add(batch.durations()[row])));
                        let of = self.cpus.iter_mut().find(|of| i32::try_from(of.thread.cpu.get()) == Ok(cpu));
                        of.into_iter().for_each(|of| of.before += 1);
                    }
                }
                // The first reading of a loop may lie a little before its origin, never a second.
                self.offset = apart.max(end + Nanos::from_secs(1));
                let joined = joined(before, node, self.offset);
                self.writer = Some(BundleWriter::resume(&self.path, &joined)?);
                joined
            }
        };
        self.node = Some(node);
        Ok(())
    }

    fn batch(&mut self, batch: Batch<'_>, names: &Names) -> Result<(), BundleError> {
        let offset = self.offset;
        let cpu = &mut self.cpus[batch.index];
        let rows = (cpu.samples.len(), cpu.activities.len());
        cpu.detours.clear();
        cpu.found.clear();
        if let Some(attributor) = &mut cpu.attributor {
            cpu.steps.clear();
            cpu.steps.extend(batch.steps.iter().map(|(start, end)| Step { start: *start, end: *end }));
            attributor.attribute(&cpu.steps, batch.events, &names.tasks, &mut cpu.detours, &mut cpu.found);
            attributor.advance(batch.complete_until);
        }
        for (number, ((start, end), work)) in batch.steps.iter().zip(batch.work).enumerate() {
            // Where there is no trace, nothing was lost of it.
            let incomplete = cpu.detours.get(number).is_some_and(|detour| detour.incomplete);
            cpu.longest = cpu.longest.max(*end - *start);
            cpu.incomplete += u64::from(incomplete);
            cpu.samples.push(Sample {
                cpu: cpu.thread.cpu,
                start: *start + offset,
                duration: *end - *start,
                work: *work,
                incomplete,
            });
        }
        let kept = cpu.found.iter().filter(|row| !matches!(row.kind, Kind::Edge | Kind::Unseen | Kind::Fault));
        let (before, activities) = (cpu.before, &mut cpu.activities);
        activities.extend(kept.map(|row| Activity { detour: row.detour + before, start: row.start + offset, ..*row }));
        self.rows += cpu.samples.len() - rows.0 + cpu.activities.len() - rows.1;
        if self.rows >= SEGMENT_ROWS { self.write_segment(names) } else { Ok(()) }
    }

    fn end_segment(&mut self, names: &Names) -> Result<(), BundleError> {
        self.write_segment(names)
    }
}

/// The document of a run with another session.
fn joined(before: &NodeDoc, session: &NodeDoc, offset: Nanos) -> NodeDoc {
    let mut node = before.clone();
    node.ended = session.ended;
    let sum = |a: Nanos, b: Nanos| a + b;
    for (cpu, new) in node.cpus.iter_mut().zip(&session.cpus) {
        cpu.duration_ns = sum(cpu.duration_ns, new.duration_ns);
        cpu.iterations += new.iterations;
        cpu.max_ns = cpu.max_ns.max(new.max_ns);
        cpu.incomplete += new.incomplete;
        cpu.lost_events += new.lost_events;
        cpu.events += new.events;
        cpu.unmatched_events += new.unmatched_events;
        cpu.faults += new.faults;
        cpu.voluntary_switches += new.voluntary_switches;
        cpu.involuntary_switches += new.involuntary_switches;
        cpu.cut_short |= new.cut_short;
    }
    for counter in &session.counters {
        match node.counters.iter_mut().find(|known| known.cpu == counter.cpu && known.name == counter.name) {
            Some(known) => known.growth = known.growth.saturating_add(counter.growth),
            None => node.counters.push(counter.clone()),
        }
    }
    for warning in &session.warnings {
        if !node.warnings.contains(warning) {
            node.warnings.push(warning.clone());
        }
    }
    // Sources are only known of the whole if they are known of each session.
    if session.tracing.is_none() {
        node.tracing = None;
        node.rung = node.rung.min(session.rung);
    }
    node.clock.rate_error_ratio = node.clock.rate_error_ratio.max(session.clock.rate_error_ratio);
    if let (Some(work), Some(new)) = (&mut node.settings.work, &session.settings.work) {
        for of in &mut work.loops {
            let others = new.loops.iter().find(|other| other.cpu == of.cpu).map_or(0, |other| other.others_iterations);
            of.others_iterations = of.others_iterations.saturating_add(others);
        }
        for count in &new.counts {
            let same = |known: &&mut WorkCount| {
                known.cpu == count.cpu && known.event == count.event && known.space == count.space
            };
            match work.counts.iter_mut().find(same) {
                Some(known) => {
                    known.value = known.value.saturating_add(count.value);
                    known.enabled_ns = sum(known.enabled_ns, count.enabled_ns);
                    known.running_ns = sum(known.running_ns, count.running_ns);
                }
                None => work.counts.push(count.clone()),
            }
        }
        for line in &new.not_counted {
            if !work.not_counted.contains(line) {
                work.not_counted.push(line.clone());
            }
        }
        work.sessions.push(WorkSession { start_ns: offset, ended: session.ended });
    }
    node
}

/// Work that does not take the grain that was asked for.
fn calibration_warnings(node: &NodeDoc) -> Vec<Warning> {
    let Some(work) = &node.settings.work else { return Vec::new() };
    let mut warnings = Vec::new();
    if work.cache_bytes.is_some() && !work.cache_known {
        warnings.push(Warning {
            code: "cache_unknown".to_owned(),
            message: format!(
                "the kernel does not tell the size of the cache that the body {} is made for; {} KiB were assumed",
                work.body,
                work.cache_bytes.unwrap_or(0) >> 10
            ),
            advice: "read the results as those of an array of that size".to_owned(),
        });
    }
    let longer = |of: &&becalm_model::node::WorkLoop| of.iterations == 1 && of.calibrated_ns > work.grain_ns;
    if let Some(of) = work.loops.iter().find(longer).filter(|_| work.fixed == becalm_model::node::Fixed::Work) {
        warnings.push(Warning {
            code: "grain_too_short".to_owned(),
            message: format!(
                "one iteration of the body {} takes {:.3} on CPU {}, longer than the grain of {}",
                work.body, of.calibrated_ns, of.cpu, work.grain_ns
            ),
            advice: "nothing to do: a sample is one iteration".to_owned(),
        });
    }
    warnings
}
