//! What keeps noise from being made as it was asked for.

use becalm_linux::clock::RateError;
use becalm_linux::sched::SchedError;
use becalm_units::{CpuId, Nanos};

/// Noise that cannot be made here.
#[derive(Debug, thiserror::Error)]
pub enum InjectError {
    /// A CPU, a class or a priority that is refused.
    #[error("cannot take CPU {cpu} from whoever runs there: {source}")]
    Sched {
        /// Where.
        cpu: CpuId,
        /// Why.
        source: SchedError,
    },
    /// The counter cannot be used.
    #[error("cannot time detours: {0}")]
    Clock(#[from] RateError),
    /// The cost of a detour could not be measured.
    #[error(
        "cannot measure what a detour costs on CPU {cpu}: only {seen} of {rounds} were seen by a thread there; is the CPU \
         kept busy by real-time threads?"
    )]
    Toll {
        /// Where.
        cpu: CpuId,
        /// Trial detours that were seen.
        seen: usize,
        /// Trial detours.
        rounds: usize,
    },
    /// Shorter than taking the CPU and giving it back.
    #[error("a detour of {length} is too short: to take CPU {cpu} and give it back takes {shortest} here")]
    Short {
        /// Where.
        cpu: CpuId,
        /// The length asked for.
        length: Nanos,
        /// The shortest that can be made.
        shortest: Nanos,
    },
    /// No time to go on between detours.
    #[error(
        "detours {gap} apart are too close: on CPU {cpu} it takes {shortest} to give the CPU back and to take it again"
    )]
    Close {
        /// Where.
        cpu: CpuId,
        /// The shortest time between two of them.
        gap: Nanos,
        /// The shortest time that leaves room to go on.
        shortest: Nanos,
    },
    /// The kernel's limit on real-time threads is in the way.
    #[error(
        "the kernel lets real-time threads run {runtime} of every {period} only, and {asked} is asked for; to lift that: \
         sysctl kernel.sched_rt_runtime_us=-1"
    )]
    Throttled {
        /// What it lets them run.
        runtime: Nanos,
        /// Of every period.
        period: Nanos,
        /// What is too much, in words.
        asked: String,
    },
    /// A thread could not be started.
    #[error("cannot start a thread: {0}")]
    Thread(std::io::Error),
    /// Memory for the log.
    #[error("cannot keep a log of {entries} detours: {source}")]
    Log {
        /// How many.
        entries: usize,
        /// Why.
        source: std::io::Error,
    },
}
