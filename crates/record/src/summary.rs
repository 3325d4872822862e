//! The store of a recording's summary form, and the choice between it and the store of all detours.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use becalm_account::LabelOwners;
use becalm_attribute::Tally;
use becalm_bundle::{BundleError, HeldFolder, SummaryWriter};
use becalm_condense::{ActivityRow, Condenser};
use becalm_measure::Names;
use becalm_model::cause::Cause;
use becalm_model::digest::DigestDoc;
use becalm_model::node::{CpuDoc, Ended, NodeDoc};
use becalm_model::{Labels, LoopThread, warning};

use crate::detours::DetourStore;
use crate::{LanePart, Store};

/// Condenses detours as they arrive, in memory independent of their number. The document is rewritten with each segment and at the end.
pub struct SummaryStore {
    path: PathBuf,
    /// Counts for the documents of the CPUs.
    counted: DetourStore,
    state: Option<State>,
}

/// The state once the recording has started.
struct State {
    writer: SummaryWriter,
    started: NodeDoc,
    counts: Condenser,
    owners: LabelOwners,
}

impl State {
    fn document(&mut self) -> DigestDoc {
        self.counts.document(self.started.clone())
    }
}

impl SummaryStore {
    /// Prepares to write to this path; the bundle is created when the recording starts.
    pub fn new(path: &Path) -> Self {
        Self { path: path.to_owned(), counted: DetourStore::unstored(), state: None }
    }

    /// The bundle's directory; `None` before the recording starts.
    pub fn held(&self) -> Option<Arc<HeldFolder>> {
        self.state.as_ref().map(|state| state.writer.held())
    }

    /// Stores in the document that the recording failed, with the reason. Returns whether anything of the recording was stored.
    pub fn fail(&mut self, why: &str) -> bool {
        let Some(state) = &mut self.state else { return false };
        state.started.ended = Some(Ended::Failed);
        state.started.warnings.push(warning::recording_failed(why));
        let document = state.document();
        // If even this fails, the document of the last segment shows that the recording did not end.
        let _ = state.writer.close(&document);
        true
    }
}

impl Store for SummaryStore {
    type Error = BundleError;

    fn begin(&mut self, node: &NodeDoc, threads: &[LoopThread], names: &mut Names) -> Result<(), BundleError> {
        self.counted.begin(node, threads, names)?;
        let origin = i64::try_from(node.origin_ns()).unwrap_or(0);
        let mut counts = Condenser::new(origin, threads.iter().map(|thread| thread.cpu), node.tracing.is_some());
        let started = node.clone();
        let writer = SummaryWriter::create(&self.path, &counts.document(started.clone()))?;
        self.state = Some(State { writer, started, counts, owners: LabelOwners::default() });
        Ok(())
    }

    fn take(&mut self, part: LanePart<'_>, names: &Names, pause: &mut dyn FnMut()) -> Result<(), BundleError> {
        if let Some(state) = &mut self.state {
            for (at, activity) in part.activities.iter().enumerate() {
                let row = ActivityRow {
                    detour: activity.detour,
                    start_ns: activity.start.get(),
                    self_ns: activity.self_time.get(),
                    owner: state.owners.owner(state.counts.sources(), &names.labels, activity),
                };
                state.counts.activity(part.index, &row);
                if at % 4_096 == 4_095 {
                    pause();
                }
            }
            for detour in part.detours {
                let (start, duration) = (detour.start.get(), detour.duration.get());
                state.counts.detour(part.index, start, duration, detour.incomplete);
            }
        }
        self.counted.count(part);
        Ok(())
    }

    fn end_segment(&mut self, _: &Names, pause: &mut dyn FnMut()) -> Result<(), BundleError> {
        let Some(state) = &mut self.state else { return Ok(()) };
        self.counted.note_into(&mut state.started.cpus);
        pause();
        let document = state.document();
        pause();
        state.writer.note(&document)
    }

    fn enter(&mut self, cpus: &mut [CpuDoc], tallies: &[Tally]) {
        self.counted.enter(cpus, tallies);
    }

    fn close(&mut self, node: &mut NodeDoc) -> Result<(), BundleError> {
        let Some(state) = &mut self.state else { return Ok(()) };
        state.started = node.clone();
        let document = state.document();
        state.writer.close(&document)
    }
}

/// The store of a recording.
pub enum RecordingStore {
    /// A bundle of everything, or nothing.
    Full(Box<DetourStore>),
    /// The summary form.
    Summary(Box<SummaryStore>),
}

impl RecordingStore {
    /// The bundle's directory; `None` before the recording starts, and if nothing is stored.
    pub fn held(&self) -> Option<Arc<HeldFolder>> {
        match self {
            Self::Full(store) => store.held(),
            Self::Summary(store) => store.held(),
        }
    }

    /// Stores in the document that the recording failed, with the reason. Returns whether anything of the recording was stored.
    pub fn fail(&mut self, why: &str) -> bool {
        match self {
            Self::Full(store) => store.fail(why),
            Self::Summary(store) => store.fail(why),
        }
    }
}

impl Store for RecordingStore {
    type Error = BundleError;

    fn begin(&mut self, node: &NodeDoc, threads: &[LoopThread], names: &mut Names) -> Result<(), BundleError> {
        match self {
            Self::Full(store) => store.begin(node, threads, names),
            Self::Summary(store) => store.begin(node, threads, names),
        }
    }

    fn take(&mut self, part: LanePart<'_>, names: &Names, pause: &mut dyn FnMut()) -> Result<(), BundleError> {
        match self {
            Self::Full(store) => store.take(part, names, pause),
            Self::Summary(store) => store.take(part, names, pause),
        }
    }

    fn end_segment(&mut self, names: &Names, pause: &mut dyn FnMut()) -> Result<(), BundleError> {
        match self {
            Self::Full(store) => store.end_segment(names, pause),
            Self::Summary(store) => store.end_segment(names, pause),
        }
    }

    fn take_causes(&mut self, causes: &[Cause], labels: &Labels) -> Result<(), BundleError> {
        match self {
            Self::Full(store) => store.take_causes(causes, labels),
            Self::Summary(store) => store.take_causes(causes, labels),
        }
    }

    fn enter(&mut self, cpus: &mut [CpuDoc], tallies: &[Tally]) {
        match self {
            Self::Full(store) => store.enter(cpus, tallies),
            Self::Summary(store) => store.enter(cpus, tallies),
        }
    }

    fn close(&mut self, node: &mut NodeDoc) -> Result<(), BundleError> {
        match self {
            Self::Full(store) => store.close(node),
            Self::Summary(store) => store.close(node),
        }
    }
}
