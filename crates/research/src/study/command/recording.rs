//! Records a configuration in its own process, started like a user's command.

use std::process::{Command, Stdio};

use becalm_command::child::attend;
use becalm_linux::placed::{ProgramStart, begin_in};
use becalm_linux::relay::Relay;
use becalm_units::fault::{Context, Result};

use crate::child::{last_words, reader, text};

/// How the recording of a configuration ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum RecordingEnd {
    /// The recording is complete.
    Whole,
    /// It failed, with this last message.
    Failed(String),
    /// A signal ends the study.
    Stopped,
}

/// Runs a recording program, and waits for its end. Passes a signal on to it, so the recording ends in order and isolation is undone. Fails
/// if the program cannot be started or waited for; a failed recording is no error.
pub fn record(mut command: Command, signals: &Relay) -> Result<RecordingEnd> {
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    begin_in(&mut command, ProgramStart::default(), Some(signals))?;
    let started = command.spawn();
    let mut child = started.with_context(|| format!("cannot start {}", command.get_program().display()))?;
    let said = reader(child.stderr.take());
    let (status, signal) = attend(child, signals).context("cannot wait for the recording")?;
    // Unreadable output counts as none.
    let said = text(said).unwrap_or_default();
    Ok(match (signal, status.success()) {
        (Some(_), _) => RecordingEnd::Stopped,
        (None, true) => RecordingEnd::Whole,
        (None, false) => RecordingEnd::Failed(last_words(&said).map_or_else(|| status.to_string(), str::to_owned)),
    })
}
