//! Why a recording failed.

use std::io;

use becalm_linux::clock::RateError;
use becalm_linux::memory::MemoryError;
use becalm_linux::sched::SchedError;
use becalm_units::{CpuId, Nanos};

use crate::preflight::CpuError;
use crate::work::Unsupported;

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
    /// A loop cannot be placed or get its scheduling class.
    #[error(transparent)]
    Sched(#[from] SchedError),
    /// The work cannot be done on this machine.
    #[error(transparent)]
    Work(#[from] Unsupported),
    /// The threshold lies within the loop's own steps.
    #[error(
        "the threshold of {threshold} is not above the loop's own shortest step of {t_min} on CPU {cpu}: \
         give at least {least}, or auto"
    )]
    Threshold {
        /// What was asked for.
        threshold: Nanos,
        /// The loop's shortest step.
        t_min: Nanos,
        /// On this CPU.
        cpu: CpuId,
        /// What would do.
        least: Nanos,
    },
    /// The command that was to run meanwhile cannot be started.
    #[error("cannot start the command '{command}': {source}")]
    Command {
        /// Its name.
        command: String,
        /// Why.
        r#source: io::Error,
    },
    /// Something of the system failed.
    #[error("cannot {action}: {source}")]
    System {
        /// What was attempted.
        action: &'static str,
        /// Why it failed.
        r#source: io::Error,
    },
    /// What was recorded cannot be stored.
    #[error(transparent)]
    Sink(S),
}

impl<S> RecordError<S> {
    /// Whether what was asked for cannot be meant, on this machine at least, rather than that it failed.
    pub const fn is_usage(&self) -> bool {
        matches!(self, Self::Threshold { .. } | Self::Work(_) | Self::Cpus(CpuError::Empty | CpuError::Unknown { .. }))
    }
}
