//! `becalm.observed/1`: the books of observed threads.

use becalm_bundle::{Contents, Stored};
use becalm_model::node::{ClockDoc, Ended, MachineDoc, TracingDoc, Warning};
use becalm_model::observed::{ObservedRows, Owner};
use becalm_model::{Document, Kind};
use becalm_units::Nanos;
use serde::{Deserialize, Serialize};

/// The version of the document that this program writes and reads.
pub const SCHEMA: &str = "becalm.observed/1";

/// One node's observed threads. Durations are integers in `_ns` fields.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct ObservedDoc {
    /// The schema that the document follows: [`SCHEMA`].
    pub schema: String,
    /// The host's name, as in the file names.
    pub node: String,
    /// Who wrote it: `becalm 0.1.0`.
    pub program: String,
    /// The origin of all times on the wall clock, in UTC.
    pub origin: Option<jiff::Timestamp>,
    /// How the observation ended; `None` while it runs, and forever if it was killed.
    pub ended: Option<Ended>,
    /// The observed machine.
    pub machine: MachineDoc,
    /// The counter of the times.
    pub clock: ClockDoc,
    /// The choice of threads.
    pub choice: ChoiceDoc,
    /// The kernel's trace.
    pub tracing: Option<TracingDoc>,
    /// The start of the books, since the origin.
    pub start_ns: Nanos,
    /// The length of the books: that of the life of a thread that was there all the time.
    pub duration_ns: Nanos,
    /// Kernel events that were taken.
    pub events: u64,
    /// Kernel events that were lost.
    pub lost_events: u64,
    /// Switches that the trace lacks and whose instant was found.
    pub repaired_switches: u64,
    /// Switches that the trace lacks and whose instant is not known.
    pub unknown_switches: u64,
    /// The observed threads, those that waited longest first.
    pub threads: Vec<ThreadDoc>,
    /// The takers of the CPU while observed threads waited, the most costly first.
    pub takers: Vec<TakerDoc>,
    /// Waits by the control groups of those who waited and of those who had the CPU.
    pub groups: Vec<GroupPair>,
    /// Control groups with a limit on CPU time.
    pub quotas: Vec<QuotaDoc>,
    /// Comparison with the kernel's own account.
    pub checked: CheckDoc,
    /// The rows of its tables.
    pub rows: ObservedRows,
    /// The cost of the observation.
    pub cost: CostDoc,
    /// Everything the reader must know before believing the numbers.
    pub warnings: Vec<Warning>,
}

/// Which threads were observed.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct ChoiceDoc {
    /// Processes by number.
    pub processes: Vec<i32>,
    /// Threads and processes by name.
    pub names: Vec<String>,
    /// Control groups by path.
    pub groups: Vec<String>,
    /// The command that was started.
    pub command: Vec<String>,
    /// Whether system calls and page faults were recorded.
    pub calls: bool,
}

/// An observed thread. `ran_ns`, `waited_ns`, `asleep_ns` and `unknown_ns` add up to `wall_ns` exactly.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct ThreadDoc {
    /// The kernel's number of the thread.
    pub tid: i32,
    /// The number of its process.
    pub process: i32,
    /// Its name.
    pub name: String,
    /// The command line of its process; empty if unknown.
    pub command: String,
    /// Its control group.
    pub cgroup: String,
    /// Its rank in an MPI job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rank: Option<u32>,
    /// The start of its books, since the origin.
    pub start_ns: Nanos,
    /// The length of its books.
    pub wall_ns: Nanos,
    /// Time on a CPU, with interrupts on top.
    pub ran_ns: Nanos,
    /// Time that it could have run: queued, on the way, or kept by a quota.
    pub waited_ns: Nanos,
    /// Time on a run queue without a CPU.
    pub queued_ns: Nanos,
    /// Time between being woken and being on a run queue.
    pub on_the_way_ns: Nanos,
    /// Time on a run queue while its group had used up its CPU time.
    pub quota_ns: Nanos,
    /// Time asleep or stopped.
    pub asleep_ns: Nanos,
    /// Time stopped by a signal or a debugger.
    pub stopped_ns: Nanos,
    /// Time that the trace does not show.
    pub unknown_ns: Nanos,
    /// How often it got a CPU.
    pub switches: u64,
    /// The time on a CPU by what it was spent on.
    pub ran: Vec<PartDoc>,
    /// The time asleep or stopped by state and place.
    pub asleep: Vec<PartDoc>,
    /// The takers of its CPU while it waited.
    pub takers: Vec<TakerDoc>,
    /// By how much the parts of its life differ from its length: 0.
    pub imbalance_ns: Nanos,
}

/// A part of a thread's time.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct PartDoc {
    /// `program`, `own` (work of the kernel on its behalf), `host`, or the kind of an interrupt; of sleep its state: `S`, `D`, `T`.
    pub kind: String,
    /// The name; of sleep where, empty if unknown.
    pub source: String,
    /// The time.
    pub ns: Nanos,
    /// How often.
    pub count: u64,
}

/// A taker of the CPU while observed threads waited.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct TakerDoc {
    /// The kind of activity.
    pub kind: Kind,
    /// The name.
    pub source: String,
    /// Its owner, relative to the choice.
    pub owner: Owner,
    /// The time of waits.
    pub ns: Nanos,
    /// How often it came.
    pub count: u64,
    /// The most that one wait lost to it.
    pub longest_ns: Nanos,
    /// The number of its process, if it is one process.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub process: Option<i32>,
    /// The command line of its process; empty if unknown.
    pub command: String,
    /// Its control group; empty for the topmost one.
    pub cgroup: String,
}

/// Waits of the threads of a control group for those of another.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct GroupPair {
    /// The group of those who waited.
    pub victim: String,
    /// The group of those who had the CPU; `kernel`, `interrupts`, `quota` or `not known` if it was none.
    pub culprit: String,
    /// The time.
    pub ns: Nanos,
}

/// A control group with a limit on CPU time.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct QuotaDoc {
    /// The group.
    pub cgroup: String,
    /// How many periods had threads that wanted to run.
    pub periods: u64,
    /// In how many of them the group had used up its time.
    pub throttled: u64,
    /// How long the kernel kept it from running, summed over the CPUs.
    pub throttled_ns: Nanos,
    /// How long observed threads of it waited for that.
    pub waited_ns: Nanos,
}

/// Comparison of the books with `/proc/PID/schedstat`, for threads that slept at both looks.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct CheckDoc {
    /// Threads that were compared.
    pub threads: u64,
    /// Switches to them by the kernel's count.
    pub kernel_switches: u64,
    /// Switches to them by the books.
    pub switches: u64,
    /// Their time on a CPU by the kernel's account.
    pub kernel_ran_ns: Nanos,
    /// Their time on a CPU by the books, without the hypervisor's.
    pub ran_ns: Nanos,
    /// Their time on a run queue by the kernel's account.
    pub kernel_queued_ns: Nanos,
    /// Their time on a run queue by the books.
    pub queued_ns: Nanos,
}

/// The cost of the observation.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct CostDoc {
    /// Bytes of trace.
    pub trace_bytes: u64,
    /// The CPU time of becalm while it recorded.
    pub cpu_ns: Nanos,
}

impl Document for ObservedDoc {
    const SCHEMA: &'static str = SCHEMA;

    fn schema(&self) -> &str {
        &self.schema
    }

    fn node(&self) -> &str {
        &self.node
    }

    /// Checks that the parts of each thread's life add up, and that no sum of times overflows.
    fn check(&self) -> Result<(), String> {
        self.clock.check()?;
        let mut total = 0_i64;
        let mut times: Vec<Nanos> = vec![self.duration_ns, self.cost.cpu_ns];
        for thread in &self.threads {
            let parts = [thread.ran_ns, thread.waited_ns, thread.asleep_ns, thread.unknown_ns];
            let sum = parts.iter().fold(0_i64, |sum, part| sum.saturating_add(part.get()));
            if sum != thread.wall_ns.get() {
                return Err(format!(
                    "the parts of thread {} add up to {sum} ns, and it was observed for {} ns",
                    thread.tid,
                    thread.wall_ns.get()
                ));
            }
            times.extend(parts);
            times.extend([thread.queued_ns, thread.on_the_way_ns, thread.quota_ns, thread.stopped_ns]);
            times.extend([thread.wall_ns, thread.imbalance_ns]);
            times.extend(thread.ran.iter().chain(&thread.asleep).map(|part| part.ns));
            times.extend(thread.takers.iter().map(|taker| taker.ns));
        }
        let CheckDoc { kernel_ran_ns, ran_ns, kernel_queued_ns, queued_ns, .. } = self.checked;
        times.extend([kernel_ran_ns, ran_ns, kernel_queued_ns, queued_ns]);
        times.extend(self.takers.iter().flat_map(|taker| [taker.ns, taker.longest_ns]));
        times.extend(self.groups.iter().map(|pair| pair.ns));
        times.extend(self.quotas.iter().flat_map(|quota| [quota.throttled_ns, quota.waited_ns]));
        for time in times {
            if time < Nanos::ZERO {
                return Err(format!("it has a negative time: {} ns", time.get()));
            }
            total = total.saturating_add(time.get());
        }
        if total > MOST_TOGETHER {
            return Err("its times are longer than any observation".to_owned());
        }
        Ok(())
    }
}

/// The most that all times of a document may add up to, in nanoseconds: no sum of some of them overflows.
const MOST_TOGETHER: i64 = 1 << 61;

impl ObservedDoc {
    /// A document without anything observed.
    pub fn new(node: String, program: String) -> Self {
        Self { schema: SCHEMA.to_owned(), node, program, ..Self::default() }
    }

    /// Whether threads of several control groups were involved.
    pub fn has_several_groups(&self) -> bool {
        let groups = self.threads.iter().map(|thread| &thread.cgroup);
        let takers = self.takers.iter().filter(|taker| taker.process.is_some()).map(|taker| &taker.cgroup);
        let mut all = groups.chain(takers);
        all.next().is_some_and(|first| all.any(|other| other != first))
    }
}

impl Stored for ObservedDoc {
    const CONTENTS: Contents = Contents::Observed;
}
