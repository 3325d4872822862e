//! The recorder: sets up a recording, runs the loops, collects their data and reports the outcome.

mod checked;
mod collector;
mod companion;
mod document;
mod own_threads;
mod pauses;
mod portions;
mod prepared;
mod run;
mod unchanged;

use std::sync::Arc;

use becalm_linux::clock::{self, Counter, MonotonicRaw};
use becalm_linux::janitor::Janitor;
use becalm_linux::signals::StopSignals;
use becalm_model::node::NodeDoc;
use becalm_units::Nanos;

pub use self::collector::{Collector, HandOver, TraceSide};
pub use self::companion::Companion;
pub use self::pauses::Pauses;
use self::prepared::Prepared;
use crate::error::RecordError;
use crate::loops::{Loop, WatchLoop, WorkLoop};
use crate::plan::{LoopTask, RecordPlan};
use crate::sink::Sink;
use crate::trace::{Names, RawCauses};

/// The progress of a recording.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Progress {
    /// How long the loops have run.
    pub elapsed: Nanos,
    /// How long they will run; `None` if that is open.
    pub duration: Option<Nanos>,
    /// The number of detours so far on all CPUs.
    pub detours: u64,
}

/// A recording that has ended.
#[derive(Debug)]
pub struct Recording {
    /// The node's document, without the counts of attribution.
    pub node: NodeDoc,
    /// The accompanying command, which may still run.
    pub command: Companion,
    /// All names.
    pub names: Names,
    /// The traces from which the causes of activities follow; `None` if they were not recorded.
    pub causes: Option<RawCauses>,
}

/// The caller's objects for a running recording.
struct Outside<'a, S> {
    /// They end the recording cleanly.
    signals: &'a StopSignals,
    /// Receives the recorded batches.
    sink: &'a mut S,
    /// Receives progress reports.
    progress: &'a mut dyn FnMut(Progress),
}

/// Records according to the plan. `guard` removes the trace instance if the process is killed, or is the reason why nothing will; `signals` end the
/// recording cleanly. Fails before the start if the plan is impossible, and leaves nothing behind. Fails later if the sink fails, or if a system
/// error leaves nothing to record.
pub fn record<S: Sink>(
    plan: RecordPlan,
    guard: Result<Arc<Janitor>, String>,
    signals: &StopSignals,
    sink: &mut S,
    progress: &mut dyn FnMut(Progress),
) -> Result<Recording, RecordError<S::Error>> {
    let choice = clock::choose(&plan.root);
    let outside = Outside { signals, sink, progress };
    match choice.source {
        #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
        clock::Source::Native => record_with_counter::<clock::Native, S>(plan, guard, choice.why_not_native, outside),
        _ => record_with_counter::<MonotonicRaw, S>(plan, guard, choice.why_not_native, outside),
    }
}

fn record_with_counter<C: Counter, S: Sink>(
    plan: RecordPlan,
    guard: Result<Arc<Janitor>, String>,
    why_not_native: Option<String>,
    outside: Outside<'_, S>,
) -> Result<Recording, RecordError<S::Error>> {
    match plan.task.clone() {
        LoopTask::Watch(threshold) => {
            let kind = WatchLoop { threshold, detours: plan.detours };
            record_with_loop::<C, _, S>(kind, plan, guard, why_not_native, outside)
        }
        LoopTask::Work(work) => {
            let root = plan.root.clone();
            record_with_loop::<C, _, S>(WorkLoop { plan: work, root }, plan, guard, why_not_native, outside)
        }
    }
}

fn record_with_loop<C: Counter, L: Loop, S: Sink>(
    kind: L,
    plan: RecordPlan,
    guard: Result<Arc<Janitor>, String>,
    why_not_native: Option<String>,
    outside: Outside<'_, S>,
) -> Result<Recording, RecordError<S::Error>> {
    Prepared::<C, L>::prepare(kind, plan, guard, why_not_native)?.run(outside)
}
