//! Exit codes: 0 done, 1 failed, 2 wrong usage, 3 a limit given by the user was exceeded.

use std::error::Error;
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::{ExitCode, ExitStatus};

use becalm_analyze::work::{Incomparable, WorkError};
use becalm_answer::AnswerError;
use becalm_bundle::BundleError;
use becalm_inject::InjectError;
use becalm_inject::program::ProgramError;
use becalm_measure::cost::CostError;
use becalm_measure::cost::tick::TickError;
use becalm_measure::{CpuError, RecordError};
use becalm_scale::ScaleError;
use becalm_tune::PlanError;
use becalm_tune::check::ChoiceError;

/// The way a command ended, which gives the exit status.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Exit {
    /// It did what was asked.
    Done,
    /// It could not do what was asked.
    Failed,
    /// It was asked for something that cannot be meant.
    Usage,
    /// It did what was asked, and a limit given by the user was exceeded.
    LimitExceeded,
    /// As the command that it ran did: its exit code, or 128 and the number of the signal that ended it.
    As(u8),
}

impl Exit {
    /// As a command that ended so.
    #[must_use]
    pub fn of(status: ExitStatus) -> Self {
        match (status.code(), status.signal()) {
            (Some(code), _) => Self::As(u8::try_from(code).unwrap_or(1)),
            (None, signal) => Self::of_signal(signal.unwrap_or(0)),
        }
    }

    /// The exit code of what a signal ended.
    #[must_use]
    pub fn of_signal(signal: i32) -> Self {
        Self::As(128 + u8::try_from(signal).unwrap_or(0))
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(match exit {
            Exit::Done => 0,
            Exit::Failed => 1,
            Exit::Usage => 2,
            Exit::LimitExceeded => 3,
            Exit::As(code) => code,
        })
    }
}

/// Arguments that parse but cannot be meant, found where they are used.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct UsageError(pub String);

/// The exit code of an error. The errors themselves know whether the user asked for something that cannot be meant; this is
/// the one place that asks them.
pub fn of_error(error: &anyhow::Error) -> Exit {
    if error.chain().any(is_usage) { Exit::Usage } else { Exit::Failed }
}

fn is_usage(cause: &(dyn Error + 'static)) -> bool {
    fn says<E: Error + 'static>(cause: &(dyn Error + 'static), is_usage: impl Fn(&E) -> bool) -> bool {
        cause.downcast_ref::<E>().is_some_and(is_usage)
    }
    cause.is::<UsageError>()
        || cause.is::<Incomparable>()
        || says(cause, |error| matches!(error, WorkError::Baseline(_)))
        || says(cause, ScaleError::is_usage)
        || says(cause, AnswerError::is_usage)
        || cause.is::<ProgramError>()
        || says(cause, InjectError::is_usage)
        || says(cause, CpuError::is_usage)
        || says(cause, RecordError::<BundleError>::is_usage)
        || says(cause, RecordError::<io::Error>::is_usage)
        || says(cause, CostError::is_usage)
        || says(cause, TickError::is_usage)
        || says(cause, PlanError::is_usage)
        || says(cause, ChoiceError::is_usage)
}

/// Whether the reader of our output went away (`becalm report RUN | head`), which is nothing to complain about.
pub fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let broken = |cause: &(dyn std::error::Error + 'static)| {
        cause.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
    };
    error.chain().any(broken)
}
