//! The kernel events that becalm records, and what stays unseen without each.

use std::collections::BTreeSet;
use std::path::Path;

use becalm_units::CpuList;

use super::error::TracefsError;

/// A group of events that show one kind of noise: one row of [`WANTED`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct EventGroup {
    /// The events' directory below `events/`.
    pub system: &'static str,
    /// The events' names; empty for every pair of `_entry` and `_exit` in the directory.
    pub events: &'static [&'static str],
    /// The architectures, as in [`std::env::consts::ARCH`], whose kernels have it; empty for all.
    pub architectures: &'static [&'static str],
    /// Whether it is missed on other architectures, because no other event shows the same there.
    pub missed_elsewhere: bool,
    /// Which of its events are recorded.
    pub filter: EventFilter,
    /// The activity that becalm cannot see without an event.
    pub unseen: &'static str,
}

/// A selection of an event's occurrences. A kernel that cannot filter in such a way records all of them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EventFilter {
    /// All.
    All,
    /// Those that match this expression of tracefs.
    Expression(&'static str),
    /// Those whose field with this name is one of [`InstanceConfig::concerned`](super::InstanceConfig::concerned), or negative: any CPU.
    Concerned(&'static str),
    /// Those on CPUs other than these.
    Elsewhere,
}

/// A longer list of CPUs is not spelled out for kernels that cannot filter by a set of them.
const MOST_SPELLED_OUT: usize = 16;

impl EventFilter {
    /// Whether the event is of no use without it.
    pub(super) const fn is_required(self) -> bool {
        matches!(self, Self::Expression(_))
    }

    /// The expressions to try, the best one first; empty for all events.
    pub(super) fn expressions(self, concerned: &CpuList, online: &CpuList) -> Vec<String> {
        let (field, cpus) = match self {
            Self::All => return Vec::new(),
            Self::Expression(expression) => return vec![expression.to_owned()],
            Self::Concerned(field) => (field, concerned.clone()),
            Self::Elsewhere => ("CPU", online.without(concerned)),
        };
        if cpus.is_empty() {
            return Vec::new();
        }
        let any = if matches!(self, Self::Concerned(_)) { format!(" || {field} == -1") } else { String::new() };
        let mut expressions = vec![format!("{field} & CPUS{{{cpus}}}{any}"), format!("{field} & CPUS{{{cpus}}}")];
        if cpus.len() <= MOST_SPELLED_OUT {
            let each: Vec<String> = cpus.iter().map(|cpu| format!("{field} == {cpu}")).collect();
            expressions.extend([each.join(" || ") + &any, each.join(" || ")]);
        }
        expressions.dedup();
        expressions
    }
}

const X86: &[&str] = &["x86_64", "x86"];

/// Events that show what runs on a CPU.
pub const WANTED: &[EventGroup] = &[
    EventGroup {
        system: "irq",
        events: &["irq_handler_entry", "irq_handler_exit"],
        architectures: &[],
        missed_elsewhere: false,
        filter: EventFilter::All,
        unseen: "device interrupts: their time counts as edge or unseen",
    },
    EventGroup {
        system: "irq",
        events: &["softirq_entry", "softirq_exit"],
        architectures: &[],
        missed_elsewhere: false,
        filter: EventFilter::All,
        unseen: "softirqs: their time counts for the interrupt or thread that they ran in",
    },
    EventGroup {
        system: "irq_vectors",
        events: &[],
        architectures: X86,
        missed_elsewhere: false,
        filter: EventFilter::All,
        unseen: "the CPU's own interrupts (timer tick, reschedule, function call): their time counts as edge or unseen",
    },
    EventGroup {
        system: "nmi",
        events: &["nmi_handler"],
        architectures: X86,
        missed_elsewhere: true,
        filter: EventFilter::All,
        unseen: "non-maskable interrupts (watchdog, profiling): their time counts for what they interrupted",
    },
    EventGroup {
        system: "ipi",
        events: &["ipi_entry", "ipi_exit"],
        architectures: &["aarch64", "arm"],
        missed_elsewhere: false,
        filter: EventFilter::All,
        unseen: "inter-processor interrupts: their time counts as edge or unseen",
    },
    EventGroup {
        system: "sched",
        events: &["sched_switch"],
        architectures: &[],
        missed_elsewhere: false,
        filter: EventFilter::All,
        unseen: "other threads: the time that processes and kernel threads take counts as unseen",
    },
    EventGroup {
        system: "workqueue",
        events: &["workqueue_execute_start", "workqueue_execute_end"],
        architectures: &[],
        missed_elsewhere: false,
        filter: EventFilter::All,
        unseen: "work items: a kernel worker's time is not split over what it executes",
    },
    EventGroup {
        system: "exceptions",
        events: &["page_fault_user", "page_fault_kernel"],
        architectures: &["x86_64", "x86", "riscv64"],
        missed_elsewhere: true,
        filter: EventFilter::All,
        unseen: "page faults of the measured process: their time counts as unseen",
    },
];

/// Events that show the purpose of interrupts and softirqs: their functions, and the threads that they wake.
pub const CARRIED: &[EventGroup] = &[
    EventGroup {
        system: "timer",
        events: &["hrtimer_expire_entry", "hrtimer_expire_exit"],
        architectures: &[],
        missed_elsewhere: false,
        filter: EventFilter::All,
        unseen: "the purpose of timer interrupts: a tick looks like any other timer",
    },
    EventGroup {
        system: "csd",
        events: &["csd_function_entry", "csd_function_exit"],
        architectures: &[],
        missed_elsewhere: false,
        filter: EventFilter::All,
        unseen: "the purpose of interrupts from other CPUs: the functions that they call",
    },
    EventGroup {
        system: "timer",
        events: &["timer_expire_entry"],
        architectures: &[],
        missed_elsewhere: false,
        filter: EventFilter::All,
        unseen: "the purpose of timer softirqs: which timers expired",
    },
    EventGroup {
        system: "irq",
        events: &["tasklet_entry"],
        architectures: &[],
        missed_elsewhere: false,
        filter: EventFilter::All,
        unseen: "the tasklets that the softirqs tasklet and hi run",
    },
    EventGroup {
        system: "sched",
        events: &["sched_waking", "sched_wakeup"],
        architectures: &[],
        missed_elsewhere: false,
        filter: EventFilter::Expression(IN_INTERRUPT),
        unseen: "the threads that interrupts and softirqs wake",
    },
];

/// Those of [`CARRIED`] that show the functions of interrupts and softirqs.
pub const FUNCTIONS: &[EventGroup] = CARRIED.split_at(CARRIED.len() - 1).0;

/// Events that show the lives of threads.
pub const LIVES: &[EventGroup] = &[
    EventGroup {
        system: "sched",
        events: &["sched_waking"],
        architectures: &[],
        missed_elsewhere: false,
        filter: EventFilter::All,
        unseen: "who wakes a thread, and how long a woken thread is on its way to a run queue",
    },
    EventGroup {
        system: "sched",
        events: &["sched_wakeup", "sched_wakeup_new"],
        architectures: &[],
        missed_elsewhere: false,
        filter: EventFilter::All,
        unseen: "when a woken thread starts to wait for a CPU",
    },
    EventGroup {
        system: "sched",
        events: &["sched_migrate_task"],
        architectures: &[],
        missed_elsewhere: false,
        filter: EventFilter::All,
        unseen: "on which CPU a thread waits",
    },
    EventGroup {
        system: "task",
        events: &["task_newtask"],
        architectures: &[],
        missed_elsewhere: false,
        filter: EventFilter::All,
        unseen: "which process a new thread belongs to",
    },
    EventGroup {
        system: "task",
        events: &["task_rename"],
        architectures: &[],
        missed_elsewhere: false,
        filter: EventFilter::All,
        unseen: "the names of programs that start during the recording",
    },
];

/// Events that show who requests calls, interrupts, work items and softirqs. Their executions are in [`WANTED`] and [`CARRIED`].
pub const REQUESTS: &[EventGroup] = &[
    EventGroup {
        system: "csd",
        events: &["csd_queue_cpu"],
        architectures: &[],
        missed_elsewhere: false,
        filter: EventFilter::Concerned("cpu"),
        unseen: "who makes CPUs call functions",
    },
    EventGroup {
        system: "ipi",
        events: &["ipi_send_cpu"],
        architectures: &[],
        missed_elsewhere: false,
        filter: EventFilter::Concerned("cpu"),
        unseen: "who sends reschedule interrupts",
    },
    EventGroup {
        system: "workqueue",
        events: &["workqueue_queue_work"],
        architectures: &[],
        missed_elsewhere: false,
        filter: EventFilter::Concerned("cpu"),
        unseen: "who queues work items",
    },
    EventGroup {
        system: "irq",
        events: &["softirq_raise"],
        architectures: &[],
        missed_elsewhere: false,
        filter: EventFilter::All,
        unseen: "who requests softirqs",
    },
];

/// Events that show who wakes threads, and what runs on the CPUs that are not measured: requests made there have a cause of their own.
pub const REQUESTERS: &[EventGroup] = &[
    EventGroup {
        system: "sched",
        events: &["sched_waking"],
        architectures: &[],
        missed_elsewhere: false,
        filter: EventFilter::All,
        unseen: "who wakes threads",
    },
    EventGroup {
        system: "task",
        events: &["task_newtask", "task_rename"],
        architectures: &[],
        missed_elsewhere: false,
        filter: EventFilter::All,
        unseen: "the names of programs that start during the recording",
    },
    EventGroup {
        system: "irq",
        events: &["irq_handler_entry", "irq_handler_exit", "softirq_entry", "softirq_exit"],
        architectures: &[],
        missed_elsewhere: false,
        filter: EventFilter::Elsewhere,
        unseen: "the interrupts and softirqs of other CPUs that make requests",
    },
    EventGroup {
        system: "timer",
        events: &["hrtimer_expire_entry", "hrtimer_expire_exit", "timer_expire_entry"],
        architectures: &[],
        missed_elsewhere: false,
        filter: EventFilter::Elsewhere,
        unseen: "the timers of other CPUs that make requests",
    },
    EventGroup {
        system: "csd",
        events: &["csd_function_entry", "csd_function_exit"],
        architectures: &[],
        missed_elsewhere: false,
        filter: EventFilter::Elsewhere,
        unseen: "the calls on other CPUs that make requests",
    },
    EventGroup {
        system: "workqueue",
        events: &["workqueue_execute_start", "workqueue_execute_end"],
        architectures: &[],
        missed_elsewhere: false,
        filter: EventFilter::Elsewhere,
        unseen: "the work items of other CPUs that make requests",
    },
];

/// Events that show time taken by a hypervisor, and repair switches that the trace lacks.
pub const HOST: &[EventGroup] = &[EventGroup {
    system: "sched",
    events: &["sched_stat_runtime"],
    architectures: &[],
    missed_elsewhere: false,
    filter: EventFilter::All,
    unseen: "time that the hypervisor takes from a running thread",
}];

/// Events that show what the kernel does in the context of threads, on their behalf.
pub const OWN_WORK: &[EventGroup] = &[
    EventGroup {
        system: "vmscan",
        events: &[
            "mm_vmscan_direct_reclaim_begin",
            "mm_vmscan_direct_reclaim_end",
            "mm_vmscan_memcg_reclaim_begin",
            "mm_vmscan_memcg_reclaim_end",
        ],
        architectures: &[],
        missed_elsewhere: false,
        filter: EventFilter::All,
        unseen: "reclaim: it counts for the program",
    },
    EventGroup {
        system: "compaction",
        events: &["mm_compaction_begin", "mm_compaction_end"],
        architectures: &[],
        missed_elsewhere: false,
        filter: EventFilter::All,
        unseen: "compaction: it counts for the program",
    },
    EventGroup {
        system: "lock",
        events: &["contention_begin", "contention_end"],
        architectures: &[],
        missed_elsewhere: false,
        filter: EventFilter::All,
        unseen: "waits for locks of the kernel: they count for the program",
    },
    EventGroup {
        system: "writeback",
        events: &["balance_dirty_pages"],
        architectures: &[],
        missed_elsewhere: false,
        filter: EventFilter::All,
        unseen: "that a thread is slowed down for writing too much: it counts as sleep",
    },
];

/// Events that show the system calls and page faults of threads.
pub const CALLS: &[EventGroup] = &[
    EventGroup {
        system: "raw_syscalls",
        events: &["sys_enter", "sys_exit"],
        architectures: &[],
        missed_elsewhere: false,
        filter: EventFilter::All,
        unseen: "the system calls that threads run and sleep in",
    },
    EventGroup {
        system: "exceptions",
        events: &["page_fault_user", "page_fault_kernel"],
        architectures: &[],
        missed_elsewhere: false,
        filter: EventFilter::All,
        unseen: "which sleeps are those of page faults",
    },
];

/// Selects events in interrupt handlers and softirqs: `TRACE_FLAG_HARDIRQ` and `TRACE_FLAG_SOFTIRQ` of `include/linux/trace_events.h`.
const IN_INTERRUPT: &str = "common_flags & 24";

/// An event by its place below `events/`. Ordered by system, then name.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct EventPath {
    /// The directory below `events/`, such as `sched`.
    pub system: String,
    /// The event's directory in it, such as `sched_switch`.
    pub name: String,
}

/// Prints the path, such as `sched/sched_switch`.
impl std::fmt::Display for EventPath {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(&format!("{}/{}", self.system, self.name))
    }
}

/// An event, or a directory of events, that this kernel lacks or does not let becalm use.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MissingEvent {
    /// The path of the event below `events/`, such as `sched/sched_switch`, or `irq_vectors/*` for a whole directory.
    pub event: String,
    /// The reason: `this kernel does not have it`, or the error.
    pub why: String,
    /// The activity that becalm cannot see without the event, as part of a sentence.
    pub unseen: &'static str,
}

/// The wanted events that a kernel has and lacks.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Discovery {
    /// Present events, in the order of their groups.
    pub present: Vec<(EventPath, &'static EventGroup)>,
    /// Expected events that are missing.
    pub missing: Vec<MissingEvent>,
}

/// Looks for events of these groups below `events` (that directory of a tracefs or an instance). Events
/// of other architectures are used if present; if absent, they are missing unless other events show the same. Fails if the directory cannot be
/// listed. If a system has no directory, only its events are missing.
pub fn discover(
    events: &Path,
    architecture: &str,
    groups: &[&'static [EventGroup]],
) -> Result<Discovery, TracefsError> {
    let systems = list(events)?;
    let names_of = |system: &str| {
        if systems.contains(system) { list(&events.join(system)) } else { Ok(BTreeSet::new()) }
    };
    sort_out(names_of, architecture, groups, "this kernel does not have it")
}

/// Looks for the wanted events in a trace that another program recorded on a machine of that architecture.
pub fn discover_among(events: &[EventPath], architecture: &str) -> Discovery {
    let names_of = |system: &str| {
        Ok::<_, std::convert::Infallible>(
            events.iter().filter(|event| event.system == system).map(|event| event.name.clone()).collect(),
        )
    };
    let Ok(found) = sort_out(names_of, architecture, &[WANTED, CARRIED], "it is not in the trace");
    found
}

/// Separates the wanted events into present and missing ones, by the names in each system.
fn sort_out<E>(
    names_of: impl Fn(&str) -> Result<BTreeSet<String>, E>,
    architecture: &str,
    groups: &[&'static [EventGroup]],
    not_there: &str,
) -> Result<Discovery, E> {
    let mut found = Discovery::default();
    for wanted in groups.iter().copied().flatten() {
        let expected = wanted.architectures.is_empty() || wanted.architectures.contains(&architecture);
        let names = names_of(wanted.system)?;
        let mut miss = |name: &str| {
            if expected || wanted.missed_elsewhere {
                let event = format!("{}/{name}", wanted.system);
                let why = if expected { not_there } else { "this architecture does not have it" };
                found.missing.push(MissingEvent { event, why: why.to_owned(), unseen: wanted.unseen });
            }
        };
        let mut present: Vec<&str> = Vec::new();
        if wanted.events.is_empty() {
            present.extend(names.iter().map(String::as_str).filter(|name| is_half_of_pair(name, &names)));
            if present.is_empty() {
                miss("*");
            }
        }
        for name in wanted.events {
            if names.contains(*name) { present.push(name) } else { miss(name) }
        }
        let path = |name: &str| EventPath { system: wanted.system.to_owned(), name: name.to_owned() };
        found.present.extend(present.into_iter().map(|name| (path(name), wanted)));
    }
    Ok(found)
}

/// Whether the event marks the start or the end of something, and its partner exists. The other events of `irq_vectors` report how vectors are
/// configured.
fn is_half_of_pair(name: &str, names: &BTreeSet<String>) -> bool {
    let entry = name.strip_suffix("_entry").map(|stem| format!("{stem}_exit"));
    let exit = name.strip_suffix("_exit").map(|stem| format!("{stem}_entry"));
    entry.or(exit).is_some_and(|partner| names.contains(&partner))
}

fn list(folder: &Path) -> Result<BTreeSet<String>, TracefsError> {
    let fail = |source| TracefsError::io("list", folder, source);
    let mut names = BTreeSet::new();
    for entry in std::fs::read_dir(folder).map_err(fail)? {
        names.insert(entry.map_err(fail)?.file_name().to_string_lossy().into_owned());
    }
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filters_by_cpus_are_spelled_out_for_old_kernels() {
        let (measured, online) = ("1".parse().unwrap(), "0-3".parse().unwrap());
        let expressions = |filter: EventFilter| filter.expressions(&measured, &online);
        assert_eq!(
            expressions(EventFilter::Concerned("cpu")),
            ["cpu & CPUS{1} || cpu == -1", "cpu & CPUS{1}", "cpu == 1 || cpu == -1", "cpu == 1"]
        );
        assert_eq!(expressions(EventFilter::Elsewhere), ["CPU & CPUS{0,2-3}", "CPU == 0 || CPU == 2 || CPU == 3"]);
        assert!(expressions(EventFilter::All).is_empty());
        assert!(EventFilter::Elsewhere.expressions(&online, &online).is_empty());
        assert!(EventFilter::Concerned("cpu").expressions(&CpuList::default(), &online).is_empty());
        let many = "0-99".parse().unwrap();
        assert_eq!(EventFilter::Concerned("cpu").expressions(&many, &many).len(), 2);
    }

    fn tree(events: &[&str]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for event in events {
            std::fs::create_dir_all(root.path().join(event)).unwrap();
        }
        root
    }

    #[test]
    fn vectors_are_found_by_their_pairs() {
        let root = tree(&[
            "irq_vectors/local_timer_entry",
            "irq_vectors/local_timer_exit",
            "irq_vectors/vector_alloc",
            "irq_vectors/odd_entry",
        ]);
        let found = discover(root.path(), "x86_64", &[WANTED]).unwrap();
        let names: Vec<String> = found.present.iter().map(|(event, _)| event.to_string()).collect();
        assert_eq!(names, ["irq_vectors/local_timer_entry", "irq_vectors/local_timer_exit"]);
    }

    #[test]
    fn what_is_missing_is_named_with_its_consequence() {
        let root = tree(&["irq/irq_handler_entry", "irq/irq_handler_exit", "sched/sched_switch"]);
        let found = discover(root.path(), "x86_64", &[WANTED]).unwrap();
        assert_eq!(found.present.len(), 3);
        let missing: Vec<&str> = found.missing.iter().map(|missing| missing.event.as_str()).collect();
        assert_eq!(
            missing,
            [
                "irq/softirq_entry",
                "irq/softirq_exit",
                "irq_vectors/*",
                "nmi/nmi_handler",
                "workqueue/workqueue_execute_start",
                "workqueue/workqueue_execute_end",
                "exceptions/page_fault_user",
                "exceptions/page_fault_kernel"
            ]
        );
        assert!(found.missing[0].unseen.starts_with("softirqs"));
        // An Arm kernel has no local vectors, but inter-processor interrupts.
        let arm = discover(root.path(), "aarch64", &[WANTED]).unwrap();
        assert!(arm.missing.iter().any(|missing| missing.event == "ipi/ipi_entry"));
        assert!(!arm.missing.iter().any(|missing| missing.event.starts_with("irq_vectors")));
        // Events that no Arm kernel has still stay unseen there.
        let faults = arm.missing.iter().find(|missing| missing.event == "exceptions/page_fault_user").unwrap();
        assert_eq!(faults.why, "this architecture does not have it");
        assert!(faults.unseen.starts_with("page faults"));
    }

    #[test]
    fn events_of_the_purpose_of_interrupts_are_found_on_request() {
        let events = ["timer/hrtimer_expire_entry", "timer/hrtimer_expire_exit", "timer/timer_expire_entry"];
        let root = tree(&events);
        let found = |carried| {
            let Discovery { present, missing } =
                discover(root.path(), "x86_64", if carried { &[WANTED, CARRIED] } else { &[WANTED] }).unwrap();
            let present: Vec<String> = present.iter().map(|(event, _)| event.to_string()).collect();
            (present, missing.iter().any(|missing| missing.event == "csd/csd_function_entry"))
        };
        assert_eq!(found(false), (Vec::new(), false));
        // Older kernels have no events of calls from other CPUs.
        assert_eq!(found(true), (events.iter().map(|event| (*event).to_owned()).collect(), true));
    }

    #[test]
    fn no_folder_is_an_error_with_its_path() {
        let error = discover(Path::new("/nonexistent/events"), "x86_64", &[WANTED]).unwrap_err();
        assert!(error.to_string().starts_with("cannot list /nonexistent/events: No such file"), "{error}");
    }
}
