//! Progress on standard error, with the time left, where somebody looks and it takes long enough.
//!
//! While becalm measures, nothing here may have a thread of its own: that would be noise.

use std::env;
use std::io::{self, IsTerminal};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use becalm_trace::bundle::Bundle;
use indicatif::{ProgressBar, ProgressStyle};

/// What is over before that shows nothing.
const SOON: Duration = Duration::from_secs(1);

/// How often a bar is drawn.
const INTERVAL: Duration = Duration::from_millis(200);

/// A bar of so many steps, as the template says; hidden where standard error is no terminal, or one that cannot place its
/// cursor.
pub fn bar(steps: u64, template: &str) -> ProgressBar {
    let dumb = env::var_os("TERM").is_none_or(|term| term.is_empty() || term == "dumb");
    if dumb || !io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let style = ProgressStyle::with_template(template);
    ProgressBar::new(steps).with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
}

/// Shows, until it is dropped, how much of a run was read.
pub struct Reading(Option<(Sender<()>, JoinHandle<()>)>);

impl Reading {
    /// Of a run that is going to be read so many times.
    pub fn of(bundle: &Bundle, times: u64) -> Self {
        let bytes = bundle.bytes().saturating_mul(times);
        let bar = bar(bytes, "reading {wide_bar} {percent}%, {eta} left");
        if bar.is_hidden() {
            return Self(None);
        }
        let progress = bundle.progress();
        let (stop, stopped) = mpsc::channel();
        let watch = move || {
            let mut patience = SOON;
            while stopped.recv_timeout(patience) == Err(RecvTimeoutError::Timeout) {
                bar.set_position(progress.bytes().min(bytes));
                patience = INTERVAL;
            }
            bar.finish_and_clear();
        };
        // Without a thread there is no bar, and no harm.
        Self(thread::Builder::new().spawn(watch).ok().map(|thread| (stop, thread)))
    }
}

impl Drop for Reading {
    fn drop(&mut self) {
        if let Some((stop, thread)) = self.0.take() {
            drop(stop);
            // The bar is gone before anything else is printed.
            let _ = thread.join();
        }
    }
}
