//! What `becalm inject` did: the noise that was asked for, place by place beside what was delivered.

use becalm_units::{CpuId, CpuList, Nanos, UnknownName};

/// What one run of `becalm inject` asked for and delivered, on all of its CPUs or in all threads of a program.
#[derive(Clone, PartialEq, Debug)]
pub struct InjectDoc {
    /// What was asked for, in the words of a prediction: `periodic:interval=1ms,detour=50us`.
    pub noise: String,
    /// Who was to lose the same instants.
    pub together: Together,
    /// The length of the windows to whose ends the noise was put off, at the same instants on all CPUs; `None` where it came as it came.
    pub coalesced: Option<Nanos>,
    /// The seed from which random places were drawn.
    pub seed: u64,
    /// How the noise was made.
    pub way: InjectionWay,
    /// On which CPUs it was measured what a detour costs, and for which others; none for noise by signals.
    pub tolls: Vec<SharedToll>,
    /// The fair servers of the CPUs with noise; none on kernels that have none.
    pub fair_servers: Vec<FairServerDoc>,
    /// CPU by CPU, or thread by thread.
    pub places: Vec<InjectedPlace>,
}

/// Who loses the same instants.
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
    /// Nobody: each CPU or thread starts at a place of its own.
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

/// What a detour costs, measured on one CPU for all that are like it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SharedToll {
    /// The CPU on which it was measured.
    pub measured_on: CpuId,
    /// The CPUs for which it was taken, that one among them.
    pub cpus: CpuList,
    /// The shortest detour that can be made there.
    pub shortest: Nanos,
}

/// What the kernel's fair server may take from real-time threads, on CPUs where that is the same.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FairServerDoc {
    /// The CPUs.
    pub cpus: CpuList,
    /// The time that it may take of each period.
    pub runtime: Nanos,
    /// The period.
    pub period: Nanos,
    /// Whether the kernel did not tell, and these are the values that it starts with.
    pub assumed: bool,
}

/// How noise was injected.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum InjectionWay {
    /// By real-time threads of this scheduling class, a CPU each: `fifo:51`.
    Preempt(String),
    /// By such threads, which burn the time by sending packets over loopback.
    Packets {
        /// Their scheduling class.
        class: String,
        /// How many were sent, on all CPUs.
        sent: u64,
    },
    /// By signals inside of a program.
    Signal(SignalCounts),
}

/// How noise by signals went, over all processes of the program.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SignalCounts {
    /// The number of processes that loaded the library.
    pub processes: u64,
    /// The number of threads that had no noise, as there were too many or the kernel gave no timer.
    pub unattended: u64,
    /// How often a signal was given up because the program began to use it.
    pub given_up: u64,
    /// The number of processes whose noise ended early, as they use all signals.
    pub without_signal: u64,
}

/// Where noise was injected.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum NoisePlace {
    /// On a CPU, whoever runs there.
    Cpu(CpuId),
    /// In a thread of a program, or in several that ran one after the other in its place.
    Thread {
        /// The number of its process.
        pid: u32,
        /// The number of the thread; that of the last one, if there were several.
        tid: u32,
    },
}

/// What happened on one CPU, or in one thread.
#[derive(Clone, PartialEq, Debug)]
pub struct InjectedPlace {
    /// The CPU or the thread.
    pub place: NoisePlace,
    /// For how long detours were due.
    pub observed: Nanos,
    /// The detours that were due.
    pub requested: Injected,
    /// The detours that were delivered.
    pub delivered: Injected,
    /// The number of detours that were not delivered, as their time was over before the CPU was had.
    pub missed: u64,
    /// The number of detours that were late and began right where the one before ended.
    pub joined: u64,
    /// How often somebody whom the noise does not outrank took the CPU from it in the middle of its time.
    pub overtaken: u64,
    /// How late starts were, as the median and the 99th percentile; `None` if no detour was delivered.
    pub late: Option<(Nanos, Nanos)>,
    /// The shortest detour that can be made there: as long as taking the CPU and giving it back may take, or a signal and
    /// its handler.
    pub shortest: Nanos,
    /// The detours left out as too short: of every lap on CPUs, in all in threads.
    pub left_out: Shortfall,
    /// The number of detours of every lap that became one with the one before.
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

/// Detours, asked for or delivered. Times are in nanoseconds, and `None` where there are too few detours to tell.
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
    /// The shortest and the longest detour.
    pub ends: Option<(Nanos, Nanos)>,
    /// The share of time that they take, between 0 and 1; `None` if nothing was observed.
    pub ratio: Option<f64>,
}
