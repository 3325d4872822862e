//! The catalogue of known noise and its fixes, behind advice, checks and plans: functions of the kernel, and other sources.
//!
//! A source that is named by a function has the advice of the function. Others have that of the first row that matches, and an unknown source that
//! of its kind.

mod functions;
mod sources;

pub use functions::{Function, function, of_source as function_of_source};
pub use sources::{Known, Remedy};

use serde::{Deserialize, Serialize};

use crate::carried::TIMERS;
use crate::family::Family;
use crate::node::MachineDoc;
use crate::{Kind, not_traced, unseen};

/// Sources of noise, as recordings name them.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct NoiseSource {
    /// The kind of the activity.
    pub kind: Kind,
    /// The name of the source; a final `*` matches any ending.
    pub source: String,
}

impl NoiseSource {
    /// The noise of a source by its own name: an interrupt by its handler's name, a thread by its program's.
    pub fn new(kind: Kind, source: impl Into<String>) -> Self {
        Self { kind, source: source.into() }
    }

    /// Whether this is the source with this kind and name in a recording.
    pub fn matches(&self, kind: Kind, source: &str) -> bool {
        kind == self.kind && fits(&self.source, source)
    }
}

/// Whether a name matches a pattern; a final `*` in it stands for any ending.
fn fits(pattern: &str, name: &str) -> bool {
    pattern.strip_suffix('*').map_or(pattern == name, |beginning| name.starts_with(beginning))
}

/// What removes or reduces noise.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Fix {
    /// The families of knobs with a change that removes it at run time.
    pub families: &'static [Family],
    /// A sentence about what usually removes or reduces it; `None` if nothing is known.
    pub advice: Option<&'static str>,
    /// The requirement of the advice.
    pub needs: Option<Need>,
}

impl Fix {
    /// The advice for these machines, or a sentence about the missing requirement.
    fn on<'a>(&self, machines: impl IntoIterator<Item = &'a MachineDoc>) -> Option<&'static str> {
        let Some(need) = self.needs else { return self.advice };
        let met: Vec<Option<bool>> = machines.into_iter().map(|machine| need.is_met(machine)).collect();
        let all = |is_met| !met.is_empty() && met.iter().all(|met| *met == Some(is_met));
        match (all(true), all(false)) {
            (true, _) => self.advice,
            (_, true) => Some(need.otherwise()),
            _ => need.in_doubt().or(self.advice),
        }
    }
}

/// A requirement of advice on the machine.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Need {
    /// A kernel that stops the tick of a CPU with one runnable thread.
    StoppableTick,
    /// A kernel that runs the callbacks of memory reclaiming in threads that can be moved.
    MovableCallbacks,
    /// Control groups of version 2.
    NewGroups,
    /// Hardware and firmware of its own, not a host's.
    Metal,
}

impl Need {
    /// Whether a machine meets it; `None` if unknown.
    pub fn is_met(self, machine: &MachineDoc) -> Option<bool> {
        match self {
            Self::NewGroups => machine.cpu_groups.map(|version| version >= 2),
            Self::StoppableTick => machine.has_option("NO_HZ_FULL"),
            Self::MovableCallbacks => machine.has_option("RCU_NOCB_CPU"),
            Self::Metal if machine.hypervisor.is_some() => Some(false),
            // A document without a kernel does not describe its machine.
            Self::Metal => (!machine.kernel.is_empty()).then_some(true),
        }
    }

    /// The text if it is not met: what is missing, or what helps instead.
    pub const fn otherwise(self) -> &'static str {
        match self {
            Self::StoppableTick => {
                "the tick: this kernel cannot stop it because it was built without CONFIG_NO_HZ_FULL"
            }
            Self::MovableCallbacks => {
                "RCU callbacks: this kernel cannot move them because it was built without CONFIG_RCU_NOCB_CPU"
            }
            Self::NewGroups => "the quota of its control group took the CPU: raise cpu.cfs_quota_us of the group",
            Self::Metal => "not the guest's kernel: the host ran something else; dedicate CPUs to this guest",
        }
    }

    /// The advice if only some machines meet it, or if that is unknown; `None` to keep the row's advice.
    pub const fn in_doubt(self) -> Option<&'static str> {
        match self {
            Self::StoppableTick | Self::MovableCallbacks | Self::NewGroups => None,
            Self::Metal => Some(
                "not the kernel: on a guest the host ran something else (dedicate its CPUs); else firmware (turn off SMI sources)",
            ),
        }
    }
}

/// If timer interrupts exceed the tick rate by more than this factor, not all of them are ticks.
const TICKS_AND_MORE: f64 = 1.5;
/// The tick rate assumed for a kernel that hides its own: the highest possible one, per second.
const HIGHEST_TICK_HZ: f64 = 1_000.0;

/// Whether unnamed timer interrupts at this rate, per CPU and second, can be the tick of any of these machines.
pub fn may_be_the_tick<'a>(rate_hz: f64, machines: impl IntoIterator<Item = &'a MachineDoc>) -> bool {
    let tick_hz = machines.into_iter().map(|machine| machine.tick_hz().unwrap_or(HIGHEST_TICK_HZ));
    rate_hz <= TICKS_AND_MORE * tick_hz.reduce(f64::max).unwrap_or(HIGHEST_TICK_HZ)
}

const NOT_THE_TICK: &str = "timers, not only the tick; the recording does not name them: look for profilers, and for programs that often sleep for short times";

/// Whether a fix for a source can exist: not for the processor itself, nor for gaps in the trace that nothing else caused.
fn has_remedy(kind: Kind, source: &str) -> bool {
    match kind {
        Kind::NotTraced => ![not_traced::MISSING_SWITCH, not_traced::LOST_EVENTS].contains(&source),
        Kind::Unseen => source != unseen::SHORT,
        _ => true,
    }
}

/// A sentence about what removes or reduces a source on these machines, or about the missing requirement. `None` if nothing is known. `timers_tick`
/// says whether unnamed timer interrupts may be the tick; see [`may_be_the_tick`].
pub fn advice<'a>(
    kind: Kind,
    source: &str,
    machines: impl IntoIterator<Item = &'a MachineDoc>,
    timers_tick: bool,
) -> Option<&'static str> {
    if !has_remedy(kind, source) {
        return None;
    }
    if kind == Kind::Irq && TIMERS.contains(&source) && !timers_tick {
        return Some(NOT_THE_TICK);
    }
    if let Some(function) = functions::of_source(kind, source) {
        return function.advice(machines);
    }
    let rows = Known::ALL.iter().map(|known| known.remedy());
    let row = rows.filter(|row| row.kind == kind && fits(row.source, source)).find(|row| row.fix.advice.is_some())?;
    row.fix.on(machines)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn noise_is_matched_by_kind_and_name() {
        let noise = NoiseSource::new(Kind::Task, "sshd");
        let matches = |kind, source| noise.matches(kind, source);
        assert!(matches(Kind::Task, "sshd") && !matches(Kind::Kthread, "sshd") && !matches(Kind::Task, "sshd2"));
        let workers = NoiseSource::new(Kind::Workqueue, "kworker:*");
        assert!(workers.matches(Kind::Workqueue, "kworker:vmstat_update"));
        assert!(!workers.matches(Kind::Workqueue, "other"));
        assert!(NoiseSource::from(Known::Task).matches(Kind::Task, "anything"));
    }

    #[test]
    fn no_source_is_hidden_behind_a_more_general_one() {
        for (at, known) in Known::ALL.iter().enumerate() {
            let row = known.remedy();
            let hides =
                |earlier: &&Known| earlier.remedy().kind == row.kind && fits(earlier.remedy().source, row.source);
            assert_eq!(Known::ALL[..at].iter().find(hides), None, "{known:?}");
        }
    }

    #[test]
    fn nothing_is_advised_that_no_machine_can_do() {
        let machine = |options: &[(&str, &str)], cpu_groups| MachineDoc {
            built_with: options.iter().map(|(option, value)| ((*option).to_owned(), (*value).to_owned())).collect(),
            cpu_groups,
            ..MachineDoc::default()
        };
        let able = machine(&[("NO_HZ_FULL", "y"), ("RCU_NOCB_CPU", "y")], Some(2));
        let unable = machine(&[("NO_HZ_FULL", "n"), ("RCU_NOCB_CPU", "n")], Some(1));
        let unknown = MachineDoc::default();
        for (kind, source, advised, otherwise) in [
            (Kind::Irq, "tick", "boot with nohz_full=", "CONFIG_NO_HZ_FULL"),
            (Kind::Irq, "local_timer", "boot with nohz_full=", "CONFIG_NO_HZ_FULL"),
            (Kind::Softirq, "rcu", "boot with rcu_nocbs=", "CONFIG_RCU_NOCB_CPU"),
            (Kind::Throttling, "cfs_bandwidth", "cpu.max", "cpu.cfs_quota_us"),
            (Kind::Irq, "timer:sched_cfs_period_timer", "cpu.max", "cpu.cfs_quota_us"),
        ] {
            let says = |machines: &[&MachineDoc], part: &str| {
                let advice = advice(kind, source, machines.iter().copied(), true).unwrap();
                assert!(advice.contains(part), "{advice}");
            };
            says(&[&able], advised);
            says(&[&unknown], advised);
            says(&[], advised);
            says(&[&able, &unable], advised);
            says(&[&unable], otherwise);
            says(&[&unable, &unable], otherwise);
        }
    }

    /// A guest has no firmware to change, and bare metal no host.
    #[test]
    fn a_guest_is_not_advised_of_firmware_nor_bare_metal_of_a_host() {
        let metal = MachineDoc { kernel: "Linux 6.12".to_owned(), ..MachineDoc::default() };
        let guest = MachineDoc { hypervisor: Some("kvm".to_owned()), ..metal.clone() };
        for source in ["long", "anything"] {
            let advice =
                |machines: &[&MachineDoc]| super::advice(Kind::Unseen, source, machines.iter().copied(), true).unwrap();
            assert!(advice(&[&metal]).contains("SMI") && !advice(&[&metal]).contains("host"));
            assert!(advice(&[&guest]).contains("host") && !advice(&[&guest]).contains("SMI"));
            for machines in [&[][..], &[&metal, &guest], &[&MachineDoc::default(), &metal]] {
                assert!(advice(machines).contains("host") && advice(machines).contains("SMI"));
            }
        }
    }

    #[test]
    fn unnamed_timers_are_not_called_the_tick_if_they_cannot_be() {
        let machine = MachineDoc { built_with: [("HZ".to_owned(), "250".to_owned())].into(), ..MachineDoc::default() };
        assert!(may_be_the_tick(260.0, [&machine]) && !may_be_the_tick(1_250.0, [&machine]));
        // A kernel that hides its tick rate may have 1,000 ticks per second.
        assert!(may_be_the_tick(1_250.0, []) && !may_be_the_tick(1_600.0, []));
        for source in TIMERS {
            assert_eq!(advice(Kind::Irq, source, [], true), functions::TICK.fix.advice, "{source}");
            assert_eq!(advice(Kind::Irq, source, [], false), Some(NOT_THE_TICK), "{source}");
        }
        assert_eq!(advice(Kind::Irq, "tick", [], false), functions::TICK.fix.advice);
        // The softirq of this name is another source.
        assert!(advice(Kind::Softirq, "timer", [], false).is_some_and(|text| text.contains("timer_migration")));
    }

    #[test]
    fn what_cannot_be_removed_has_no_advice() {
        for (kind, source) in [
            (Kind::Unseen, unseen::SHORT),
            (Kind::NotTraced, not_traced::MISSING_SWITCH),
            (Kind::NotTraced, not_traced::LOST_EVENTS),
        ] {
            assert_eq!(advice(kind, source, [], true), None, "{source}");
        }
        assert!(advice(Kind::NotTraced, not_traced::TRACE_CHANGED, [], true).is_some());
    }

    #[test]
    fn sources_named_by_functions_have_the_advice_of_the_function() {
        let advice = |kind, source| advice(kind, source, [], true);
        for (kind, source, part) in [
            (Kind::Irq, "timer:perf_swevent_hrtimer", "perf sessions"),
            (Kind::Irq, "timer:hrtimer_wakeup", "timer_migration"),
            (Kind::Softirq, "timer:bpf_timer_cb", "BPF program"),
            (Kind::Softirq, "timer:delayed_work_timer_fn", "work item"),
            (Kind::Irq, "ipi:__perf_event_read", "monitor"),
            (Kind::Irq, "ipi:rps_trigger_softirq", "rps_cpus"),
            (Kind::Irq, "ipi:flush_tlb_func", "free or remap memory"),
            (Kind::Irq, "ipi:flush_tlb_func_remote", "free or remap memory"),
            (Kind::Workqueue, "kworker:vmstat_update", "vm.stat_interval"),
            (Kind::Workqueue, "kworker:flush_to_ldisc", "workqueue/cpumask"),
            // Functions that are not in the catalogue.
            (Kind::Irq, "timer:a_timer_of_a_module", "timer_migration"),
            (Kind::Irq, "ipi:a_call_of_a_module", "threads of one process"),
            (Kind::Workqueue, "kworker:a_work_of_a_module", "workqueue/cpumask"),
        ] {
            assert!(
                advice(kind, source).is_some_and(|text| text.contains(part)),
                "{source}: {:?}",
                advice(kind, source)
            );
        }
        assert_eq!(advice(Kind::Softirq, "timer:dev_watchdog"), None, "nothing helps");
        // A work item is no interrupt.
        assert_ne!(advice(Kind::Irq, "ipi:vmstat_update"), advice(Kind::Workqueue, "kworker:vmstat_update"));
    }

    #[test]
    fn a_source_without_advice_of_its_own_has_that_of_its_kind() {
        let advice = |kind, source| advice(kind, source, [], true);
        assert_eq!(advice(Kind::Kthread, "ksmd"), advice(Kind::Kthread, "any"));
        assert_eq!(advice(Kind::Irq, "local_timer"), functions::TICK.fix.advice);
        assert!(advice(Kind::Irq, "nvme0q1").is_some_and(|text| text.contains("smp_affinity_list")));
        assert_eq!((advice(Kind::Softirq, "tasklet"), advice(Kind::Edge, "edge")), (None, None));
        let quiet = [Kind::Softirq, Kind::Edge, Kind::Throttling];
        for kind in Kind::ALL.iter().filter(|kind| !quiet.contains(kind)) {
            assert!(advice(*kind, "any").is_some(), "{kind}");
        }
    }
}
