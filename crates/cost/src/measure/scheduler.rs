//! Time per tick and per switch as the number of runnable processes, or threads, on a CPU grows (Tsafrir 2007, section 2).
//!
//! Processes are measured like threads; between processes the kernel also switches address spaces.
//!
//! *Ticks.* Threads that only count keep the CPU; the kernel's trace shows the length of each timer interrupt and the number of switches.
//!
//! *Switches.* No trace shows when the next thread executes its first instruction. So, without tracing, threads that only yield
//! (`sched_yield`) pass the CPU along; elapsed time over the number of switches counted by the kernel is the time of one, including the
//! system call. A single thread has no other to yield to: its time is that of the system call with the scheduler's search for another
//! thread.
//!
//! *Counters.* The processor's counts are from another such round, always with threads, because switching counters with their threads takes
//! time itself.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use becalm_linux::clock::{Counter, MonotonicRaw};
use becalm_linux::janitor::Janitor;
use becalm_linux::perf::{CountedEvent, Counters, CountersError, PerfEvent, Space};
use becalm_linux::placed::{Processes, Thread, Turn, Waiting};
use becalm_linux::sched::{AffinityGuard, SchedError, ThreadUsage};
use becalm_measure::loops::event_count;
use becalm_measure::machine;
use becalm_model::event_count::EventCount;
use becalm_units::{CpuId, Nanos};

use super::tick::{TickError, events, record_timer};
use crate::documents::SchedulerDoc;

/// Whether to use the kernel's trace.
#[derive(Clone, Debug)]
pub enum TraceUse {
    /// Yes; the janitor removes the trace instance if the process is killed.
    On(Option<Arc<Janitor>>),
    /// No, because it is unavailable.
    Off,
}

/// Settings for all numbers of runnable threads.
#[derive(Clone, Debug)]
pub struct SchedulerPlan {
    /// The CPU that the threads share.
    pub cpu: CpuId,
    /// Whether processes share it; otherwise threads of one process.
    pub processes: bool,
    /// The length of each measurement, with and without tracing.
    pub window: Nanos,
    /// The processor's events to count for a tenth of `window`, by name; see [`events::counted`].
    pub events: Vec<String>,
}

/// Measures one number of runnable threads with tracing, without, and with the processor's counters. Fails if the CPU cannot be used, or
/// the kernel's trace is requested but unavailable.
pub fn measure(
    root: &Path,
    plan: &SchedulerPlan,
    runnable: u32,
    tracing: &TraceUse,
) -> Result<SchedulerDoc, TickError> {
    let SchedulerPlan { cpu, processes, window, ref events } = *plan;
    machine::select_cpus(root, Some(&[cpu].into_iter().collect()))?;
    let _away = AffinityGuard::keep_off(&cpu.into())?;
    let ticks = match tracing {
        TraceUse::On(janitor) => {
            let count = || gathered(cpu, runnable, processes, window, std::hint::spin_loop);
            Some(record_timer(root, cpu, janitor.clone(), count)?.1)
        }
        TraceUse::Off => None,
    };
    let given_way = gathered(cpu, runnable, processes, window, std::thread::yield_now)?;
    let events = events::known(events);
    let (counted_yields, counts) = if events.is_empty() {
        (0, Vec::new())
    } else {
        crowd(cpu, runnable, Nanos::new(window.get() / 10), &events, std::thread::yield_now)?.counted()
    };
    Ok(SchedulerDoc {
        runnable,
        ticks,
        yields: given_way.calls(),
        switches: given_way.switches(),
        elapsed_ns: given_way.elapsed().get(),
        counts,
        counted_yields,
    })
}

/// The threads that shared the CPU.
struct Crowd {
    ran: Vec<Ran>,
}

/// One of these threads.
struct Ran {
    /// Its start on the monotonic clock, in nanoseconds.
    first: u64,
    /// Its end on the same clock, in nanoseconds.
    last: u64,
    calls: u64,
    switches: u64,
    /// The thread's events counted while it ran.
    counts: Vec<CountedEvent>,
}

impl Crowd {
    fn calls(&self) -> u64 {
        self.ran.iter().map(|ran| ran.calls).sum()
    }

    fn switches(&self) -> u64 {
        self.ran.iter().map(|ran| ran.switches).sum()
    }

    /// From the first thread's start to the last one's end.
    fn elapsed(&self) -> Nanos {
        let first = self.ran.iter().map(|ran| ran.first).min().unwrap_or(0);
        let last = self.ran.iter().map(|ran| ran.last).max().unwrap_or(first);
        Nanos::new((last - first) as i64)
    }

    /// The counts of the threads with all counters, and their calls. With very many threads, counters exceed the open file limit.
    fn counted(&self) -> (u64, Vec<EventCount>) {
        let all = self.ran.iter().map(|ran| ran.counts.len()).max().unwrap_or(0);
        let (mut yields, mut sums) = (0, Vec::<EventCount>::new());
        for ran in self.ran.iter().filter(|ran| ran.counts.len() == all) {
            yields += ran.calls;
            for count in ran.counts.iter().map(event_count) {
                match sums.iter_mut().find(|sum| (&sum.event, &sum.space) == (&count.event, &count.space)) {
                    Some(sum) => sum.add(&count),
                    None => sums.push(count),
                }
            }
        }
        (yields, sums)
    }
}

/// Stops counting and returns the counts.
fn counted(counters: &Counters) -> Result<Vec<CountedEvent>, CountersError> {
    counters.stop()?;
    counters.read()
}

/// Runs `act` repeatedly in processes, or threads, on one CPU for some time.
fn gathered(cpu: CpuId, count: u32, processes: bool, window: Nanos, act: fn()) -> Result<Crowd, TickError> {
    if processes { crowd_of_processes(cpu, count, window, act) } else { crowd(cpu, count, window, &[], act) }
}

/// For each process: start, end, calls, and number of times switched out.
const WORDS: usize = 4;

/// Runs `act` repeatedly in processes on one CPU for some time. Their shared word tells them to stop.
fn crowd_of_processes(cpu: CpuId, count: u32, window: Nanos, act: fn()) -> Result<Crowd, TickError> {
    let member = Thread { name: "becalm/crowd".to_owned(), cpu, policy: None };
    let mut processes = Processes::prepare(&member, count.max(1), WORDS, |turn, shared| {
        if turn == Turn::Prepare {
            return;
        }
        let (usage, first) = (ThreadUsage::for_current_thread(), MonotonicRaw::read());
        let mut calls = 0_u64;
        while shared.common.load(Ordering::Relaxed) == 0 {
            act();
            calls += 1;
        }
        let last = MonotonicRaw::read();
        let used = ThreadUsage::for_current_thread().since(usage);
        let switches = used.voluntary_switches + used.involuntary_switches;
        let values = [first, last, calls, switches];
        shared.own.iter().zip(values).for_each(|(word, value)| word.store(value, Ordering::Relaxed));
    })?;
    processes.start()?;
    std::thread::sleep(window.to_std());
    processes.common().store(1, Ordering::Relaxed);
    processes.join()?;
    let ran = (0..processes.len()).map(|number| {
        let word = |at: usize| processes.words(number)[at].load(Ordering::Relaxed);
        Ran { first: word(0), last: word(1), calls: word(2), switches: word(3), counts: Vec::new() }
    });
    Ok(Crowd { ran: ran.collect() })
}

/// Runs `act` repeatedly in threads on one CPU for some time, each with counters of these events, if any.
fn crowd(cpu: CpuId, threads: u32, window: Nanos, events: &[PerfEvent], act: fn()) -> Result<Crowd, TickError> {
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let mut members = Vec::new();
        for _ in 0..threads.max(1) {
            let prepare = move || {
                let counters = (!events.is_empty()).then(|| Counters::for_current_thread(events, &Space::APART));
                Ok::<_, SchedError>((counters, ()))
            };
            let stop = &stop;
            let run = move |mut counters: Option<Counters>, ()| {
                let counting = counters.as_mut().map_or(Ok(()), Counters::start);
                let (usage, first) = (ThreadUsage::for_current_thread(), MonotonicRaw::read());
                let mut calls = 0_u64;
                while !stop.load(Ordering::Relaxed) {
                    act();
                    calls += 1;
                }
                let last = MonotonicRaw::read();
                let used = ThreadUsage::for_current_thread().since(usage);
                let switches = used.voluntary_switches + used.involuntary_switches;
                let counts = counting.and_then(|()| counters.as_ref().map_or(Ok(Vec::new()), counted))?;
                Ok::<_, CountersError>(Ran { first, last, calls, switches, counts })
            };
            let member = Thread { name: "becalm/crowd".to_owned(), cpu, policy: None };
            let member = member.prepare_scoped(scope, prepare, run);
            members.push(member.map_err(|source| TickError::System { action: "start a runnable thread", source })?);
        }
        members.iter().try_for_each(Waiting::ready)?;
        let running: Vec<_> = members.into_iter().map(|member| member.start(())).collect();
        std::thread::sleep(window.to_std());
        stop.store(true, Ordering::Relaxed);
        let ran = running.into_iter().filter_map(|thread| thread.join().ok().flatten());
        Ok(Crowd { ran: ran.collect::<Result<_, CountersError>>()? })
    })
}

#[cfg(test)]
mod tests {
    use becalm_linux::sched;
    use becalm_testing::attempts;
    use becalm_units::fault::Fault;

    use super::*;
    use becalm_model::event_count::CountedIn;

    #[test]
    fn threads_and_processes_that_give_way_are_switched() {
        let cpu = sched::current_cpu().unwrap();
        let measure = |count, processes| {
            gathered(cpu, count, processes, Nanos::from_millis(100), std::thread::yield_now).unwrap()
        };
        // Others compete for the CPU while tests run.
        for processes in [false, true] {
            attempts(3, || {
                let (one, four) = (measure(1, processes), measure(4, processes));
                // A thread that is alone on its CPU is hardly ever switched; four threads switch at most calls. The number of calls depends
                // on other programs, because each yield may give one of them the CPU for milliseconds.
                let (calls, switches) = (four.calls(), four.switches());
                let runs = one.elapsed() >= Nanos::from_millis(90) && one.calls() > 0;
                let switched = switches > 4 && switches as f64 > calls as f64 * 0.2;
                let said = format!("{} calls in {}; {switches} switches in {calls}", one.calls(), one.elapsed());
                (runs && switched).then_some(()).ok_or(said)
            });
        }
    }

    #[test]
    fn threads_are_counted_together() {
        let wanted = [PerfEvent::TaskClock, PerfEvent::ContextSwitches];
        let (countable, _) = becalm_measure::loops::countable(&wanted);
        if countable.len() < wanted.len() {
            // A container that forbids it says so.
            return;
        }
        let cpu = sched::current_cpu().unwrap();
        let crowd = crowd(cpu, 3, Nanos::from_millis(100), &wanted, std::thread::yield_now).unwrap();
        let (yields, counts) = crowd.counted();
        assert_eq!(yields, crowd.calls());
        let value = |event: &str, space: CountedIn| {
            let mut found = counts.iter().filter(|count| count.event == event && count.space == space);
            let value = found.next().map(|count| count.value);
            assert_eq!(found.next(), None, "{event} stands there once");
            value
        };
        // Threads are switched in the kernel; the kernel counts each as it does for the thread's own books.
        let (switched, switches) = (value("context_switches", CountedIn::Kernel).unwrap(), crowd.switches());
        assert!(switched.abs_diff(switches) <= 10 + switches / 50, "{switched} of {switches}");
        // Together they do not run for longer than the CPU did.
        let ran = i64::try_from(value("task_clock_ns", CountedIn::User).unwrap()).unwrap();
        assert!(ran > 0 && ran <= crowd.elapsed().get(), "{ran} ns of {}", crowd.elapsed());
        // One that had not all its counters is left out.
        let mut crowd = crowd;
        let left_out = crowd.ran[0].calls;
        crowd.ran[0].counts.pop();
        assert_eq!(crowd.counted().0, yields - left_out);
    }

    #[test]
    fn a_cpu_that_does_not_exist_is_an_error() {
        let (cpu, window) = (CpuId::new(4_000), Nanos::from_millis(1));
        let plan = SchedulerPlan { cpu, processes: true, window, events: Vec::new() };
        let measured = measure(Path::new("/"), &plan, 2, &TraceUse::Off);
        assert!(measured.unwrap_err().is_usage());
    }
}
