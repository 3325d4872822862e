//! Progress on standard error, with the time left, where somebody looks and it takes long enough.
//!
//! [`Steps`] is told by its owner how far it is; [`ReadingProgress`] watches the reading of runs from a thread of its own. While
//! becalm measures, nothing here may have such a thread: that would be noise.

use std::io::{self, IsTerminal};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use becalm_bundle::{Bundle, ReadProgress};
use indicatif::{ProgressBar, ProgressStyle};

use crate::messages;

/// What is over before that shows nothing.
const SOON: Duration = Duration::from_secs(1);

/// What a bar shows in front of how much is done and how much time is left.
const TEMPLATE: &str = "{msg} {wide_bar} {percent}%, {eta} left";

/// How often a bar is drawn.
const INTERVAL: Duration = Duration::from_millis(200);

/// A bar of so many steps, as the template says; hidden where standard error is no terminal, or one that cannot place its
/// cursor.
pub fn bar(steps: u64, template: &str) -> ProgressBar {
    if messages::terminal_is_dumb() || !io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let style = ProgressStyle::with_template(template);
    ProgressBar::new(steps).with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
}

/// How far something is that tells of each step, and how long it will still take; shown until it is dropped.
pub struct Steps {
    /// None until it has taken a while.
    bar: Option<ProgressBar>,
    steps: u64,
    done: u64,
    what: &'static str,
    begun: Instant,
}

impl Steps {
    /// Begins something that has so many steps: `what` says what is being done.
    pub fn new(what: &'static str, steps: u64) -> Self {
        Self { bar: None, steps, done: 0, what, begun: Instant::now() }
    }

    /// Notes that this many more steps were done.
    pub fn advance(&mut self, steps: u64) {
        self.done = self.done.saturating_add(steps).min(self.steps);
        if let Some(bar) = &self.bar {
            bar.set_position(self.done);
        } else if self.begun.elapsed() >= SOON {
            let bar = bar(self.steps, TEMPLATE).with_elapsed(self.begun.elapsed());
            bar.set_message(self.what);
            bar.set_position(self.done);
            self.bar = Some(bar);
        }
    }

    /// What is done from now on.
    pub fn say(&mut self, what: &'static str) {
        self.what = what;
        if let Some(bar) = &self.bar {
            bar.set_message(what);
        }
    }
}

impl Drop for Steps {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

/// Shows, until it is dropped, how much of runs was read.
pub struct ReadingProgress(Option<(Sender<()>, JoinHandle<()>)>);

impl ReadingProgress {
    /// Of a run that is going to be read so many times.
    pub fn begin(bundle: &Bundle, times: u64) -> Self {
        Self::watch("reading", bundle.bytes().saturating_mul(times), vec![bundle.progress()])
    }

    /// Of runs that are going to be compared: each one's detours are read twice, its activities once.
    pub fn to_compare<'a>(bundles: impl Iterator<Item = &'a Bundle> + Clone) -> Self {
        let bytes = bundles.clone().map(|bundle| bundle.bytes().saturating_add(bundle.detour_bytes()));
        Self::watch("comparing", bytes.sum(), bundles.map(Bundle::progress).collect())
    }

    /// Of the recordings of a study: those of each configuration are summarized and simulated, and compared with those of the first.
    pub fn to_study(configurations: &[Vec<Bundle>]) -> Self {
        let bytes = |runs: &[Bundle], times: u64| -> u64 { runs.iter().map(|bundle| bundle.bytes() * times).sum() };
        let baseline = configurations.first().map_or(0, |runs| bytes(runs, 2));
        let all = configurations.iter().map(|runs| baseline.saturating_add(bytes(runs, 4))).sum();
        Self::watch("reading", all, configurations.iter().flatten().map(Bundle::progress).collect())
    }

    fn watch(what: &'static str, bytes: u64, progress: Vec<ReadProgress>) -> Self {
        let bar = bar(bytes, TEMPLATE);
        if bar.is_hidden() {
            return Self(None);
        }
        bar.set_message(what);
        let (stop, stopped) = mpsc::channel();
        let watch = move || {
            let mut patience = SOON;
            while stopped.recv_timeout(patience) == Err(RecvTimeoutError::Timeout) {
                let read: u64 = progress.iter().map(ReadProgress::bytes).sum();
                bar.set_position(read.min(bytes));
                patience = INTERVAL;
            }
            bar.finish_and_clear();
        };
        // Without a thread there is no bar, and no harm.
        Self(thread::Builder::new().spawn(watch).ok().map(|thread| (stop, thread)))
    }
}

impl Drop for ReadingProgress {
    fn drop(&mut self) {
        if let Some((stop, thread)) = self.0.take() {
            drop(stop);
            // The bar is gone before anything else is printed.
            let _ = thread.join();
        }
    }
}
