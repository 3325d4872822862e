//! Why the probes of the clock, of traps and of detours could not be measured.

use becalm_linux::clock::RateError;
use becalm_linux::sched::SchedError;

use crate::machine::CpuError;

/// Why nothing could be measured at all.
#[derive(Debug, thiserror::Error)]
pub enum CostError {
    /// The CPU cannot be used.
    #[error(transparent)]
    Cpu(#[from] CpuError),
    /// The counter cannot be used.
    #[error(transparent)]
    Rate(#[from] RateError),
    /// The thread cannot be placed or get its scheduling class.
    #[error(transparent)]
    Sched(#[from] SchedError),
}

impl CostError {
    /// Whether what was asked for cannot be meant, on this machine at least, rather than that it failed.
    #[must_use]
    pub const fn is_usage(&self) -> bool {
        match self {
            Self::Cpu(error) => error.is_usage(),
            _ => false,
        }
    }
}
