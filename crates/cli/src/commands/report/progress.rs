//! Progress of what takes a while, on a terminal's standard error.

use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// What is over sooner shows nothing.
const PATIENCE: Duration = Duration::from_secs(2);

/// How far something is, and how long it will still take.
pub(super) struct Progress {
    bar: ProgressBar,
    begun: Instant,
    shown: bool,
}

impl Progress {
    /// Of something with so many steps: `what` says what is being done.
    pub(super) fn new(what: &'static str, steps: u64) -> Self {
        let bar = ProgressBar::with_draw_target(Some(steps), ProgressDrawTarget::hidden());
        let style = ProgressStyle::with_template("{msg} {wide_bar} {percent}%, {eta} left");
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        bar.set_message(what);
        Self { bar, begun: Instant::now(), shown: false }
    }

    /// Some steps were done.
    pub(super) fn advance(&mut self, steps: u64) {
        self.bar.inc(steps);
        if !self.shown && self.begun.elapsed() >= PATIENCE {
            self.shown = true;
            // Where standard error is no terminal, nothing is drawn.
            self.bar.set_draw_target(ProgressDrawTarget::stderr());
        }
    }

    /// What is done from now on.
    pub(super) fn say(&self, what: &'static str) {
        self.bar.set_message(what);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
