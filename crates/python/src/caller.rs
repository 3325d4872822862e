//! The program in Python that asks, and how it is kept alive while the answer is computed.

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

/// How often it is looked whether the user wants an end.
const INTERVAL: Duration = Duration::from_millis(50);

/// What a thread of commands has, too.
const STACK: usize = 8 << 20;

/// An answer: its document as JSON, and its text for people.
pub type Answer = (String, String);

/// Who asks.
pub struct Caller<'a> {
    answer: Option<Answer>,
    is_stopped: &'a AtomicBool,
}

/// What unwinds a prediction that nobody waits for any more.
struct Stopped;

impl Asker for Caller<'_> {
    fn show(&mut self, report: &impl Report) -> fault::Result<()> {
        self.answer = Some((becalm_report::json(report), becalm_report::text(report, Form::within(None))));
        Ok(())
    }

    fn tell(&self, message: fmt::Arguments<'_>) {
        Python::attach(|py| {
            let text = CString::new(message.to_string().replace('\0', " ")).unwrap_or_default();
            // Where warnings are made errors there is nobody to raise them to.
            let _ = PyErr::warn(py, &py.get_type::<PyUserWarning>(), &text, 1);
        });
    }

    fn reading(&self, _: &Bundle, _: u64) -> impl Sized {}

    fn comparing<'b>(&self, _: impl Iterator<Item = &'b Bundle> + Clone) -> impl Sized {}

    fn predicting(&self, _: u64) -> impl Steps {
        Watched(self.is_stopped)
    }
}

/// A prediction that ends when it is told to, at its next step.
struct Watched<'a>(&'a AtomicBool);

impl Watched<'_> {
    fn go_on(&self) {
        // Steps are told once more while those below are left.
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

/// Computes an answer on a thread of its own, while this one lets other Python threads run and looks for Ctrl-C. A prediction ends at
/// its next step then; what is being read is read to its end first.
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
            // The channel is closed also where the thread unwinds. Only one thread at a time may look at it, and so takes it whole.
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
