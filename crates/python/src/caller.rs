//! The calling Python program, and how it stays responsive while an answer is computed.

use std::ffi::CString;
use std::fmt;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use becalm_answer::{Asker, Steps};
use becalm_bundle::Bundle;
use becalm_report::{Form, Report};
use becalm_units::fault;
use pyo3::exceptions::PyUserWarning;
use pyo3::prelude::*;

use crate::error;

/// The interval of checks for Ctrl-C.
const INTERVAL: Duration = Duration::from_millis(50);

/// As in threads of commands.
const STACK: usize = 8 << 20;

/// An answer: its document as JSON, and its text.
pub type Answer = (String, String);

/// The caller.
pub struct Caller<'a> {
    answer: Option<Answer>,
    is_stopped: &'a AtomicBool,
}

/// The panic payload that ends an abandoned prediction.
struct Stopped;

impl Asker for Caller<'_> {
    fn show(&mut self, report: &impl Report) -> fault::Result<()> {
        self.answer = Some((becalm_report::json(report), becalm_report::text(report, Form::within(None))));
        Ok(())
    }

    fn tell(&self, message: fmt::Arguments<'_>) {
        Python::attach(|py| {
            let text = CString::new(message.to_string().replace('\0', " ")).unwrap_or_default();
            // If warnings are errors, there is no caller to raise them to.
            let _ = PyErr::warn(py, &py.get_type::<PyUserWarning>(), &text, 1);
        });
    }

    fn reading(&self, _: &Bundle, _: u64) -> impl Sized {}

    fn comparing<'b>(&self, _: impl Iterator<Item = &'b Bundle> + Clone) -> impl Sized {}

    fn predicting(&self, _: u64) -> impl Steps {
        Watched(self.is_stopped)
    }
}

/// A prediction that can be stopped at its next step.
struct Watched<'a>(&'a AtomicBool);

impl Watched<'_> {
    fn go_on(&self) {
        // Unwinding may report steps again.
        if self.0.load(Ordering::Relaxed) && !thread::panicking() {
            resume_unwind(Box::new(Stopped));
        }
    }
}

impl Steps for Watched<'_> {
    fn say(&self, _: String) {
        self.go_on();
    }

    fn advance(&self, _: u64) {
        self.go_on();
    }

    fn reach(&self, _: u64) {
        self.go_on();
    }
}

/// Computes an answer on its own thread, while this one lets other Python threads run and checks for Ctrl-C. A prediction then ends at its
/// next step; reading is completed first.
pub fn ask<F>(py: Python<'_>, question: F) -> PyResult<Answer>
where
    F: FnOnce(&mut Caller<'_>) -> fault::Result<()> + Send,
{
    let is_stopped = AtomicBool::new(false);
    let is_stopped = &is_stopped;
    thread::scope(|scope| {
        let (done, mut is_done) = mpsc::channel::<()>();
        let work = move || {
            let mut caller = Caller { answer: None, is_stopped };
            let answered = question(&mut caller).map(|()| caller.answer);
            drop(done);
            answered
        };
        let thread = thread::Builder::new().stack_size(STACK).spawn_scoped(scope, work)?;
        let mut raised = None;
        loop {
            // Unwinding closes the channel as well. The receiver is not `Sync`, so the closure takes an exclusive reference.
            let is_done = &mut is_done;
            if py.detach(move || is_done.recv_timeout(INTERVAL)) != Err(RecvTimeoutError::Timeout) {
                break;
            }
            if let Err(signal) = py.check_signals() {
                is_stopped.store(true, Ordering::Relaxed);
                raised.get_or_insert(signal);
            }
        }
        let joined = py.detach(|| thread.join());
        match (joined, raised) {
            (Err(payload), None) => resume_unwind(payload),
            (Err(payload), Some(_)) if !payload.is::<Stopped>() => resume_unwind(payload),
            (_, Some(signal)) => Err(signal),
            (Ok(Err(failed)), None) => Err(error::exception(failed)),
            (Ok(Ok(answer)), None) => answer.ok_or_else(|| error::BecalmError::new_err("there is no answer")),
        }
    })
}
