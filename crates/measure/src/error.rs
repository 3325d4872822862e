//! The ways in which a recording can fail.

use std::io;

use becalm_linux::clock::RateError;
use becalm_linux::ftrace::TracefsError;
use becalm_linux::memory::MemoryError;
use becalm_linux::rights::RightsError;
use becalm_linux::sched::SchedError;
use becalm_units::CpuId;
use becalm_units::fault::{Fault, Wording};

use crate::loops::{LoopError, ThreadError};
use crate::machine::CpuError;

/// A recording that could not be made, or not be finished.
#[derive(Debug, thiserror::Error)]
pub enum RecordError<S> {
    /// The CPUs cannot be measured.
    #[error(transparent)]
    Cpus(#[from] CpuError),
    /// The counter cannot be used.
    #[error(transparent)]
    Rate(#[from] RateError),
    /// A buffer cannot be had.
    #[error(transparent)]
    Memory(#[from] MemoryError),
    /// The recorder cannot be placed or get its scheduling class.
    #[error(transparent)]
    Sched(#[from] SchedError),
    /// The loops would be of the highest priority on every CPU, and nothing could end them.
    #[error(
        "at real-time priority 99 on every CPU that this process may use, nothing would be left that could end the recording: \
         98 is the highest there, or leave one CPU out"
    )]
    NothingAbove,
    /// A loop cannot measure on its CPU.
    #[error(transparent)]
    Loop(#[from] LoopError),
    /// A measuring thread ended by a fault of its own, so that nothing is known of what it measured.
    #[error("the measuring thread on CPU {0} failed by a fault of becalm's own")]
    Panicked(CpuId),
    /// The kernel's trace could not be used: what was attempted, as it follows "cannot", and why it failed.
    #[error("cannot {0}: {1}")]
    Trace(&'static str, TracefsError),
    /// The process cannot give up its rights, and does not go on with them.
    #[error(transparent)]
    Rights(#[from] RightsError),
    /// The command that was to run meanwhile, with a program of this name, cannot be started.
    #[error("cannot start the command '{0}': {1}")]
    Command(String, io::Error),
    /// Something of the system failed: what was attempted, as it follows "cannot", and why it failed.
    #[error("cannot {0}: {1}")]
    System(&'static str, io::Error),
    /// What was recorded cannot be stored.
    #[error(transparent)]
    Sink(S),
}

impl<S: Fault + 'static> Fault for RecordError<S> {
    fn is_usage(&self) -> bool {
        match self {
            Self::Cpus(error) => error.is_usage(),
            Self::Loop(error) => error.is_usage(),
            Self::NothingAbove => true,
            _ => false,
        }
    }

    fn hint(&self) -> Option<Wording> {
        match self {
            Self::Cpus(error) => error.hint(),
            Self::Sink(error) => error.hint(),
            _ => None,
        }
    }
}

impl<S> From<ThreadError> for RecordError<S> {
    fn from(error: ThreadError) -> Self {
        match error {
            ThreadError::Spawn(source) => Self::System("start a measuring thread", source),
            ThreadError::Loop(error) => Self::Loop(error),
            ThreadError::Panicked(cpu) => Self::Panicked(cpu),
        }
    }
}
