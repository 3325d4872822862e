//! The result of `becalm inject`: requested and delivered noise, place by place.

use becalm_units::{CpuId, CpuList, Nanos, UnknownName};

/// The noise that one run of `becalm inject` requested and delivered, on all its CPUs or in all threads of a program.
#[derive(Clone, PartialEq, Debug)]
pub struct InjectDoc {
    /// The requested noise, in the notation of predictions: `periodic:interval=1ms,detour=50us`.
    pub noise: String,
    /// Which CPUs or threads were to lose the same instants.
    pub together: Together,
    /// The length of the windows to whose ends noise was delayed, at the same instants on all CPUs; `None` without coalescing.
    pub coalesced: Option<Nanos>,
    /// The seed from which random places were drawn.
    pub seed: u64,
    /// How the noise was made.
    pub way: InjectionWay,
    /// The CPUs on which the cost of a detour was measured, and those that share each measurement; empty for noise by signals.
    pub tolls: Vec<SharedToll>,
    /// The fair servers of the CPUs with noise; empty on kernels without them.
    pub fair_servers: Vec<FairServerDoc>,
    /// The CPUs, or the threads.
    pub places: Vec<InjectedPlace>,
}

/// Which CPUs or threads lose the same instants.
#[derive(
    Clone,
    Copy,
    PartialEq,
    Eq,
    Debug,
    Default,
    strum::Display,
    strum::EnumString,
    strum::IntoStaticStr,
    strum::VariantArray,
)]
#[strum(serialize_all = "snake_case", parse_err_ty = UnknownName, parse_err_fn = unknown)]
pub enum Together {
    /// No two: each CPU or thread starts at a place of its own.
    #[default]
    #[strum(serialize = "none")]
    Apart,
    /// The CPUs or threads of a node; nodes differ from each other.
    Node,
    /// All CPUs or threads of all nodes whose clocks agree.
    All,
}

fn unknown(text: &str) -> UnknownName {
    UnknownName::new::<Together>("choice of who loses the same instants", text)
}

/// The cost of a detour, measured on one CPU for all that are like it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SharedToll {
    /// The CPU that was measured.
    pub measured_on: CpuId,
    /// The CPUs that share the measurement, including that one.
    pub cpus: CpuList,
    /// The shortest detour that can be made there.
    pub shortest: Nanos,
}

/// The time that the kernel's fair server may take from real-time threads, on CPUs with equal limits.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FairServerDoc {
    /// The CPUs.
    pub cpus: CpuList,
    /// The time that it may take per period.
    pub runtime: Nanos,
    /// The period.
    pub period: Nanos,
    /// Whether these are the kernel's defaults because it does not report the values.
    pub assumed: bool,
}

/// How noise was injected.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum InjectionWay {
    /// By real-time threads of this scheduling class, one per CPU: `fifo:51`.
    Preempt(String),
    /// By such threads, which burn the time by sending packets over loopback.
    Packets {
        /// Their scheduling class.
        class: String,
        /// The number of packets sent, on all CPUs.
        sent: u64,
    },
    /// By signals inside of a program.
    Signal(SignalCounts),
}

/// Statistics of noise by signals, over all processes of the program.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SignalCounts {
    /// The number of processes that loaded the library.
    pub processes: u64,
    /// The number of threads without noise, because there were too many or the kernel gave no timer.
    pub unattended: u64,
    /// How often a signal was given up because the program started to use it.
    pub given_up: u64,
    /// The number of processes whose noise ended early because they use all signals.
    pub without_signal: u64,
}

/// Where noise was injected.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum NoisePlace {
    /// On a CPU, in whatever runs there.
    Cpu(CpuId),
    /// In a thread of a program, or in several that used its slot one after the other.
    Thread {
        /// The process number.
        pid: u32,
        /// The thread number; that of the last thread, if there were several.
        tid: u32,
    },
}

/// The noise on one CPU, or in one thread.
#[derive(Clone, PartialEq, Debug)]
pub struct InjectedPlace {
    /// The CPU or the thread.
    pub place: NoisePlace,
    /// The time for which detours were due.
    pub observed: Nanos,
    /// The detours that were due.
    pub requested: Injected,
    /// The detours that were delivered.
    pub delivered: Injected,
    /// The number of detours that were not delivered because their time was over before the thread got the CPU.
    pub missed: u64,
    /// The number of late detours that started right where the previous one ended.
    pub joined: u64,
    /// How often the kernel took the CPU from the noise before its time was over, for a thread that the noise does not outrank.
    pub overtaken: u64,
    /// How late detours started, as median and 99th percentile; `None` if none was delivered.
    pub late: Option<(Nanos, Nanos)>,
    /// The shortest detour that can be made there: the time that taking the CPU and giving it back may take, or a signal and its handler.
    pub shortest: Nanos,
    /// The detours left out as too short: per lap on CPUs, in total in threads.
    pub left_out: Shortfall,
    /// The number of detours per lap that were merged with the previous one.
    pub merged: usize,
}

/// Detours that were too short to be made.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Shortfall {
    /// Their number.
    pub count: u64,
    /// The time that they take.
    pub time: Nanos,
}

/// Requested or delivered detours. Times are in nanoseconds, and `None` if there are too few detours.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Injected {
    /// The number of detours.
    pub count: u64,
    /// The mean time from one start to the next.
    pub interval_ns: Option<f64>,
    /// The standard deviation of the intervals.
    pub interval_stddev_ns: Option<f64>,
    /// The mean length of a detour.
    pub length_ns: Option<f64>,
    /// The standard deviation of the lengths.
    pub length_stddev_ns: Option<f64>,
    /// The lengths of the shortest and the longest detour.
    pub ends: Option<(Nanos, Nanos)>,
    /// The share of time that they take, between 0 and 1; `None` if nothing was observed.
    pub ratio: Option<f64>,
}
