//! What keeps noise from being made as it was asked for.

use becalm_linux::clock::RateError;
use becalm_linux::sched::SchedError;
use becalm_units::{CpuId, Nanos};

use crate::program::ProgramError;

/// Noise that cannot be made here.
#[derive(Debug, thiserror::Error)]
pub enum InjectError {
    /// A CPU, a class or a priority that is refused.
    #[error("cannot take CPU {cpu} from whoever runs there: {source}")]
    Sched {
        /// Where.
        cpu: CpuId,
        /// Why.
        r#source: SchedError,
    },
    /// The counter cannot be used.
    #[error("cannot time detours: {0}")]
    Clock(RateError),
    /// The cost of a detour could not be measured.
    #[error(
        "cannot measure what a detour costs on CPU {cpu}: a thread there saw only {seen} of {rounds} trials, and \
         {needed} are needed; is the CPU kept busy by real-time threads?"
    )]
    Toll {
        /// Where.
        cpu: CpuId,
        /// Trial detours that were seen.
        seen: usize,
        /// Trial detours.
        rounds: usize,
        /// How many have to be seen.
        needed: usize,
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
    /// Shorter than a signal.
    #[error("a detour of {length} is too short: a signal and its handler take {shortest} here")]
    ShortSignal {
        /// The length asked for.
        length: Nanos,
        /// The shortest that can be made.
        shortest: Nanos,
    },
    /// No time to go on between signals.
    #[error("detours {gap} apart are too close: from one signal's handler to the next it takes {shortest} here")]
    CloseSignals {
        /// The shortest time between two of them.
        gap: Nanos,
        /// The shortest time that leaves room to go on.
        shortest: Nanos,
    },
    /// A program that the library does not reach.
    #[error(transparent)]
    Program(#[from] ProgramError),
    /// No memory to share with the program.
    #[error("cannot make the memory that the noise in a program needs: {0}")]
    Memory(std::io::Error),
    /// No library.
    #[error("there is no library for this kind of processor or C library; leave out --signal")]
    NoLibrary,
    /// The library was not loaded.
    #[error(
        "the program ran without noise: its dynamic linker did not load becalm's library; see what it says on standard error"
    )]
    NotLoaded,
    /// A thread could not be started.
    #[error("cannot start a thread: {0}")]
    Thread(std::io::Error),
    /// Memory for the log.
    #[error("cannot keep a log of {entries} detours: {source}")]
    Log {
        /// How many.
        entries: usize,
        /// Why.
        r#source: std::io::Error,
    },
}

impl InjectError {
    /// Whether noise was asked for that cannot be made here, rather than that the machine refused something.
    #[must_use]
    pub const fn is_usage(&self) -> bool {
        matches!(
            self,
            Self::Short { .. }
                | Self::Close { .. }
                | Self::Throttled { .. }
                | Self::ShortSignal { .. }
                | Self::CloseSignals { .. }
                | Self::Program(_)
        )
    }
}

impl From<RateError> for InjectError {
    fn from(error: RateError) -> Self {
        Self::Clock(error)
    }
}
