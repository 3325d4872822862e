//! Setup of the kernel's trace for the measured CPUs.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use becalm_linux::ftrace::{
    CARRIED, EventGroup, Faults, Instance, InstanceConfig, TraceClock, Tracefs, TracefsError, WANTED, remove_dead,
};
use becalm_linux::janitor::Janitor;
use becalm_linux::procfs::interrupts::Interrupts;
use becalm_linux::procfs::kallsyms::Kallsyms;
use becalm_linux::rights::Need;
use becalm_linux::sched::AffinityGuard;
use becalm_linux::sysfs::machine::Lockdown;
use becalm_model::node::{TracingDoc, Warning};
use becalm_model::warning;
use becalm_units::{CpuList, Named, Nanos};

use super::UNTRACED_TIMER;
use crate::machine;
use crate::plan::RecordPlan;

/// The size of the trace's sub-buffers if the kernel lets us choose. Each read takes one, so 10,000 events per second on each of 1,024 CPUs need some
/// thousand reads per second.
const SUBBUF_KB: u32 = 64;
/// The memory limit for buffers of all CPUs that are not measured, in KiB. The kernel gives each three sub-buffers.
const UNMEASURED_KB: u32 = 32 << 10;

/// The size of sub-buffers if this many CPUs are not measured.
fn sub_buffer_kb(unmeasured: usize) -> u32 {
    let unmeasured = u32::try_from(unmeasured).unwrap_or(u32::MAX);
    let fits = |kb: &u32| kb.saturating_mul(3).saturating_mul(unmeasured) <= UNMEASURED_KB;
    [SUBBUF_KB, 32, 16, 8].into_iter().find(fits).unwrap_or(4)
}

/// The kernel's trace, set up and switched off.
pub struct Tracing {
    /// The trace instance.
    pub instance: Instance,
    /// The clock of its time stamps.
    pub clock: TraceClock,
    /// The names of the kernel's functions; `None` if the kernel hides them.
    pub symbols: Option<Arc<Kallsyms>>,
    /// The kernel's strings by address, which name the reasons of inter-processor interrupts on Arm.
    pub strings: BTreeMap<u64, String>,
    /// The name of the CPUs' timer interrupt if it has no event.
    pub untraced_timer: &'static str,
    /// The trace's part of the node's document.
    pub doc: TracingDoc,
}

/// A trace to be set up.
#[derive(Clone, Debug)]
pub struct TraceRequest<'a> {
    /// The root of the file system: `/` outside of tests.
    pub root: &'a Path,
    /// The CPUs.
    pub cpus: &'a CpuList,
    /// The size of the buffer of each of them, in bytes.
    pub buffer_bytes: usize,
    /// The name of the counter that the trace is compared with.
    pub counter: &'a str,
    /// The recorded events.
    pub events: &'static [&'static [EventGroup]],
    /// Whose page faults are recorded.
    pub faults: Faults,
    /// The CPUs that filters mean, if they mean any.
    pub concerned: Option<&'a CpuList>,
    /// The threads whose events are recorded, with those that they create; `None` for all.
    pub threads: Option<Vec<i32>>,
    /// Names of the kernel's functions, if they have been read already.
    pub symbols: Option<Arc<Kallsyms>>,
}

impl<'a> TraceRequest<'a> {
    /// The trace of a recording with loops.
    pub fn for_loops(plan: &'a RecordPlan, cpus: &'a CpuList, counter: &'a str, faults: Faults) -> Self {
        Self {
            root: &plan.root,
            cpus,
            buffer_bytes: plan.trace_bytes,
            counter,
            events: &[WANTED, CARRIED],
            faults,
            concerned: None,
            threads: None,
            symbols: plan.symbols.clone(),
        }
    }
}

impl Tracing {
    /// Sets up a trace and leaves it off. Missing parts are added to the warnings; `None` if no trace is possible.
    pub fn set_up(
        request: &TraceRequest<'_>,
        guard: &Result<Arc<Janitor>, String>,
        warnings: &mut Vec<Warning>,
    ) -> Option<Self> {
        if let Err(why) = guard {
            warnings.push(warning::no_janitor(why));
        }
        match Self::try_set_up(request, guard.as_ref().ok().cloned(), warnings) {
            Ok(tracing) => Some(tracing),
            Err(error) => {
                // In that case the kernel only returns "no such file" or "not permitted".
                let why = match Lockdown::read(request.root) {
                    Ok(Lockdown::Confidentiality) => {
                        format!("kernel lockdown (confidentiality) forbids it, also to root; {error}")
                    }
                    _ => error.to_string(),
                };
                warnings.push(warning::no_tracing(&why));
                None
            }
        }
    }

    /// The same for a trace of requests. The set-up of the main trace has given all other warnings: this one only warns if there is no trace.
    pub fn for_requests(
        request: &TraceRequest<'_>,
        guard: &Result<Arc<Janitor>, String>,
        warnings: &mut Vec<Warning>,
    ) -> Option<Self> {
        let guard = guard.as_ref().ok().cloned();
        let tracing = Self::try_set_up(request, guard, &mut Vec::new());
        tracing.map_err(|error| warnings.push(warning::no_causes(&error.to_string()))).ok()
    }

    fn try_set_up(
        request: &TraceRequest<'_>,
        janitor: Option<Arc<Janitor>>,
        warnings: &mut Vec<Warning>,
    ) -> Result<Self, TracefsError> {
        let TraceRequest { root, cpus, .. } = *request;
        let proc_root = root.join("proc");
        let tracefs = Tracefs::find_or_mount(root, Path::new(Tracefs::MOUNT_POINT), janitor.as_ref())?;
        // Instances left by instances of becalm that were killed together with their janitors slow down every event of all users.
        remove_dead(&tracefs, &proc_root)?;
        // The counter's own clock needs no conversion. The fallback counter is the kernel's raw clock itself.
        let offered = tracefs.clocks()?;
        let tsc = request.counter == "tsc" && offered.iter().any(|clock| clock == TraceClock::X86Tsc.name());
        let clock = if tsc { TraceClock::X86Tsc } else { TraceClock::MonoRaw };
        let untraced_timer = untraced_timer(root);
        let kib = |bytes: usize| u32::try_from(bytes >> 10).unwrap_or(u32::MAX).max(64);
        let config = InstanceConfig {
            cpus: cpus.clone(),
            clock,
            buffer_kb: kib(request.buffer_bytes),
            subbuf_kb: Some(sub_buffer_kb(machine::cpu_list(root, "online").without(cpus).len())),
            faults: request.faults,
            events: request.events,
            concerned: request.concerned.cloned().unwrap_or_default(),
            threads: request.threads.clone(),
        };
        let instance = Instance::create(&tracefs, &proc_root, &config, janitor)?;
        let missing: Vec<String> = instance
            .missing()
            .iter()
            .map(|event| format!("{} ({}): {}", event.event, event.why, event.unseen))
            .collect();
        if !missing.is_empty() {
            warnings.push(warning::missing_events(&missing));
        }
        let symbols = request.symbols.clone().or_else(|| read_symbols(root, warnings));
        let event_cost = cost_of_event(&instance, cpus);
        let buffer_kb = cpus.iter().next().map_or(Ok(0), |cpu| instance.buffer_kb(cpu))?;
        let doc = TracingDoc {
            clock: clock.name().to_owned(),
            events: instance.enabled().iter().map(ToString::to_string).collect(),
            missing,
            buffer_bytes: u64::from(buffer_kb) << 10,
            event_cost_ns: event_cost,
            changed: None,
            causes: None,
        };
        let strings = tracefs.strings().unwrap_or_default();
        let untraced_timer = untraced_timer.unwrap_or(UNTRACED_TIMER);
        Ok(Self { instance, clock, symbols, strings, untraced_timer, doc })
    }
}

/// Reads the names of the kernel's functions; warns if that fails.
pub(super) fn read_symbols(root: &Path, warnings: &mut Vec<Warning>) -> Option<Arc<Kallsyms>> {
    match Kallsyms::read(root) {
        Ok(symbols) => Some(Arc::new(symbols)),
        Err(error) => {
            warnings.push(warning::no_symbols(&error.to_string(), Need::Symbols.advice()));
            None
        }
    }
}

/// The name of the CPUs' timer interrupt if it occurs without a kernel event: under Hyper-V, whose timers interrupt directly (`sysvec_hyperv_stimer0`
/// in `arch/x86/kernel/cpu/mshyperv.c`).
fn untraced_timer(root: &Path) -> Option<&'static str> {
    let interrupts = Interrupts::read(root).ok()?;
    let comes = interrupts.lines.iter().any(|line| line.id == "HVS" && line.total() > 0);
    comes.then_some("hyperv_stimer0")
}

/// The cost of one event on a measured CPU; `None` if it cannot be measured.
fn cost_of_event(instance: &Instance, cpus: &CpuList) -> Option<Nanos> {
    let there = AffinityGuard::keep_on(cpus).ok()?;
    let cost = instance.event_cost().ok().flatten();
    drop(there);
    cost.and_then(|ns| i64::try_from(ns).ok()).map(Nanos::new)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timer_without_an_event_is_found_by_its_counts() {
        let root = tempfile::tempdir().unwrap();
        assert_eq!(untraced_timer(root.path()), None);
        std::fs::create_dir_all(root.path().join("proc")).unwrap();
        for (count, name) in [(0, None), (7, Some("hyperv_stimer0"))] {
            let text = format!("CPU0 CPU1\nLOC: 0 0 Local timer\nHVS: 0 {count} Hyper-V stimer0 interrupts\n");
            std::fs::write(root.path().join("proc/interrupts"), text).unwrap();
            assert_eq!(untraced_timer(root.path()), name);
        }
    }

    #[test]
    fn cpus_that_are_not_measured_take_little_memory() {
        assert_eq!([0, 1, 170, 171, 1_023, 100_000].map(sub_buffer_kb), [64, 64, 64, 32, 8, 4]);
    }
}
