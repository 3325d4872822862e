//! Reasons why a recording fails.

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

/// The reason why a recording could not be made or finished.
#[derive(Debug, thiserror::Error)]
pub enum RecordError<S> {
    /// The CPUs cannot be measured.
    #[error(transparent)]
    Cpus(#[from] CpuError),
    /// The counter cannot be used.
    #[error(transparent)]
    Rate(#[from] RateError),
    /// A buffer could not be allocated.
    #[error(transparent)]
    Memory(#[from] MemoryError),
    /// The recorder cannot be placed or given its scheduling class.
    #[error(transparent)]
    Sched(#[from] SchedError),
    /// Loops of the highest priority on every CPU would leave nothing that could stop the recording.
    #[error(
        "at real-time priority 99 on every CPU that this process may use, nothing would be left that could end the recording: \
         98 is the highest there, or leave one CPU out"
    )]
    NothingAbove,
    /// A loop cannot measure on its CPU.
    #[error(transparent)]
    Loop(#[from] LoopError),
    /// A measuring thread panicked, so its measurements are lost.
    #[error("the measuring thread on CPU {0} failed by a fault of becalm's own")]
    Panicked(CpuId),
    /// The kernel's trace could not be used: the attempt (worded to follow "cannot") and the reason.
    #[error("cannot {0}: {1}")]
    Trace(&'static str, TracefsError),
    /// The process could not drop its privileges, and does not continue with them.
    #[error(transparent)]
    Rights(#[from] RightsError),
    /// The accompanying command, a program of this name, could not be started.
    #[error("cannot start the command '{0}': {1}")]
    Command(String, io::Error),
    /// A system call failed: the attempt (worded to follow "cannot") and the reason.
    #[error("cannot {0}: {1}")]
    System(&'static str, io::Error),
    /// The sink could not store the data.
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
