//! Consecutive recordings behind one view.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use becalm_linux::sched::Policy;
use becalm_linux::signals;
use becalm_measure::{RecordError, RecordPlan};
use becalm_model::node::Ended;
use becalm_record::{DetourStore, Recorded, Session as Recording};
use becalm_units::{ByteCount, Nanos};

use crate::feed::ViewFeed;
use crate::keep::{HiddenBundle, RunNames};
use crate::session::{LiveSession, ViewRequest};
use crate::watch::{Front, ViewThread, ViewThreadSettings};

/// The settings of the view and its recordings.
#[derive(Clone, Debug)]
pub struct ViewSettings {
    /// Whether the view is drawn on a terminal or printed as text.
    pub front: Front,
    /// The interval between two drawings.
    pub interval: Nanos,
    /// The scheduling class of the loops.
    pub policy: Policy,
    /// The root directory of the kernel's files, `/` except in tests.
    pub root: PathBuf,
    /// The name of the first saved recording; later ones get a number.
    pub output: PathBuf,
    /// The size of the recording behind the view beyond which it is dropped and a new one starts.
    pub keep: ByteCount,
}

/// Why a view ended without a request.
#[derive(Debug, thiserror::Error)]
pub enum LiveError {
    /// The recording failed.
    #[error("{0}")]
    Record(RecordError<io::Error>),
    #[error("a buffer was full")]
    BufferFull,
    /// Real-time loops occupied every CPU, and ended by themselves.
    #[error("the real-time loops had every CPU, and nothing was collected from them for too long")]
    Unattended,
    /// There is no CPU left to measure.
    #[error("every measured CPU went offline or left the cpuset")]
    CpusGone,
    /// The process cannot be stopped as a job of the shell.
    #[error("cannot stop: {0}")]
    Suspend(io::Error),
    /// The terminal or standard output failed.
    #[error("cannot show the view: {0}")]
    Show(io::Error),
}

becalm_units::fault::faultless!(LiveError);

/// Measures by `plan` and shows the results until the user ends it. Returns the names of saved recordings. Fails if it cannot measure or show.
pub fn show(
    recording: &Recording,
    settings: &ViewSettings,
    plan: impl Fn() -> RecordPlan,
) -> Result<Vec<PathBuf>, LiveError> {
    let session = Arc::new(LiveSession::new());
    let mut watcher = ViewThread::new(ViewThreadSettings {
        front: settings.front.clone(),
        interval: settings.interval.to_std(),
        policy: settings.policy,
        root: settings.root.clone(),
    });
    let measured = measure(recording, settings, plan, &session, &mut watcher);
    session.end();
    let shown = watcher.join();
    let saved = measured?;
    shown.map_err(LiveError::Show)?;
    Ok(saved)
}

/// Makes one recording after another until the user quits; returns those that were saved.
fn measure(
    recording: &Recording,
    settings: &ViewSettings,
    plan: impl Fn() -> RecordPlan,
    session: &Arc<LiveSession>,
    watcher: &mut ViewThread,
) -> Result<Vec<PathBuf>, LiveError> {
    let names = RunNames::new(&settings.output);
    let mut saved = Vec::new();
    loop {
        // If every CPU is measured, the interval determines how often the detours are read.
        let plan = RecordPlan { duration: None, segment: Some(settings.interval), ..plan() };
        // Recordings for text output are not saved.
        let keep = matches!(settings.front, Front::Terminal).then(|| HiddenBundle::new(&names));
        let recorded = once(recording, plan, keep.as_ref().map(HiddenBundle::path), settings.keep, session, watcher)?;
        match session.take_request() {
            Some(ViewRequest::Save) => session.say(keep.map(|keep| save(recorded, keep, &names, &mut saved))),
            Some(ViewRequest::Renew) => {
                session.say(Some(format!("the recording had {} bytes (--keep); a new one has begun", settings.keep)));
            }
            Some(ViewRequest::Suspend) => {
                drop(keep);
                signals::suspend().map_err(LiveError::Suspend)?;
            }
            Some(ViewRequest::Quit) | None => return Ok(saved),
        }
    }
}

/// Makes one recording, until a request arrives.
fn once<'a>(
    recording: &Recording,
    plan: RecordPlan,
    path: Option<&Path>,
    bound: ByteCount,
    session: &'a Arc<LiveSession>,
    watcher: &'a mut ViewThread,
) -> Result<Recorded<ViewFeed<'a>>, LiveError> {
    let detours = path.map_or_else(DetourStore::unstored, DetourStore::new);
    let recorded = recording.record(plan, ViewFeed::new(detours, session, watcher, bound.get()), &mut |_| {});
    session.pause();
    let recorded = recorded.map_err(|failure| LiveError::Record(failure.error))?;
    match recorded.node.ended {
        Some(Ended::BufferFull) => Err(LiveError::BufferFull),
        Some(Ended::CpusGone) => Err(LiveError::CpusGone),
        Some(Ended::Unattended) => Err(LiveError::Unattended),
        _ => Ok(recorded),
    }
}

/// Completes and renames a recording; returns a message.
fn save(
    mut recorded: Recorded<ViewFeed<'_>>,
    keep: HiddenBundle,
    names: &RunNames,
    saved: &mut Vec<PathBuf>,
) -> String {
    recorded.node.ended = Some(Ended::User);
    if let Err(error) = recorded.complete() {
        return format!("cannot complete the recording: {error}");
    }
    drop(recorded);
    match keep.save(names) {
        Ok(path) => {
            let message = format!("saved: becalm report {}", path.display());
            saved.push(path);
            message
        }
        Err(error) => format!("cannot save: {error}"),
    }
}
