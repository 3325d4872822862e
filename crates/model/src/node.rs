//! The node's document, `runs/node=HOST.json`: the recording, its machine and settings, and everything that could not be observed.

use std::collections::BTreeMap;

use becalm_units::{CpuId, CpuList, Nanos};
use serde::{Deserialize, Serialize};

pub use crate::clock::{ClockDoc, ClockPair};
use crate::event_count::EventCount;
use crate::warning::{Bearing, Code};
use crate::{Document, Platform};

/// The version of the document's schema that this program writes and reads.
pub const SCHEMA: &str = "becalm.run/1";

/// One node's part of a run. Durations are integers in `_ns` fields, ratios plain numbers in `_ratio` fields.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct NodeDoc {
    /// The schema that the document follows: [`SCHEMA`], or it is refused.
    pub schema: String,
    /// The host's name, as in the file names.
    pub node: String,
    /// Who wrote it: `becalm 0.1.0`.
    pub program: String,
    /// The run's origin on the wall clock, as RFC 3339 in UTC; `None` of an imported file that does not say it.
    pub origin: Option<jiff::Timestamp>,
    /// How the run ended; `None` while it runs, and forever if it was killed.
    pub ended: Option<Ended>,
    /// The machine on which it was recorded.
    pub machine: MachineDoc,
    /// The counter that the loops read.
    pub clock: ClockDoc,
    /// How the recording was asked for.
    pub settings: SettingsDoc,
    /// The rung of the ladder: how much of the kernel could be seen.
    pub rung: Rung,
    /// One entry for each measured CPU, in rising order.
    pub cpus: Vec<CpuDoc>,
    /// The kernel's trace; `None` on the lower rungs.
    pub tracing: Option<TracingDoc>,
    /// How many rows its tables held when this was written; `None` without tables, such as in summary form.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stored: Option<StoredRows>,
    /// Growth of the kernel's own counters over the run: those that grew, and of a traced CPU the one of its timer.
    pub counters: Vec<CounterGrowth>,
    /// Everything the reader must know before believing the numbers.
    pub warnings: Vec<Warning>,
}

/// The numbers of rows of a node's tables, which show a reader that some are missing.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct StoredRows {
    /// Detours, or samples of a run of work.
    pub rows: u64,
    /// The activities that they are split over.
    pub activities: u64,
}

/// How a run ended by itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Ended {
    /// The duration asked for was over.
    Duration,
    /// On each measured CPU as many detours were caught as were asked for.
    Detours,
    /// The command that it accompanied ended.
    Command,
    /// A signal asked it to end.
    Signal,
    /// Its user ended it by a key, in the live view.
    User,
    /// A buffer was full: going on would have lost detours.
    BufferFull,
    /// Every measured CPU went offline or left the process's cpuset.
    CpusGone,
    /// Nothing was collected for so long that the loops, which kept real-time priority on every CPU, ended by themselves.
    Unattended,
    /// Something failed; what was recorded until then is there.
    Failed,
    /// Another program recorded it, and the file does not say.
    Unknown,
}

impl NodeDoc {
    /// Whether the recording finished, so its document counts everything stored. A failed one may have counted data that it could no longer store.
    pub const fn is_complete(&self) -> bool {
        !matches!(self.ended, None | Some(Ended::Failed))
    }

    /// Whether another program recorded it: its file contains less than becalm's.
    pub const fn is_imported(&self) -> bool {
        matches!(self.ended, Some(Ended::Unknown))
    }

    /// Whether a loop watched the clock. Otherwise the detours are from kernel events only, and a loop's counts are unknown.
    pub fn has_loop(&self) -> bool {
        !self.warnings.iter().any(|warning| warning.known() == Some(Code::NoLoop))
    }

    /// The warnings that affect a verdict.
    pub fn bearing_warnings(&self) -> impl Iterator<Item = &Warning> {
        self.warnings.iter().filter(|warning| warning.bearing() != Bearing::None)
    }

    /// The origin in nanoseconds since 1970, for differences between instants of this node; 0 if it is unknown.
    pub fn origin_ns(&self) -> i128 {
        self.origin.map_or(0, jiff::Timestamp::as_nanosecond)
    }
}

/// The machine that was measured.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct MachineDoc {
    /// The kernel's release, as `uname -r` prints it.
    pub kernel: String,
    /// The kernel's name of the processor's model.
    pub processor: String,
    /// The hypervisor, where the processor says that there is one.
    pub hypervisor: Option<String>,
    /// The architecture, as Rust names it: `x86_64`, `aarch64`.
    pub architecture: String,
    /// CPUs online at the start.
    pub online: CpuList,
    /// CPUs isolated from the scheduler.
    pub isolated: CpuList,
    /// CPUs without a tick.
    pub nohz_full: CpuList,
    /// The kernel's command line.
    pub command_line: String,
    /// The sizes of the caches that hold data, in bytes, from the nearest to the core on: those of the first CPU online. Empty where the
    /// kernel does not know them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cache_bytes: Vec<u64>,
    /// The memory of the machine, in bytes; `None` where that is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<u64>,
    /// The highest frequency of the first CPU online, in Hz; `None` where the kernel does not set it, as on most guests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub highest_hz: Option<u64>,
    /// The kernel's build options on which advice depends, without `CONFIG_`: `y`, `m`, a number, or `n` where an option is not set. Empty
    /// where the kernel does not tell how it was built.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub built_with: BTreeMap<String, String>,
    /// The version of the control groups that limit CPU time: 1 or 2; `None` where there are none, or that is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_groups: Option<u8>,
    /// Whether each CPU has a fair server, which gives threads that wait a share of real-time threads' time; `None` where that is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fair_servers: Option<bool>,
}

/// The build options in [`MachineDoc::built_with`].
pub const BUILD_OPTIONS: &[&str] =
    &["CFS_BANDWIDTH", "HIGH_RES_TIMERS", "HZ", "NO_HZ_FULL", "PREEMPT_RT", "RCU_NOCB_CPU", "RT_GROUP_SCHED"];

impl MachineDoc {
    /// The platform below its kernel.
    pub const fn platform(&self) -> Platform {
        if self.hypervisor.is_some() { Platform::Guest } else { Platform::Metal }
    }

    /// The kernel's ticks per second on a busy CPU; `None` if unknown.
    pub fn tick_hz(&self) -> Option<f64> {
        self.built_with.get("HZ")?.parse().ok()
    }

    /// Whether its kernel was built with one of [`BUILD_OPTIONS`]; `None` if unknown.
    pub fn has_option(&self, option: &str) -> Option<bool> {
        self.built_with.get(option).map(|value| value != "n")
    }
}

/// The requested settings of the recording.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct SettingsDoc {
    /// The scheduling class of the loops: `other`, `batch`, `fifo:80`, `rr:80`.
    pub sched: String,
    /// `auto` or the duration that was given.
    pub threshold: String,
    /// The duration asked for; `None` if the run lasted until a signal or the end of a command.
    pub duration_ns: Option<Nanos>,
    /// The requested maximum number of detours of each CPU, which ends its loop; `None` without a maximum.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detours: Option<u64>,
    /// The command that ran meanwhile.
    pub command: Vec<String>,
    /// The work that the loops did; `None` if they only watched the counter.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub work: Option<WorkDoc>,
}

/// What stays the same in a loop that does work.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Fixed {
    /// The work; its time is taken (FWQ).
    Work,
    /// The time; the work done in it is counted (FTQ).
    Time,
}

impl Fixed {
    /// Its name on the command line and in documents.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Work => "work",
            Self::Time => "time",
        }
    }
}

/// A run of work: what the loops did.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct WorkDoc {
    /// The loop's body: `empty`, `sort`.
    pub body: String,
    /// One iteration of it, in words.
    pub iteration: String,
    /// The body of each CPU, where each has one of its own and all work at once; then `body` has the names of all. Empty otherwise.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub bodies: Vec<WorkBody>,
    /// What stays the same from sample to sample.
    pub fixed: Fixed,
    /// How long a sample should take, or takes.
    pub grain_ns: Nanos,
    /// How many loops with this body ran on each CPU. The samples are those of one of them.
    pub copies: u32,
    /// Timer interrupts a second that were added to those of each CPU while the loops worked.
    #[serde(default, skip_serializing_if = "is_none_added")]
    pub added_hz: u32,
    /// How many samples were asked for on each CPU, if it was a number.
    pub samples: Option<u64>,
    /// The memory that the body works on, in bytes.
    pub memory_bytes: u64,
    /// The size of the cache that determined it, in bytes.
    pub cache_bytes: Option<u64>,
    /// Whether the kernel told that size; it was assumed otherwise.
    pub cache_known: bool,
    /// One entry a CPU, in rising order.
    pub loops: Vec<WorkLoopDoc>,
    /// The parts of a run that was interrupted and resumed, in order; one otherwise.
    pub sessions: Vec<WorkSession>,
    /// Counts by the processor and the kernel in the measured loops.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub counts: Vec<WorkCount>,
    /// Which events were asked for and not counted, and why, a line for each reason.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_counted: Vec<String>,
}

impl WorkDoc {
    /// The body of the loop on a CPU.
    pub fn body_on(&self, cpu: CpuId) -> &str {
        self.bodies.iter().find(|other| other.cpu == cpu).map_or(&self.body, |other| &other.body)
    }
}

/// The work of the loop on a CPU, if each has a body of its own.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct WorkBody {
    /// The CPU on which the loop works.
    pub cpu: CpuId,
    /// The name of its body.
    pub body: String,
    /// One iteration of it, in words.
    pub iteration: String,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "what serde asks for")]
const fn is_none_added(count: &u32) -> bool {
    *count == 0
}

/// The count of one event in a measured loop, while the loop's thread ran.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct WorkCount {
    /// The CPU on which it was counted.
    pub cpu: CpuId,
    /// How often the event came on that CPU.
    #[serde(flatten)]
    pub count: EventCount,
}

/// Something that limits what the numbers say: what, with its figures, and what to do.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[must_use]
pub struct Warning {
    /// A stable name for scripts: `lost_events`, `rt_throttling`.
    pub code: String,
    /// The finding with its figures, in one sentence.
    pub message: String,
    /// The user's next step.
    pub advice: String,
}

impl Warning {
    /// Creates a warning. becalm's own warnings come from the functions of [`warning`](crate::warning).
    pub fn new(code: Code, message: impl Into<String>, advice: impl Into<String>) -> Self {
        Self { code: code.to_string(), message: message.into(), advice: advice.into() }
    }
}

/// How the work was calibrated on a CPU.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct WorkLoopDoc {
    /// The CPU on which the loop ran.
    pub cpu: CpuId,
    /// Iterations of a sample, of fixed work; iterations between two looks at the counter, of fixed time.
    pub iterations: u64,
    /// Their calibrated time: the mean of the third decile.
    pub calibrated_ns: Nanos,
    /// Iterations that the other copies on this CPU did while this loop measured.
    pub others_iterations: u64,
    /// The core clock, which gives the cycles of an instruction if no counter counts them; `None` of bodies whose
    /// instructions the compiler chooses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub core_clock: Option<CoreClockDoc>,
}

/// How fast a core ran before its loop started, by a chain of dependent additions: one per cycle on every processor that
/// becalm knows the instructions of.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct CoreClockDoc {
    /// Instructions of an iteration of the body.
    pub instructions: u64,
    /// Cycles a second: by the mean of the third decile of the trials.
    pub hz: u64,
    /// By the trial that was slower than 95 % of them.
    pub low_hz: u64,
    /// By the trial that was faster than 95 % of them.
    pub high_hz: u64,
}

/// A part of a run, from a start until its end or interruption.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct WorkSession {
    /// When it started, since the run's origin.
    pub start_ns: Nanos,
    /// How it ended; `None` while it runs, and forever if it was killed.
    pub ended: Option<Ended>,
}

/// How much of the kernel could be seen, from the lowest rung of the ladder up.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Rung {
    /// Only the loops: detours have no source.
    Loop,
    /// The loops and the counters in /proc.
    Proc,
    /// The loops and the kernel's tracepoints.
    Tracepoints,
}

/// The measurement on one CPU.
#[derive(Clone, Default, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct CpuDoc {
    /// The kernel's number of the CPU.
    pub cpu: CpuId,
    /// When its loop started, since the origin.
    pub start_ns: Nanos,
    /// How long its loop ran.
    pub duration_ns: Nanos,
    /// How many steps its loop made.
    pub iterations: u64,
    /// The shortest step; every detour's duration is its step minus this.
    pub t_min_ns: Nanos,
    /// The median step, measured before the start.
    pub median_step_ns: Nanos,
    /// Steps of at least this length were kept as detours.
    pub threshold_ns: Nanos,
    /// How many steps were stored as detours.
    pub detours: u64,
    /// The sum of all steps below the threshold; with the steps that were stored, and those that were only counted, it is
    /// `duration_ns`.
    pub below_threshold_ns: Nanos,
    /// The longest detour; 0 if there was none.
    pub max_ns: Nanos,
    /// The sum of all stored detours.
    pub total_ns: Nanos,
    /// Detours that were only counted: those below 1 us of a storm for which there was no room.
    #[serde(default)]
    pub unstored: u64,
    /// The sum of the detours that were only counted. The noise is `total_ns` and this.
    #[serde(default)]
    pub unstored_ns: Nanos,
    /// The detours that were only counted, by length, from the shortest on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unstored_lengths: Vec<UnstoredLengths>,
    /// Detours with dropped kernel events.
    pub incomplete: u64,
    /// Kernel events that were lost.
    pub lost_events: u64,
    /// Kernel events that were decoded.
    pub events: u64,
    /// Switches, entries and exits that the trace must have held and does not, although it lost nothing by its own account.
    #[serde(default)]
    pub unmatched_events: u64,
    /// The time in detours that one of two threads had, but unknown which, because the trace lacks a switch.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub missing_switch_ns: Nanos,
    /// Between whom switches were missing, the first few pairs: `task:sshd or kthread:rcu_preempt`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missing_switch_threads: Vec<String>,
    /// Activities that took so much longer than their like that the host must have taken the CPU meanwhile.
    #[serde(default, skip_serializing_if = "is_none_seen")]
    pub preempted_by_host: u64,
    /// System management interrupts that the processor counted from the set-up to the end; `None` where they cannot be seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub smis: Option<u64>,
    /// Interrupts and softirqs that fell in no detour, being shorter than the threshold.
    pub below_threshold_events: u64,
    /// The longest of them; longer than `threshold_ns` only if the trace and the loop contradict each other.
    pub below_threshold_max_ns: Nanos,
    /// Page faults of the measuring thread while it measured.
    pub faults: u64,
    /// Times that the measuring thread gave the CPU away by itself while it measured.
    pub voluntary_switches: u64,
    /// Times that it was pre-empted.
    pub involuntary_switches: u64,
    /// Whether the loop ended before the others, because its buffer was full or its CPU went away.
    pub cut_short: bool,
}

/// Detours of like length that were counted and not stored.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct UnstoredLengths {
    /// The shortest of their lengths.
    pub from_ns: Nanos,
    /// The length that none of them reaches.
    pub below_ns: Nanos,
    /// How many there were.
    pub detours: u64,
    /// Their sum.
    pub total_ns: Nanos,
}

impl CpuDoc {
    /// The time lost by the loop: in stored detours, and in those that were only counted.
    pub fn noise_ns(&self) -> Nanos {
        self.total_ns + self.unstored_ns
    }

    /// The document of a CPU before any measurement.
    pub fn new(cpu: CpuId) -> Self {
        Self { cpu, ..Self::default() }
    }
}

/// Omits a field that is zero in most recordings.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde gives references")]
fn is_zero(time: &Nanos) -> bool {
    *time == Nanos::ZERO
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde gives references")]
const fn is_none_seen(count: &u64) -> bool {
    *count == 0
}

/// The kernel's trace of a run.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct TracingDoc {
    /// The trace's clock: `x86-tsc`, `mono_raw`.
    pub clock: String,
    /// The events that were recorded, `group/name`.
    pub events: Vec<String>,
    /// Events that this kernel does not have, and what remains unseen without each.
    pub missing: Vec<String>,
    /// The trace buffer of each CPU.
    pub buffer_bytes: u64,
    /// What writing one event took on a measured CPU before the start, with everything in the caches; `None` where that could not
    /// be measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub event_cost_ns: Option<Nanos>,
    /// How another program changed the trace; `None` if it stayed as becalm set it up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changed: Option<TraceChange>,
    /// The trace of requests; `None` if the causes of activities were not recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub causes: Option<CausesDoc>,
}

/// The trace of requests, from which the causes of activities follow.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct CausesDoc {
    /// The events that were recorded on all CPUs, `group/name`.
    pub events: Vec<String>,
    /// Events that this kernel does not have, and what remains unknown without each.
    pub missing: Vec<String>,
    /// Events that were taken.
    pub taken: u64,
    /// Events that were lost, as far as the kernel reports their number.
    pub lost: u64,
    /// The rows of the table of causes; `None` while it records, and forever if it was killed.
    pub rows: Option<u64>,
}

impl NodeDoc {
    /// The change of the trace by another program, if any: the sources are then known for a part of the time only.
    pub fn trace_change(&self) -> Option<&TraceChange> {
        self.tracing.as_ref()?.changed.as_ref()
    }
}

/// A change that another program made to the trace of a recording.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct TraceChange {
    /// Until when the trace was as becalm set it up, since the recording's origin. Detours that end later are of kind `not_traced`.
    pub traced_until_ns: Nanos,
    /// The files of the trace that were changed, below its directory in tracefs.
    pub files: Vec<String>,
}

/// Growth of one of the kernel's counters.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct CounterGrowth {
    /// The CPU to which the count belongs.
    pub cpu: CpuId,
    /// Its file and name: `interrupts/LOC`, `softirqs/NET_RX`, `stat/steal`.
    pub name: String,
    /// By how much it grew from just before the loops started until just after they ended. `stat/` counters are in
    /// nanoseconds, the others are counts.
    pub growth: u64,
    /// How often the trace holds the same; `None` where the kernel was not traced, or traces nothing that compares.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub traced: Option<TracedCount>,
}

impl CounterGrowth {
    /// Whether a counter with this name counts interrupts of a CPU's own timer.
    pub fn is_of_timer(name: &str) -> bool {
        matches!(name, "interrupts/LOC" | "interrupts/arch_timer")
    }
}

/// How many events of the trace tell of the same as a counter. Reading a counter takes a while, and an event in that while may be
/// counted or not: so there is a least and a most.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct TracedCount {
    /// Events that are certainly between the two readings of the counter.
    pub least: u64,
    /// Events that may be between them.
    pub most: u64,
}

impl TracedCount {
    /// The number of `counted` events that are in the trace.
    pub fn found(self, counted: u64) -> u64 {
        counted.min(self.most)
    }

    /// Adds the count of another run or CPU.
    pub const fn plus(self, other: Self) -> Self {
        Self { least: self.least.saturating_add(other.least), most: self.most.saturating_add(other.most) }
    }
}

impl Document for NodeDoc {
    const SCHEMA: &'static str = SCHEMA;

    fn schema(&self) -> &str {
        &self.schema
    }

    fn node(&self) -> &str {
        &self.node
    }

    /// Checks the order of the CPUs, and that no time is negative.
    fn check(&self) -> Result<(), String> {
        self.clock.check()?;
        if let Some(pair) = self.cpus.windows(2).find(|pair| pair[0].cpu >= pair[1].cpu) {
            let [first, second] = [pair[0].cpu, pair[1].cpu];
            return Err(format!("its CPUs are not in rising order: {first} is followed by {second}"));
        }
        for cpu in &self.cpus {
            if cpu.cpu.get() >= CpuId::LIMIT {
                return Err(format!("CPU {} is above the limit of {}", cpu.cpu, CpuId::LIMIT - 1));
            }
            let ends = [cpu.start_ns.get(), cpu.start_ns.get().saturating_add(cpu.duration_ns.get())];
            if ends.iter().any(|time| !(-FARTHEST..FARTHEST).contains(time)) {
                return Err(format!(
                    "the loop of CPU {} cannot have run from {} ns to {} ns",
                    cpu.cpu, ends[0], ends[1]
                ));
            }
            if let Some((field, time)) = times(cpu).into_iter().find(|(_, time)| *time < Nanos::ZERO) {
                return Err(format!("{field} of CPU {} is negative: {}", cpu.cpu, time.get()));
            }
        }
        Ok(())
    }
}

/// The limit of times relative to the run's origin, in nanoseconds: 146 years. Differences of two times, and sums of disjoint intervals, do not
/// overflow.
pub const FARTHEST: i64 = 1 << 62;

const fn times(cpu: &CpuDoc) -> [(&'static str, Nanos); 10] {
    [
        ("duration_ns", cpu.duration_ns),
        ("t_min_ns", cpu.t_min_ns),
        ("median_step_ns", cpu.median_step_ns),
        ("threshold_ns", cpu.threshold_ns),
        ("below_threshold_ns", cpu.below_threshold_ns),
        ("max_ns", cpu.max_ns),
        ("total_ns", cpu.total_ns),
        ("unstored_ns", cpu.unstored_ns),
        ("below_threshold_max_ns", cpu.below_threshold_max_ns),
        ("missing_switch_ns", cpu.missing_switch_ns),
    ]
}
