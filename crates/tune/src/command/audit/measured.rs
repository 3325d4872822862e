//! Counts ticks while a thread is busy on each CPU: the only proof that the tick is gone. If the trace does not name ticks, counts all timer
//! interrupts.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::{Duration, Instant};

use becalm_linux::janitor::Janitor;
use becalm_linux::procfs::interrupts::Interrupts;
use becalm_linux::sched::{ThreadUsage, pin_current_thread};
use becalm_measure::{RecordPlan, StandingTrace};
use becalm_model::carried::TICK;
use becalm_model::{Event, Happening};
use becalm_units::fault::{self, Context};
use becalm_units::{CpuId, CpuList, Nanos};

use crate::document::{TickCount, TicksFrom};

/// The most CPUs kept busy at once; they represent the others.
const AT_ONCE: usize = 64;

/// The kernel stops the tick only after a thread has run alone for a while.
const SETTLING: Duration = Duration::from_millis(100);

/// The event that shows the functions of timer interrupts.
const EVENT: &str = "timer/hrtimer_expire_entry";

/// The trace buffer of each CPU, in bytes. It holds some ten thousand interrupts.
const TRACE_BYTES: usize = 4 << 20;

/// Counts for some time, on all CPUs at once. The process must have one thread, because it forks a guard process. Fails if no CPU lets a thread run
/// on it, or the kernel's counters cannot be read.
pub fn count(cpus: &CpuList, time: Nanos) -> fault::Result<Vec<TickCount>> {
    let time = Duration::from_nanos(time.get().unsigned_abs());
    let measured: Vec<CpuId> = cpus.iter().take(AT_ONCE).collect();
    let mut trace = trace_of(measured.iter().copied().collect());
    // The threads and this one, which reads the counters at the start and at the end.
    let barrier = Barrier::new(measured.len() + 1);
    thread::scope(|scope| {
        let busy: Vec<_> = measured.iter().map(|cpu| scope.spawn(|| keep_busy(*cpu, time, &barrier))).collect();
        barrier.wait();
        thread::sleep(SETTLING);
        let begin = Interrupts::read(Path::new("/"));
        let is_traced = trace.as_mut().is_some_and(|trace| trace.turn(true).is_ok());
        let start = Instant::now();
        thread::sleep(time);
        let during = Nanos::new(i64::try_from(start.elapsed().as_nanos()).unwrap_or(i64::MAX));
        let traced = trace.as_mut().filter(|_| is_traced).and_then(ticks_in);
        let end = Interrupts::read(Path::new("/"));
        let grown =
            end.context("cannot count timer interrupts")?.since(&begin.context("cannot count timer interrupts")?);
        let mut ticks = Vec::new();
        let mut failed = None;
        for (cpu, thread) in measured.iter().zip(busy) {
            match thread.join().unwrap_or_else(|_| Err(fault::Error::new(format!("the thread on CPU {cpu} ended")))) {
                Err(error) => failed = Some(error),
                Ok(preempted) => {
                    let traced = traced.as_ref().and_then(|traced| traced.get(cpu).copied());
                    let Some(interrupts) = traced.or_else(|| timers(&grown, *cpu)) else {
                        failed = Some(fault::Error::new("/proc/interrupts has no line of the timer"));
                        continue;
                    };
                    let from = TicksFrom::Measured { preempted };
                    ticks.push(TickCount { cpu: *cpu, interrupts, are_ticks: traced.is_some(), during, from });
                }
            }
        }
        match (ticks.is_empty(), failed) {
            (true, Some(error)) => Err(error),
            _ => Ok(ticks),
        }
    })
}

/// The kernel's trace of these CPUs, switched off; `None` if it cannot name ticks.
fn trace_of(cpus: CpuList) -> Option<StandingTrace> {
    let root = Path::new("/");
    let guard = Janitor::spawn(&root.join("proc")).map(Arc::new).map_err(|error| error.to_string());
    let plan = RecordPlan { trace_bytes: TRACE_BYTES, ..RecordPlan::new() };
    let trace = StandingTrace::set_up(&plan, &cpus, &[], &guard, &mut Vec::new())?;
    (trace.symbols().is_some() && trace.doc().events.iter().any(|event| event == EVENT)).then_some(trace)
}

/// Switches a trace off and counts its ticks; `None` if it is incomplete.
fn ticks_in(trace: &mut StandingTrace) -> Option<BTreeMap<CpuId, u64>> {
    trace.turn(false).ok()?;
    let cpus: Vec<CpuId> = trace.cpus().collect();
    let mut ticks: BTreeMap<CpuId, u64> = cpus.iter().map(|cpu| (*cpu, 0)).collect();
    let drained = trace.drain(&mut |index, events, names| {
        let is_tick = |event: &&Event| {
            matches!(event.what, Happening::FunctionEntry { source, .. } if names.labels.text(source) == TICK)
        };
        ticks.insert(cpus[index], events.iter().filter(is_tick).count() as u64);
    });
    let drained = drained.ok()?;
    (drained.lost == 0 && drained.broken == 0 && trace.disturbance().is_none()).then_some(ticks)
}

/// Spins on a CPU, a little longer than the counting; returns how often it was preempted.
fn keep_busy(cpu: CpuId, time: Duration, barrier: &Barrier) -> fault::Result<u64> {
    let pinned = pin_current_thread(cpu);
    barrier.wait();
    pinned?;
    let end = Instant::now() + SETTLING + time;
    let before = ThreadUsage::for_current_thread();
    while Instant::now() < end {
        std::hint::spin_loop();
    }
    Ok(ThreadUsage::for_current_thread().since(before).involuntary_switches)
}

/// The timer interrupts on a CPU, from the line of this architecture.
fn timers(counts: &Interrupts, cpu: CpuId) -> Option<u64> {
    let own = counts.count("LOC", cpu);
    let device = || {
        let timer = |name: &String| matches!(name.as_str(), "arch_timer" | "riscv-timer");
        let line =
            counts.lines.iter().find(|line| line.device.as_ref().is_some_and(|it| it.names.iter().any(timer)))?;
        counts.count(&line.id, cpu)
    };
    own.or_else(device)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_of_the_architecture() {
        let counts = |text| Interrupts::parse(text).unwrap();
        let arm = counts("CPU0 CPU1\n 11: 3 77 GICv3 30 Level arch_timer\nIPI0: 1 2 Rescheduling interrupts\n");
        assert_eq!(timers(&arm, CpuId::new(1)), Some(77));
        let x86 = counts("CPU0 CPU1\n 5: 3 3 IO-APIC 4-edge ttyS0\nLOC: 8 9 Local timer interrupts\n");
        assert_eq!((timers(&x86, CpuId::new(0)), timers(&x86, CpuId::new(2))), (Some(8), None));
        assert_eq!(timers(&counts("CPU0\n 5: 3 IO-APIC 4-edge ttyS0\n"), CpuId::new(0)), None);
    }

    #[test]
    fn counts_on_this_machine() {
        let cpus = becalm_linux::sched::allowed_cpus().unwrap();
        let ticks = count(&cpus, Nanos::from_millis(50)).unwrap();
        assert_eq!(ticks.len(), cpus.len().min(AT_ONCE));
        assert!(ticks.iter().all(|tick| tick.during >= Nanos::from_millis(50)), "{ticks:?}");
    }
}
