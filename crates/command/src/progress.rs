//! Progress on standard error, with the time left, if it is a terminal and the work takes long enough.
//!
//! The owner of a [`Bar`] updates it; [`ReadingProgress`] watches the reading of runs from its own thread. During measurements no such
//! thread may run: it would be noise.

use std::io::{self, IsTerminal, Write};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use becalm_bundle::{Bundle, ReadProgress};
use becalm_linux::terminal;
use becalm_units::printable;

use crate::messages;

/// Shorter work shows no progress.
const SOON: Duration = Duration::from_secs(1);

/// How often a bar is drawn.
const INTERVAL: Duration = Duration::from_millis(200);

/// The figures after a bar.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Tail {
    /// The share done, and the time left at the same rate.
    TimeLeft,
    /// The share done.
    Percent,
    /// The steps done, and all steps.
    Steps,
}

/// A progress line on the terminal, from its second second on until dropped. Drawn at updates; hidden if standard error is no terminal that
/// can place its cursor.
#[derive(Debug)]
pub struct Bar(Option<Mutex<Line>>);

impl Bar {
    /// A bar with this many steps; `what` names the work.
    pub fn new(what: impl Into<String>, steps: u64, tail: Tail) -> Self {
        if messages::terminal_is_dumb() || !io::stderr().is_terminal() {
            return Self::hidden();
        }
        let begun = Instant::now();
        Self(Some(Mutex::new(Line { what: what.into(), tail, steps, done: 0, begun, drawn: None })))
    }

    /// A bar that is never drawn.
    pub const fn hidden() -> Self {
        Self(None)
    }

    /// Whether it is never drawn.
    pub const fn is_hidden(&self) -> bool {
        self.0.is_none()
    }

    /// Changes the name of the work.
    pub fn say(&self, what: impl Into<String>) {
        self.change(|line| line.what = what.into());
    }

    /// Adds steps.
    pub fn advance(&self, steps: u64) {
        self.change(|line| line.done = line.done.saturating_add(steps));
    }

    /// Sets the number of steps done.
    pub fn reach(&self, done: u64) {
        self.change(|line| line.done = done);
    }

    fn change(&self, change: impl FnOnce(&mut Line)) {
        if let Some(mut line) = self.line() {
            change(&mut line);
            line.draw_if_due();
        }
    }

    fn line(&self) -> Option<MutexGuard<'_, Line>> {
        self.0.as_ref().map(|line| line.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        if self.line().is_some_and(|line| line.drawn.is_some()) {
            let _ = write!(io::stderr(), "\r\u{1b}[K");
        }
    }
}

#[derive(Debug)]
struct Line {
    what: String,
    tail: Tail,
    steps: u64,
    done: u64,
    begun: Instant,
    drawn: Option<Instant>,
}

impl Line {
    fn draw_if_due(&mut self) {
        let is_due = self.drawn.map_or(self.begun.elapsed() >= SOON, |drawn| drawn.elapsed() >= INTERVAL);
        if is_due {
            let columns = terminal::size(io::stderr()).columns.map_or(80, usize::from);
            let _ = write!(io::stderr(), "\r{}\u{1b}[K", self.text(columns.saturating_sub(1), self.begun.elapsed()));
            self.drawn = Some(Instant::now());
        }
    }

    /// The line at this width, after this time.
    fn text(&self, columns: usize, elapsed: Duration) -> String {
        let steps = self.steps.max(1);
        let done = self.done.min(steps);
        let percent = done as f64 / steps as f64 * 100.0;
        let tail = match self.tail {
            Tail::TimeLeft => format!("{percent:.0}%, {} left", self.time_left(elapsed)),
            Tail::Percent => format!("{percent:.0}%"),
            Tail::Steps => format!("{done} of {steps}"),
        };
        let what = printable(&self.what).to_string();
        let room = columns.saturating_sub(what.chars().count() + tail.chars().count() + 2);
        let full = (room as f64 * percent / 100.0) as usize;
        let line = format!("{what} {}{} {tail}", "\u{2588}".repeat(full), "\u{2591}".repeat(room - full));
        line.chars().take(columns).collect()
    }

    /// The time left at the same rate.
    fn time_left(&self, elapsed: Duration) -> String {
        let left = elapsed.as_secs_f64() * self.steps.saturating_sub(self.done) as f64 / self.done.max(1) as f64;
        match left {
            left if left < 120.0 => format!("{left:.0}s"),
            left if left < 7_200.0 => format!("{:.0}m", left / 60.0),
            left => format!("{:.0}h", left / 3_600.0),
        }
    }
}

/// Shows the progress of reading runs, until dropped.
pub struct ReadingProgress(Option<(Sender<()>, JoinHandle<()>)>);

impl ReadingProgress {
    /// For a run that will be read `times` times.
    pub fn begin(bundle: &Bundle, times: u64) -> Self {
        Self::watch("reading", bundle.bytes().saturating_mul(times), vec![bundle.progress()])
    }

    /// For runs to compare: the detours of each are read twice, its activities once.
    pub fn to_compare<'a>(bundles: impl Iterator<Item = &'a Bundle> + Clone) -> Self {
        let bytes = bundles.clone().map(|bundle| bundle.bytes().saturating_add(bundle.detour_bytes()));
        Self::watch("comparing", bytes.sum(), bundles.map(Bundle::progress).collect())
    }

    /// For the recordings of a study: each configuration is summarized, simulated, and compared with the first.
    pub fn to_study(configurations: &[Vec<Bundle>]) -> Self {
        let bytes = |runs: &[Bundle], times: u64| -> u64 { runs.iter().map(|bundle| bundle.bytes() * times).sum() };
        let baseline = configurations.first().map_or(0, |runs| bytes(runs, 2));
        let all = configurations.iter().map(|runs| baseline.saturating_add(bytes(runs, 4))).sum();
        Self::watch("reading", all, configurations.iter().flatten().map(Bundle::progress).collect())
    }

    fn watch(what: &'static str, bytes: u64, progress: Vec<ReadProgress>) -> Self {
        let bar = Bar::new(what, bytes, Tail::TimeLeft);
        if bar.is_hidden() {
            return Self(None);
        }
        let (stop, stopped) = mpsc::channel();
        let watch = move || {
            let mut patience = SOON;
            while stopped.recv_timeout(patience) == Err(RecvTimeoutError::Timeout) {
                let read: u64 = progress.iter().map(ReadProgress::bytes).sum();
                bar.reach(read);
                patience = INTERVAL;
            }
        };
        // Without a thread there is no bar, which does no harm.
        Self(thread::Builder::new().spawn(watch).ok().map(|thread| (stop, thread)))
    }
}

impl Drop for ReadingProgress {
    fn drop(&mut self) {
        if let Some((stop, thread)) = self.0.take() {
            drop(stop);
            // Removes the bar before anything else is printed.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_as_wide_as_the_terminal_and_says_what_is_left() {
        let line =
            |tail, done| Line { what: "reading".into(), tail, steps: 200, done, begun: Instant::now(), drawn: None };
        let text = line(Tail::TimeLeft, 50).text(60, Duration::from_secs(5));
        assert!(text.starts_with("reading \u{2588}") && text.ends_with("\u{2591} 25%, 15s left"), "{text}");
        assert_eq!(text.chars().count(), 60);
        assert!(line(Tail::Steps, 500).text(60, SOON).ends_with("\u{2588} 200 of 200"));
        assert_eq!(line(Tail::Percent, 50).text(5, SOON), "readi");
        assert!(line(Tail::TimeLeft, 1).text(60, Duration::from_secs(100)).ends_with("6h left"));
    }
}
