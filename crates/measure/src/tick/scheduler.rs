//! Time per tick and per thread switch as the number of runnable threads on a CPU grows (Tsafrir 2007, section 2).
//!
//! *Ticks.* Threads that only count keep the CPU; the kernel's trace tells how long each timer interrupt took, and how often
//! the scheduler switched threads.
//!
//! *Switches.* When the next thread executes its first instruction is in no trace. So, without any tracing, threads that
//! do nothing but give way (`sched_yield`) hand the CPU round; elapsed time by the number of switches that the kernel counts
//! is the time of one, the system call that causes it included. A single thread gives way to nobody: its time is that of
//! the system call with the scheduler's look for another thread.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;

use becalm_linux::clock::{Counter, MonotonicRaw};
use becalm_linux::janitor::Janitor;
use becalm_linux::sched::{self, Usage};
use becalm_units::{CpuId, Nanos};

use super::campaign::StepAside;
use super::{TickError, TimerRecord, record_timer};
use crate::preflight;

/// What was measured with a number of runnable threads.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SchedulerCost {
    /// Threads that never sleep, all on the one CPU.
    pub runnable: u32,
    /// The ticks while they counted; nothing where the kernel's trace cannot be had.
    pub ticks: Option<TimerRecord>,
    /// Calls of `sched_yield` of all threads together.
    pub yields: u64,
    /// Switches between them while they gave way.
    pub switches: u64,
    /// How long they gave way.
    pub elapsed: Nanos,
}

/// Whether the kernel's trace shall be used.
#[derive(Clone, Debug)]
pub enum Tracing {
    /// It shall; the janitor removes the instance should the process be killed.
    On(Option<Arc<Janitor>>),
    /// It cannot be had.
    Off,
}

/// Measures one number of runnable threads, for `window` with tracing and for `window` without.
///
/// # Errors
/// If the CPU cannot be used, or the kernel's trace cannot be had although it shall.
pub fn measure(
    root: &Path,
    cpu: CpuId,
    runnable: u32,
    window: Nanos,
    tracing: &Tracing,
) -> Result<SchedulerCost, TickError> {
    preflight::select(root, Some(&[cpu].into_iter().collect()))?;
    let _away = StepAside::from(cpu)?;
    let ticks = match tracing {
        Tracing::On(janitor) => {
            let count = || crowd(cpu, runnable, window, std::hint::spin_loop);
            Some(record_timer(root, cpu, janitor.clone(), count)?.1)
        }
        Tracing::Off => None,
    };
    let given_way = crowd(cpu, runnable, window, std::thread::yield_now)?;
    Ok(SchedulerCost {
        runnable,
        ticks,
        yields: given_way.calls,
        switches: given_way.switches,
        elapsed: given_way.elapsed,
    })
}

/// What threads did together.
#[derive(Clone, Copy, Default)]
struct Crowd {
    calls: u64,
    switches: u64,
    elapsed: Nanos,
}

/// Lets threads on one CPU do the same thing again and again for some time.
fn crowd(cpu: CpuId, threads: u32, window: Nanos, act: fn()) -> Result<Crowd, TickError> {
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let (ready, prepared) = channel();
        let mut running = Vec::new();
        let mut starts = Vec::new();
        for _ in 0..threads.max(1) {
            let (ready, stop) = (ready.clone(), &stop);
            let (start, started) = channel::<()>();
            let run = move || {
                let placed = sched::pin_current_thread(cpu);
                let failed = placed.is_err();
                // Nobody listens any more if another thread failed.
                let _ = ready.send(placed);
                drop(ready);
                if failed || started.recv().is_err() {
                    return None;
                }
                let (usage, first) = (Usage::of_current_thread(), MonotonicRaw::read());
                let mut calls = 0_u64;
                while !stop.load(Ordering::Relaxed) {
                    act();
                    calls += 1;
                }
                let used = Usage::of_current_thread().since(usage);
                Some((first, MonotonicRaw::read(), calls, used.voluntary_switches + used.involuntary_switches))
            };
            let name = "becalm/crowd".to_owned();
            let thread = std::thread::Builder::new().name(name).stack_size(64 << 10).spawn_scoped(scope, run);
            running.push(thread.map_err(|source| TickError::System { action: "start a runnable thread", source })?);
            starts.push(start);
        }
        drop(ready);
        for placed in &prepared {
            placed?;
        }
        for start in starts {
            // Only a thread that has died does not wait.
            let _ = start.send(());
        }
        std::thread::sleep(window.to_std());
        stop.store(true, Ordering::Relaxed);
        let done: Vec<_> = running.into_iter().filter_map(|thread| thread.join().ok().flatten()).collect();
        let first = done.iter().map(|(first, ..)| *first).min().unwrap_or(0);
        let last = done.iter().map(|(_, last, ..)| *last).max().unwrap_or(first);
        Ok(Crowd {
            calls: done.iter().map(|(.., calls, _)| calls).sum(),
            switches: done.iter().map(|(.., switches)| *switches).sum(),
            elapsed: Nanos::new((last - first) as i64),
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_that_give_way_are_switched() {
        let cpu = sched::current_cpu().unwrap();
        let of = |threads| crowd(cpu, threads, Nanos::from_millis(100), std::thread::yield_now).unwrap();
        let (one, four) = (of(1), of(4));
        assert!(one.elapsed >= Nanos::from_millis(90) && one.calls > 1_000, "{}", one.calls);
        // Where nobody else runs, one thread is hardly ever switched; four are at most calls.
        assert!(four.switches > 1_000 && four.switches as f64 > four.calls as f64 * 0.2, "{}", four.switches);
    }

    #[test]
    fn a_cpu_that_does_not_exist_is_an_error() {
        let measured = measure(Path::new("/"), CpuId::new(4_000), 2, Nanos::from_millis(1), &Tracing::Off);
        assert!(measured.unwrap_err().is_usage());
    }
}
