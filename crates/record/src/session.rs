//! The common parts of a process's recordings: the guard that removes the kernel's trace if the process is killed, and the signals that end a
//! recording cleanly.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use becalm_attribute::Tally;
use becalm_linux::janitor::Janitor;
use becalm_linux::realtime::{HeldUp, Holder, RealTimeLimits};
use becalm_linux::sched::Policy;
use becalm_linux::signals::StopSignals;
use becalm_measure::{Batch, Companion, Names, Progress, RawCauses, RecordError, RecordPlan, Recording, Sink};
use becalm_model::LoopThread;
use becalm_model::node::{Ended, NodeDoc, Warning};
use becalm_model::warning;

use crate::causes::{self, CauseError};
use crate::closing::closing_warnings;
use crate::{Lane, Store};

/// The setup of a process for all of its recordings: signals, and the guard of its trace instances.
#[derive(Debug)]
pub struct Session {
    root: PathBuf,
    guard: Result<Arc<Janitor>, String>,
    signals: StopSignals,
}

impl Session {
    /// Prepares the process, which must still be single-threaded, for recordings below a root.
    ///
    /// `traced` says whether the kernel will be traced, which requires a guard process. If that cannot be started, the recordings warn of it. Fails
    /// if the process cannot handle signals.
    pub fn begin(root: &Path, traced: bool) -> io::Result<Self> {
        let guard = if traced {
            Janitor::spawn(&root.join("proc")).map(Arc::new).map_err(|error| error.to_string())
        } else {
            Err("nothing is traced".to_owned())
        };
        Ok(Self { root: root.to_owned(), guard, signals: StopSignals::block()? })
    }

    /// The guard process, or the reason why there is none.
    pub const fn guard(&self) -> &Result<Arc<Janitor>, String> {
        &self.guard
    }

    /// The signals that end a recording.
    pub const fn signals(&self) -> &StopSignals {
        &self.signals
    }

    /// Records according to the plan into a store.
    pub fn record<S: Store>(
        &self,
        plan: RecordPlan,
        store: S,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Recorded<S>, Failure<S>> {
        let policy = plan.policy;
        let mut recorder = Recorder { store, lanes: Vec::new() };
        match becalm_measure::record(plan, self.guard.clone(), &self.signals, &mut recorder, progress) {
            Ok(Recording { node, command, names, causes }) => Ok(Recorded {
                node,
                command,
                names,
                causes,
                store: recorder.store,
                lanes: recorder.lanes,
                root: self.root.clone(),
                policy,
            }),
            Err(error) => Err(Failure { error, store: recorder.store }),
        }
    }
}

/// A recording that has ended.
#[derive(Debug)]
pub struct Recorded<S> {
    /// The node's document; complete after [`Self::complete`].
    pub node: NodeDoc,
    /// The accompanying command, which may still run.
    pub command: Companion,
    /// The store of the recorded data.
    pub store: S,
    names: Names,
    causes: Option<RawCauses>,
    lanes: Vec<Lane>,
    root: PathBuf,
    policy: Policy,
}

impl<S: Store> Recorded<S> {
    /// Adds the results of attribution and the warnings to the document, and stores it.
    pub fn complete(&mut self) -> Result<(), S::Error> {
        self.work_out_causes()?;
        let labels = &mut self.names.labels;
        let tallies: Vec<Tally> = self.lanes.iter_mut().map(|lane| lane.finish(labels)).collect();
        self.store.enter(&mut self.node.cpus, &tallies);
        for (doc, lane) in self.node.cpus.iter_mut().zip(&self.lanes) {
            doc.missing_switch_threads = lane.missing_switches().map(|label| labels.text(label).to_owned()).collect();
        }
        let NodeDoc { cpus, tracing, settings, ended, .. } = &self.node;
        // Work also ends when it was repeated often enough.
        let is_timed = *ended == Some(Ended::Duration) && settings.work.is_none();
        let intended = settings.duration_ns.filter(|_| is_timed);
        let warnings = closing_warnings(cpus, tracing.as_ref(), intended);
        if self.policy.is_realtime() {
            let limits = RealTimeLimits::read(&self.root, cpus.iter().map(|cpu| cpu.cpu));
            self.node.warnings.extend(limits.held_up().iter().map(held_up));
        }
        self.node.warnings.extend(warnings);
        self.store.close(&mut self.node)
    }
}

impl<S: Store> Recorded<S> {
    /// Stores the causes of activities, if they were recorded.
    fn work_out_causes(&mut self) -> Result<(), S::Error> {
        let Self { node, causes, names, store, .. } = self;
        let doc = node.tracing.as_mut().and_then(|tracing| tracing.causes.as_mut());
        let (Some(raw), Some(doc)) = (causes.take(), doc) else { return Ok(()) };
        match causes::work_out(&raw, names, doc, |rows, labels| store.take_causes(rows, labels)) {
            Ok(()) => Ok(()),
            Err(CauseError::Store(error)) => Err(error),
            Err(CauseError::Pages(error)) => {
                node.warnings.push(warning::no_causes(&format!("its pages cannot be read again: {error}")));
                Ok(())
            }
        }
    }
}

/// A recording that could not be made or finished.
#[derive(Debug)]
pub struct Failure<S: Store> {
    /// Why the recording could not be made or finished.
    pub error: RecordError<S::Error>,
    /// The data recorded until then.
    pub store: S,
}

/// Warns of limits that can keep real-time loops from their CPU.
fn held_up(HeldUp { holder, time, period }: &HeldUp) -> Warning {
    let warn = match holder {
        Holder::Throttling => warning::rt_throttling,
        Holder::FairServer(_) => warning::fair_server,
    };
    warn(*time, *period, &holder.lift())
}

/// Connects the loops with a store: attributes their data.
struct Recorder<S> {
    store: S,
    /// One entry per CPU, in the order of the batches' positions.
    lanes: Vec<Lane>,
}

impl<S: Store> Sink for Recorder<S> {
    type Error = S::Error;

    fn begin(&mut self, node: &NodeDoc, threads: &[LoopThread], names: &mut Names) -> Result<(), S::Error> {
        let traced = node.tracing.is_some().then(|| node.machine.platform());
        self.lanes = threads.iter().map(|thread| Lane::new(*thread, traced, &mut names.labels)).collect();
        self.store.begin(node, threads, names)
    }

    fn batch(&mut self, batch: Batch<'_>, names: &mut Names, pause: &mut dyn FnMut()) -> Result<(), S::Error> {
        let part = self.lanes[batch.index].attribute(batch, &names.tasks, &mut names.labels);
        self.store.take(part, names, pause)
    }

    fn end_segment(&mut self, names: &Names, pause: &mut dyn FnMut()) -> Result<(), S::Error> {
        self.store.end_segment(names, pause)
    }
}
