//! Ways to read the time, each with its own compiled loop.

use becalm_linux::clock::Counter;
#[cfg(target_arch = "x86_64")]
use becalm_linux::clock::Rdtscp;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
use becalm_linux::clock::{Fenced, Native};
use becalm_linux::probe::clocks::{self, ClockId};

/// A way to read the time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TimeWay {
    /// The processor's counter, in ticks.
    #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
    Counter,
    /// The same, ordered after all earlier instructions.
    #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
    Fenced,
    /// The same, by the instruction that also returns the CPU.
    #[cfg(target_arch = "x86_64")]
    Rdtscp,
    /// `clock_gettime` with this clock; returns nanoseconds.
    Kernel(ClockId),
    /// `gettimeofday`, with microsecond resolution; returns nanoseconds.
    TimeOfDay,
    /// `time`, with a resolution of a second; returns nanoseconds.
    Time,
}

/// A loop over a reading.
pub trait OverReading {
    /// The result of the loop.
    type Out;
    /// Runs the loop over this reading, to be inlined.
    fn run_with(self, read: impl Fn() -> u64 + Copy + Send + Sync) -> Self::Out;
}

impl TimeWay {
    /// All ways on this machine. `flag` tests for a processor feature of /proc/cpuinfo.
    pub fn all(flag: impl Fn(&str) -> bool) -> Vec<Self> {
        let mut ways = Vec::new();
        #[cfg(target_arch = "x86_64")]
        {
            ways.extend([Self::Counter, Self::Fenced]);
            if flag("rdtscp") {
                ways.push(Self::Rdtscp);
            }
        }
        #[cfg(target_arch = "aarch64")]
        ways.extend([Self::Counter, Self::Fenced]);
        #[cfg(not(target_arch = "x86_64"))]
        let _ = flag;
        ways.extend(clocks::existing().into_iter().map(Self::Kernel));
        ways.extend([Self::TimeOfDay, Self::Time]);
        ways
    }

    /// The name that programmers use.
    pub fn name(self) -> String {
        match self {
            #[cfg(target_arch = "x86_64")]
            Self::Counter => "rdtsc".to_owned(),
            #[cfg(target_arch = "aarch64")]
            Self::Counter => "cntvct".to_owned(),
            #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
            Self::Fenced => Fenced::NAME.to_owned(),
            #[cfg(target_arch = "x86_64")]
            Self::Rdtscp => Rdtscp::NAME.to_owned(),
            Self::Kernel(clock) => format!("CLOCK_{}", clock.name),
            Self::TimeOfDay => "gettimeofday".to_owned(),
            Self::Time => "time".to_owned(),
        }
    }

    /// Whether it is an instruction, with readings in ticks.
    pub fn is_instruction(self) -> bool {
        !matches!(self, Self::Kernel(_) | Self::TimeOfDay | Self::Time)
    }

    /// The kernel's clock, if it is one.
    pub const fn clock(self) -> Option<ClockId> {
        match self {
            Self::Kernel(clock) => Some(clock),
            _ => None,
        }
    }

    /// Runs a loop that reads it like a program: by the instruction, or through the C library.
    pub fn run<L: OverReading>(self, work: L) -> L::Out {
        match self {
            #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
            Self::Counter => work.run_with(Native::read),
            #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
            Self::Fenced => work.run_with(Fenced::read),
            #[cfg(target_arch = "x86_64")]
            Self::Rdtscp => work.run_with(Rdtscp::read),
            Self::Kernel(clock) => work.run_with(move || clocks::get(clock)),
            Self::TimeOfDay => work.run_with(clocks::time_of_day),
            Self::Time => work.run_with(clocks::time),
        }
    }

    /// Runs a loop that reads it by a raw system call; `None` if there is no such call.
    pub fn run_raw<L: OverReading>(self, work: L) -> Option<L::Out> {
        match self {
            Self::Kernel(clock) => Some(work.run_with(move || clocks::get_raw(clock))),
            Self::TimeOfDay => Some(work.run_with(clocks::time_of_day_raw)),
            #[cfg(target_arch = "x86_64")]
            Self::Time => Some(work.run_with(clocks::time_raw)),
            _ => None,
        }
    }
}
