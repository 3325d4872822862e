//! The node's document at the start and at the end of the measurement.

use becalm_linux::clock::{Anchor, Calibration, Counter, wall_error};
use becalm_model::node::{ClockDoc, CpuDoc, Ended, NodeDoc, Rung, SCHEMA, SettingsDoc, UnstoredLengths};
use becalm_model::{Step, warning};
use becalm_units::{Nanos, Ticks, TicksToNanos};

use super::collector::{Collector, FeedCounts};
use super::prepared::Prepared;
use crate::loops::acquire::{ALWAYS_STORED, End, LoopTally};
use crate::loops::unstored::{LengthClass, UnstoredSteps};
use crate::loops::{Lanes, Loop, LoopResult, StepRing};
use crate::machine::{self, KernelCounters};

/// The start of the recording, on all axes.
#[derive(Clone, Copy, Debug)]
pub struct Onset {
    /// Readings of all clocks at one instant.
    pub anchor: Anchor,
    /// The time from the anchor to the origin, enough to wake all threads.
    pub wake_up: Nanos,
    /// Converts the counter to time since the origin.
    pub axis: TicksToNanos,
}

impl<C: Counter, L: Loop> Prepared<C, L> {
    /// The document at the start, before any measurement.
    pub(super) fn document(&self, onset: &Onset, lanes: &Lanes<L>) -> NodeDoc {
        let root = self.plan.root.as_path();
        let wall_clock = wall_error();
        let rung = match &self.tracing {
            Some(_) => Rung::Tracepoints,
            None if KernelCounters::take(root).is_some() => Rung::Proc,
            None => Rung::Loop,
        };
        let wall = onset.anchor.wall_ns as i128 + i128::from(onset.wake_up.get());
        let host = match &self.plan.node {
            Some(name) => machine::Host { node: name.clone(), warning: None },
            None => machine::Host::read(root),
        };
        let mut node = NodeDoc {
            schema: SCHEMA.to_owned(),
            node: host.node,
            program: format!("becalm {}", env!("CARGO_PKG_VERSION")),
            origin: jiff::Timestamp::from_nanosecond(wall).ok(),
            ended: None,
            machine: machine::describe(root),
            clock: ClockDoc {
                origin_ticks: onset.axis.origin().get(),
                wall_error_ns: wall_clock.map(|clock| Nanos::new(clock.most_ns)),
                wall_synchronized: wall_clock.map(|clock| clock.synchronized),
                ..self.clock.clone()
            },
            settings: SettingsDoc {
                sched: self.plan.policy.to_string(),
                threshold: self.kind.threshold_text(),
                duration_ns: self.plan.duration,
                detours: None,
                command: self.plan.command.as_ref().map(|planned| planned.written.clone()).unwrap_or_default(),
                work: None,
            },
            rung,
            cpus: lanes.iter().map(|lane| CpuDoc::new(lane.cpu)).collect(),
            tracing: self.tracing.as_ref().map(|tracing| tracing.doc.clone()),
            stored: None,
            counters: Vec::new(),
            warnings: host.warning.into_iter().chain(self.warnings.iter().cloned()).collect(),
        };
        let calibrations: Vec<_> = lanes.iter().map(|lane| lane.calibration()).collect();
        self.kind.describe(&calibrations, onset.axis, self.calibration.rate, &mut node);
        node
    }

    /// Adds the loops' measurements and the collector's counts.
    pub(super) fn conclude(
        &self,
        node: &mut NodeDoc,
        onset: &Onset,
        end: &Anchor,
        measured: &[LoopResult],
        collector: &Collector<L::Ring>,
    ) {
        // The whole run is the longest possible baseline: it shows the error of the rate used.
        if let Ok(whole) = Calibration::from_anchors::<C>(&onset.anchor, end) {
            let off = (whole.rate.hz() / self.calibration.rate.hz() - 1.0).abs();
            node.clock.rate_error_ratio = off + whole.error_ratio;
        }
        let rings = self.rings.iter();
        for (((cpu, measured), counts), ring) in node.cpus.iter_mut().zip(measured).zip(collector.counts()).zip(rings) {
            fill(cpu, measured, counts, onset.axis);
            enter_unstored(cpu, ring.readings().unstored(), onset.axis);
            self.kind.conclude(measured, cpu, &mut node.settings);
            node.clock.backwards += measured.tally.backwards;
        }
        if let (Some(change), Some(tracing)) = (self.unchanged.change(), &mut node.tracing) {
            tracing.changed = Some(change.clone());
            // The first warning, because it decides what the sources mean.
            node.warnings.insert(0, warning::trace_changed(change));
        }
        debug_assert!(self.rings.iter().all(|ring| ring.readings().waiting() == 0), "every step was taken");
        if node.clock.backwards > 0 {
            node.warnings.push(warning::backwards(node.clock.backwards));
        }
        if let Some((cpu, error)) = collector.first_broken() {
            let pages: u64 = collector.counts().map(|counts| counts.broken_pages).sum();
            node.warnings.push(warning::broken_pages(pages, *cpu, &error.to_string()));
        }
    }
}

/// Stores in the document how the recording ended.
pub fn set_ended(node: &mut NodeDoc, ended: Ended) {
    node.ended = Some(ended);
    for session in node.settings.work.iter_mut().flat_map(|work| &mut work.sessions) {
        session.ended = Some(ended);
    }
}

/// How the recording ended: as seen by the collector, unless the loops have a more specific reason.
pub fn how_ended(seen: Ended, measured: &[LoopResult]) -> Ended {
    if measured.iter().any(|measured| measured.tally.end == End::Full) {
        Ended::BufferFull
    } else if measured.iter().all(|measured| measured.tally.end == End::Moved) {
        Ended::CpusGone
    } else if seen != Ended::Signal && all_caught_theirs(measured) {
        Ended::Detours
    } else {
        seen
    }
}

/// Whether each loop that stayed on its CPU ended with the requested number of detours.
fn all_caught_theirs(measured: &[LoopResult]) -> bool {
    let mut stayed = measured.iter().map(|measured| measured.tally.end).filter(|end| *end != End::Moved);
    stayed.all(|end| end == End::Enough)
}

/// Adds the detours that were counted and not stored.
fn enter_unstored(doc: &mut CpuDoc, unstored: &UnstoredSteps, axis: TicksToNanos) {
    let detour = |step: Ticks| (axis.duration(step) - doc.t_min_ns).max(Nanos::ZERO);
    let class = |class: LengthClass| UnstoredLengths {
        from_ns: detour(class.from),
        // The last class ends at the length from which detours are always stored.
        below_ns: detour(Ticks::new(class.from.get().saturating_mul(2))).min(ALWAYS_STORED - doc.t_min_ns),
        detours: class.steps,
        total_ns: Step::sum_of_detours(class.steps, axis.duration(class.total), doc.t_min_ns),
    };
    doc.unstored_lengths = unstored.length_classes().into_iter().map(class).collect();
    doc.unstored = doc.unstored_lengths.iter().map(|class| class.detours).sum();
    doc.unstored_ns = doc.unstored_lengths.iter().map(|class| class.total_ns).sum();
}

/// Adds a loop's measurements, and the counts taken with it, to its CPU's document.
fn fill(doc: &mut CpuDoc, measured: &LoopResult, counts: FeedCounts, axis: TicksToNanos) {
    let LoopTally { first, last, iterations, below, end, .. } = measured.tally;
    doc.start_ns = axis.instant(first);
    doc.duration_ns = axis.instant(last) - doc.start_ns;
    doc.iterations = iterations;
    doc.below_threshold_ns = axis.duration(below);
    doc.faults = measured.usage.faults;
    doc.voluntary_switches = measured.usage.voluntary_switches;
    doc.involuntary_switches = measured.usage.involuntary_switches;
    doc.cut_short = matches!(end, End::Full | End::Moved);
    doc.events = counts.events;
    doc.lost_events = counts.lost_events;
}
