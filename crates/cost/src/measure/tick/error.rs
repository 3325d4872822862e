//! Errors of measurements of ticks.

use std::io;

use becalm_linux::file::FileError;
use becalm_linux::ftrace::{DecodeError, TracefsError};
use becalm_linux::perf::{CountersError, PerfError};
use becalm_linux::placed::ProcessesError;
use becalm_linux::sched::{ParsePolicyError, SchedError};
use becalm_measure::machine::CpuError;
use becalm_measure::work::Unsupported;
use becalm_units::CpuId;
use becalm_units::fault::{self, Fault, Wording};

/// The error of a measurement of ticks.
#[derive(Debug, thiserror::Error)]
pub enum TickError {
    /// The CPU cannot be measured.
    #[error(transparent)]
    Cpu(#[from] CpuError),
    /// A thread cannot be placed.
    #[error(transparent)]
    Sched(#[from] SchedError),
    /// Copies cannot be processes.
    #[error(transparent)]
    Processes(#[from] ProcessesError),
    /// The perf event that causes the interrupts failed.
    #[error(transparent)]
    Perf(#[from] PerfError),
    /// The processor's counters cannot be read.
    #[error(transparent)]
    Counters(#[from] CountersError),
    /// A stored plan names no scheduling class.
    #[error(transparent)]
    Policy(#[from] ParsePolicyError),
    /// The kernel's counts cannot be read.
    #[error(transparent)]
    File(#[from] FileError),
    /// The kernel's trace is unavailable.
    #[error("cannot record the kernel's timer interrupts: {0}")]
    Tracefs(TracefsError),
    /// The kernel's trace cannot be decoded.
    #[error("cannot understand the kernel's trace of CPU {cpu}: {source}")]
    Trace {
        /// The CPU whose trace it is.
        cpu: CpuId,
        /// The reason.
        r#source: DecodeError,
    },
    /// Another program changed the kernel's trace meanwhile.
    #[error(
        "another program changed becalm's trace ({0}) while it recorded timer interrupts: measure again without it"
    )]
    TraceChanged(String),
    /// The work cannot be done on this architecture.
    #[error(transparent)]
    Work(#[from] Unsupported),
    /// The measurement could not be stored.
    #[error("{0}")]
    Store(fault::Error),
    /// The kernel does not count timer interrupts where becalm looks.
    #[error("/proc/interrupts has no count of the timer interrupts of CPU {0}: neither LOC nor a device named timer")]
    NoTimerCount(CpuId),
    /// The kernel has no perf events.
    #[error("the interrupt rate cannot be raised: this kernel was built without perf events")]
    NoPerf,
    /// The requested rate exceeds the kernel's limit.
    #[error(
        "{rate_hz} interrupts a second exceed the kernel's limit: kernel.perf_event_max_sample_rate is {limit_hz}; \
         leave that rate out, or raise the limit with sysctl"
    )]
    RateLimit {
        /// The requested interrupts per second.
        rate_hz: u32,
        /// The kernel's limit, in interrupts per second.
        limit_hz: u32,
    },
    /// A system call failed.
    #[error("cannot {action}: {source}")]
    System {
        /// The action, to follow "cannot".
        action: &'static str,
        /// The error of the system call.
        r#source: io::Error,
    },
}

impl Fault for TickError {
    fn is_usage(&self) -> bool {
        match self {
            Self::RateLimit { .. } | Self::Perf(PerfError::Rate { .. }) => true,
            Self::Cpu(error) => error.is_usage(),
            _ => false,
        }
    }

    fn hint(&self) -> Option<Wording> {
        match self {
            Self::Cpu(error) => error.hint(),
            Self::Store(error) => error.hint(),
            _ => None,
        }
    }
}

impl From<TracefsError> for TickError {
    fn from(error: TracefsError) -> Self {
        Self::Tracefs(error)
    }
}
