//! Progress of the making of a page.

use std::time::{Duration, Instant};

use indicatif::ProgressBar;

use crate::progress;

/// What is over sooner shows nothing.
const PATIENCE: Duration = Duration::from_secs(2);

/// How far something is, and how long it will still take.
pub(super) struct Progress {
    /// None until it has taken a while.
    bar: Option<ProgressBar>,
    steps: u64,
    done: u64,
    what: &'static str,
    begun: Instant,
}

impl Progress {
    /// Of something with so many steps: `what` says what is being done.
    pub(super) fn new(what: &'static str, steps: u64) -> Self {
        Self { bar: None, steps, done: 0, what, begun: Instant::now() }
    }

    /// Some steps were done.
    pub(super) fn advance(&mut self, steps: u64) {
        self.done += steps;
        if let Some(bar) = &self.bar {
            bar.set_position(self.done);
        } else if self.begun.elapsed() >= PATIENCE {
            let bar = progress::bar(self.steps, "{msg} {wide_bar} {percent}%, {eta} left").with_elapsed(PATIENCE);
            bar.set_message(self.what);
            bar.set_position(self.done);
            self.bar = Some(bar);
        }
    }

    /// What is done from now on.
    pub(super) fn say(&mut self, what: &'static str) {
        self.what = what;
        if let Some(bar) = &self.bar {
            bar.set_message(what);
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
