//! Recording a configuration by a process of its own, as a user would do it.

use std::process::{Command, Stdio};

use becalm_command::child::attend;
use becalm_linux::placed::{ProgramStart, begin_in};
use becalm_linux::relay::Relay;
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

/// Runs a program that records, and waits for its end. A signal is passed on to it, so that the recording ends in order and isolation is
/// undone. Fails if the program cannot be started or waited for. That it fails is no error.
pub fn record(mut command: Command, signals: &Relay) -> Result<RecordingEnd> {
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    begin_in(&mut command, ProgramStart::default(), Some(signals))?;
    let started = command.spawn();
    let mut child = started.with_context(|| format!("cannot start {}", command.get_program().display()))?;
    let said = reader(child.stderr.take());
    let (status, signal) = attend(child, signals).context("cannot wait for the recording")?;
    // What cannot be read was not said.
    let said = text(said).unwrap_or_default();
    Ok(match (signal, status.success()) {
        (Some(_), _) => RecordingEnd::Stopped,
        (None, true) => RecordingEnd::Whole,
        (None, false) => RecordingEnd::Failed(last_words(&said).map_or_else(|| status.to_string(), str::to_owned)),
    })
}
