//! Counts of the processor while one copy works: cycles, instructions and cache misses, separately in the work (user) and in its
//! interruptions (kernel), as in Tsafrir 2007. In measurements of their own, because switching counters takes time.

use becalm_linux::clock::{Counter, MonotonicRaw};
use becalm_linux::perf::{Counters, PerfEvent, Space};
use becalm_linux::sched::SchedError;
use becalm_measure::loops::{countable, event_count};
use becalm_units::{Named, Nanos};

use super::copies::no_thread;
use super::{SortJob, TickError, timer_interrupts};
use crate::documents::CountedDoc;

/// The named events that this machine can count in one of the spaces, and a line for each reason why others cannot be counted.
pub fn counted(names: &[String]) -> (Vec<String>, Vec<String>) {
    let (events, not_counted) = countable(&known(names));
    (events.into_iter().map(|event| event.name().to_owned()).collect(), not_counted)
}

pub(in crate::measure) fn known(names: &[String]) -> Vec<PerfEvent> {
    let all = PerfEvent::OF_PROCESSOR.into_iter().chain(PerfEvent::OF_KERNEL);
    all.filter(|event| names.iter().any(|name| name == event.name())).collect()
}

/// Does the work in one new thread and counts these events from its start to its end. Also returns the time between the two readings of the
/// interrupt count. Fails if the thread cannot be created or placed, or the interrupts or events cannot be counted.
pub(in crate::measure) fn count(job: SortJob<'_>, names: &[String]) -> Result<(CountedDoc, Nanos), TickError> {
    let run = || -> Result<(CountedDoc, Nanos), TickError> {
        let mut work = job.warm_up()?;
        let mut counters = Counters::for_current_thread(&known(names), &Space::APART);
        let before = (timer_interrupts(job.root, job.interrupted)?, MonotonicRaw::read());
        counters.start()?;
        for _ in 0..job.pieces {
            std::hint::black_box(work.run::<MonotonicRaw>(job.iterations));
        }
        counters.stop()?;
        let after = (timer_interrupts(job.root, job.interrupted)?, MonotonicRaw::read());
        let counts = counters.read()?.iter().map(event_count).collect();
        let window = Nanos::new((after.1 - before.1) as i64);
        Ok((CountedDoc { interrupts: after.0.saturating_sub(before.0), counts }, window))
    };
    std::thread::scope(|scope| {
        let body = |settled: Result<(), SchedError>| {
            settled?;
            run()
        };
        let thread = job.thread().spawn_scoped(scope, body).map_err(no_thread)?;
        thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use becalm_linux::sched::{self, Policy};

    use super::*;
    use becalm_measure::work::Body;
    use becalm_model::event_count::CountedIn;

    fn names(events: &[PerfEvent]) -> Vec<String> {
        events.iter().map(|event| event.name().to_owned()).collect()
    }

    #[test]
    fn what_is_counted_and_what_is_not_add_up_to_what_was_asked() {
        let asked = names(&PerfEvent::OF_PROCESSOR);
        let (kept, not_counted) = counted(&asked);
        assert!(kept.iter().all(|name| asked.contains(name)));
        let said = not_counted.join(" ");
        assert!(asked.iter().all(|name| kept.contains(name) || said.contains(name.as_str())), "{kept:?} {said}");
        assert_eq!(counted(&["nothing".to_owned()]), (Vec::new(), Vec::new()));
    }

    #[test]
    fn the_kernels_own_events_are_counted_beside_the_work() {
        let wanted = names(&[PerfEvent::TaskClock, PerfEvent::ContextSwitches]);
        let (kept, _) = counted(&wanted);
        if kept.len() < wanted.len() {
            // A container that forbids it says so.
            return;
        }
        let cpu = sched::current_cpu().unwrap();
        let root = Path::new("/");
        let (body, policy) = (Body::Sum, Policy::Other);
        let job = SortJob {
            root,
            cpu,
            interrupted: cpu,
            policy,
            copies: 1,
            processes: false,
            body,
            iterations: 200_000,
            pieces: 50,
        };
        let (CountedDoc { counts, .. }, window) = count(job, &wanted).unwrap();
        let window_ns = window.get();
        let clock =
            counts.iter().find(|count| count.event == "task_clock_ns" && count.space == CountedIn::User).unwrap();
        assert!(clock.value > 0 && i64::try_from(clock.value).unwrap() <= window_ns, "{clock:?} in {window_ns} ns");
        assert!(counts.iter().all(|count| count.running_ns <= count.enabled_ns && count.enabled_ns <= window_ns));
    }
}
