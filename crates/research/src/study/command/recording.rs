//! Recording a configuration by a process of its own, as a user would do it.

use std::io::{self, Read};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::Duration;

use becalm_linux::signals::{self, StopSignals};
use becalm_units::fault::{Context, Result};

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
    // Or a recording with much to say would wait for its reader forever.
    let said = child.stderr.take().and_then(|mut stderr| {
        let read = move || {
            let mut said = Vec::new();
            // What cannot be read was not said.
            let _ = stderr.read_to_end(&mut said);
            String::from_utf8_lossy(&said).into_owned()
        };
        // Without a reader nobody is waited for: the other end is closed.
        thread::Builder::new().spawn(read).ok()
    });
    let (status, stopped) = wait(&mut child, signals).context("cannot wait for the recording")?;
    let said = said.and_then(|said| said.join().ok()).unwrap_or_default();
    Ok(match (stopped, status.success()) {
        (true, _) => RecordingEnd::Stopped,
        (false, true) => RecordingEnd::Whole,
        (false, false) => RecordingEnd::Failed(last_words(&said, &status.to_string())),
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

/// The last line of messages without the program's name, or how the process ended.
fn last_words(said: &str, status: &str) -> String {
    let last = said.lines().rev().map(str::trim).find(|line| !line.is_empty());
    last.map_or_else(|| status.to_owned(), |line| line.strip_prefix("becalm: ").unwrap_or(line).to_owned())
}

#[cfg(test)]
mod tests {
    use super::last_words;

    #[test]
    fn the_last_words_say_why() {
        assert_eq!(
            last_words("becalm: 1\nbecalm: cannot set the class rr:80\n\n", "exit status: 1"),
            "cannot set the class rr:80"
        );
        assert_eq!(last_words(" \n", "exit status: 1"), "exit status: 1");
    }
}
