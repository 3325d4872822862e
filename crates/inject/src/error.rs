//! Reasons why noise cannot be made as requested.

use std::fmt;

use becalm_linux::clock::RateError;
use becalm_linux::memory::MemoryError;
use becalm_linux::realtime::{FairServer, Holder};
use becalm_linux::rights::RightsError;
use becalm_linux::sched::SchedError;
use becalm_scale::TraceError;
use becalm_units::fault::{Fault, Wording};
use becalm_units::{CpuId, Nanos};

use crate::program::ProgramError;

/// Noise that cannot be made on this machine.
#[derive(Debug, thiserror::Error)]
pub enum InjectError {
    /// The kernel refuses a CPU, a class or a priority.
    #[error("cannot take CPU {0} from the threads that run there: {1}")]
    Sched(CpuId, SchedError),
    /// The counter cannot be used.
    #[error("cannot time detours: {0}")]
    Clock(RateError),
    /// The cost of a detour could not be measured.
    #[error(
        "cannot measure what a detour costs on CPU {cpu}: a thread there saw only {seen} of {rounds} trials, and \
         {needed} are needed; is the CPU kept busy by real-time threads?"
    )]
    Toll {
        /// The CPU on which it was tried.
        cpu: CpuId,
        /// The number of trial detours that the victim saw.
        seen: usize,
        /// The number of trial detours that were made.
        rounds: usize,
        /// The number that must be seen.
        needed: usize,
    },
    /// A detour is shorter than taking the CPU and giving it back.
    #[error("a detour of {length} is too short: to take CPU {cpu} and give it back takes {shortest} here")]
    Short {
        /// The requested CPU.
        cpu: CpuId,
        /// The requested length.
        length: Nanos,
        /// The shortest length that can be made.
        shortest: Nanos,
    },
    /// Too much of random or replayed noise is shorter than taking the CPU and giving it back.
    #[error(
        "{:.1}% of the requested time is in detours shorter than {shortest}, which is how long it takes to take CPU {cpu} and give it \
         back",
        *share * 100.0
    )]
    MostlyShort {
        /// The requested CPU.
        cpu: CpuId,
        /// The share of the time that short detours take, between 0 and 1.
        share: f64,
        /// The shortest length that can be made.
        shortest: Nanos,
    },
    /// Two detours leave no time in between for what runs on the CPU.
    #[error(
        "detours {gap} apart are too close: on CPU {cpu} it takes {shortest} to give the CPU back and to take it again"
    )]
    Close {
        /// The requested CPU.
        cpu: CpuId,
        /// The shortest time between two of them.
        gap: Nanos,
        /// The shortest time between two detours that can be made.
        shortest: Nanos,
    },
    /// One of the kernel's limits on real-time threads is too low.
    #[error(
        "the kernel lets real-time threads run {runtime} of every {period} only, and {asked} is asked for; {limit}"
    )]
    Throttled {
        /// How long the kernel lets them run per period.
        runtime: Nanos,
        /// The length of the period.
        period: Nanos,
        /// The noise that is too much, in words.
        asked: String,
        /// Which limit of the kernel it is.
        limit: RealTimeLimit,
    },
    /// A detour is shorter than a signal and its handler, which take the second time.
    #[error("a detour of {0} is too short: a signal and its handler take {1} here")]
    ShortSignal(Nanos, Nanos),
    /// This share of random or replayed noise, between 0 and 1, is in detours shorter than a signal and its handler, which is too much.
    #[error(
        "{share:.1}% of the requested time is in detours shorter than {1}, which is how long a signal and its handler take",
        share = *.0 * 100.0
    )]
    MostlyShortSignal(f64, Nanos),
    /// Two detours leave the program no time in between: the first time, and the second is needed.
    #[error("detours {0} apart are too close: from one signal's handler to the next it takes {1} here")]
    CloseSignals(Nanos, Nanos),
    /// The library cannot be loaded into the program.
    #[error(transparent)]
    Program(#[from] ProgramError),
    /// There is no place for the files that the program loads and shares.
    #[error("cannot make the files that the noise in a program needs: {0}")]
    Files(std::io::Error),
    /// A circle cannot be rotated to the node's place.
    #[error("cannot turn the noise to the node's place: {0}")]
    Circle(TraceError),
    /// No library was built for this kind of machine.
    #[error("there is no library for this kind of processor or C library")]
    NoLibrary,
    /// No program has loaded the library.
    #[error(
        "the program ran without noise: its dynamic linker did not load becalm's library; see what it says on standard error"
    )]
    NotLoaded,
    /// A thread could not be started.
    #[error("cannot start a thread: {0}")]
    Thread(std::io::Error),
    /// The process cannot give up its rights, and stops.
    #[error(transparent)]
    Rights(RightsError),
    /// Packets over loopback do not arrive.
    #[error(
        "cannot make detours of packets: what is sent over loopback does not arrive: {0}; see whether the interface lo is up \
         (ip link set lo up) and a firewall takes packets there"
    )]
    Packets(std::io::Error),
    /// There is no memory for a log of this many detours.
    #[error("cannot keep a log of {0} detours: {1}")]
    Log(usize, MemoryError),
}

/// A limit that keeps real-time threads from a CPU; its text says how to lift it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RealTimeLimit {
    /// `kernel.sched_rt_runtime_us`.
    Throttling,
    /// The fair server of a CPU, with its limits.
    FairServer(CpuId, FairServer),
}

impl fmt::Display for RealTimeLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Throttling => write!(f, "to lift that: {}", Holder::Throttling.lift()),
            Self::FairServer(cpu, FairServer { runtime, assumed, .. }) => {
                let known = if *assumed { " (the default since Linux 6.12; debugfs does not show it)" } else { "" };
                let lift = Holder::FairServer(*cpu).lift();
                write!(
                    f,
                    "the fair server of CPU {cpu} keeps {runtime} for ordinary threads{known}; to switch it off: {lift}"
                )
            }
        }
    }
}

impl Fault for InjectError {
    fn is_usage(&self) -> bool {
        matches!(
            self,
            Self::Short { .. }
                | Self::MostlyShort { .. }
                | Self::MostlyShortSignal(..)
                | Self::Close { .. }
                | Self::Throttled { .. }
                | Self::ShortSignal(..)
                | Self::CloseSignals(..)
                | Self::Program(_)
        )
    }

    fn hint(&self) -> Option<Wording> {
        match self {
            Self::NoLibrary => Some(Wording::new("; leave out {signal!}")),
            Self::MostlyShort { .. } | Self::MostlyShortSignal(..) => {
                Some(Wording::new("; to inject the rest, add {partly!}"))
            }
            Self::Program(error) => error.hint(),
            _ => None,
        }
    }
}
