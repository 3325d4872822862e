//! Errors of the probes of the clock, of traps and of detours.

use becalm_linux::clock::RateError;
use becalm_linux::sched::SchedError;
use becalm_measure::machine::CpuError;
use becalm_units::fault::{Fault, Wording};

/// The reason why nothing could be measured.
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

impl Fault for CostError {
    fn is_usage(&self) -> bool {
        if let Self::Cpu(error) = self { error.is_usage() } else { false }
    }

    fn hint(&self) -> Option<Wording> {
        if let Self::Cpu(error) = self { error.hint() } else { None }
    }
}
