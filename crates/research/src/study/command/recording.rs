//! Recording a configuration by a process of its own, as a user would do it.

use std::io;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::Duration;

use becalm_linux::signals::{self, StopSignals};
use becalm_units::fault::{Context, Result};

use crate::child::{last_words, reader, text};

/// How the recording of a configuration ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum RecordingEnd {
    /// The recording is whole.
    Whole,
    /// It failed; this is what it said last.
    Failed(String),
    /// A signal is to end the study.
    Stopped,
}

/// How often it is looked whether a recording has ended: seldom, as that is noise.
const LOOK: Duration = Duration::from_millis(200);

/// Runs a program that records, and waits for its end. A signal is passed on to it, so that the recording ends in order and isolation is
/// undone.
///
/// # Errors
/// If the program cannot be started or waited for. That it fails is no error.
pub fn record(mut command: Command, signals: &StopSignals) -> Result<RecordingEnd> {
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    let started = signals.let_through(|| command.spawn());
    let mut child = started.with_context(|| format!("cannot start {}", command.get_program().display()))?;
    let said = reader(child.stderr.take());
    let (status, stopped) = wait(&mut child, signals).context("cannot wait for the recording")?;
    // What cannot be read was not said.
    let said = text(said).unwrap_or_default();
    Ok(match (stopped, status.success()) {
        (true, _) => RecordingEnd::Stopped,
        (false, true) => RecordingEnd::Whole,
        (false, false) => RecordingEnd::Failed(last_words(&said).map_or_else(|| status.to_string(), str::to_owned)),
    })
}

/// Waits for the end, and says whether a signal asked for it.
fn wait(child: &mut Child, signals: &StopSignals) -> io::Result<(ExitStatus, bool)> {
    let mut stopped = false;
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok((status, stopped));
        }
        if signals.take().is_some() {
            stopped = true;
            // One that is gone has ended.
            let _ = signals::terminate(child.id());
        }
        thread::sleep(LOOK);
    }
}
