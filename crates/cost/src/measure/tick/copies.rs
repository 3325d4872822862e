//! Copies of the same work, processes or threads, that share a CPU, and the time until a given number of pieces is done.
//!
//! All copies take pieces from one store until it is empty. The CPU works until the last piece is done, whatever the scheduler runs, so
//! elapsed time / pieces is the time of a piece, interrupts included: the combined throughput of Tsafrir 2007, without a remainder.

use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicI64, Ordering};

use becalm_linux::clock::{Counter, MonotonicRaw};
use becalm_linux::placed::{ProcessWords, Processes, Thread, Turn, Waiting};
use becalm_linux::sched::Policy;
use becalm_measure::work::{Body, Work};
use becalm_units::CpuId;

use super::{TickError, timer_interrupts};
use crate::documents::TimedDoc;

/// The work and its place.
#[derive(Clone, Copy, Debug)]
pub struct SortJob<'a> {
    /// The root of the file system.
    pub root: &'a Path,
    /// The CPU that all copies share.
    pub cpu: CpuId,
    /// The CPU for counting timer interrupts meanwhile.
    pub interrupted: CpuId,
    /// The scheduling class of the copies. In a real-time class nothing else gets the CPU, except for the share that the kernel reserves.
    pub policy: Policy,
    /// Number of copies that do the work; at least 1.
    pub copies: u32,
    /// Whether the copies are processes, between which the kernel switches address spaces as between programs; otherwise threads.
    pub processes: bool,
    /// The kind of work.
    pub body: Body,
    /// Iterations of the body per piece.
    pub iterations: u64,
    /// Pieces of work of all copies together.
    pub pieces: u64,
}

/// Does the work in new processes or threads, and times it from the first copy's start to the last one's end. The window of the interrupts
/// is slightly longer. Times below the clock's step count as one nanosecond. Fails if a thread cannot be created or placed, or the
/// interrupts cannot be counted.
pub fn time_work(job: SortJob<'_>) -> Result<TimedDoc, TickError> {
    if job.processes { in_processes(job) } else { in_threads(job) }
}

/// For each process: start and end.
const WORDS: usize = 2;

fn in_processes(job: SortJob<'_>) -> Result<TimedDoc, TickError> {
    // Each process gets its own copy at the first write, during preparation.
    let mut work = Work::new(job.body, job.root, job.cpu)?;
    let body = |turn: Turn, shared: ProcessWords<'_>| match turn {
        Turn::Prepare => {
            std::hint::black_box(work.run::<MonotonicRaw>(1));
        }
        Turn::Run => {
            shared.own[0].store(MonotonicRaw::read(), Ordering::Relaxed);
            while shared.common.fetch_add(1, Ordering::Relaxed) < job.pieces {
                std::hint::black_box(work.run::<MonotonicRaw>(job.iterations));
            }
            shared.own[1].store(MonotonicRaw::read(), Ordering::Relaxed);
        }
    };
    let mut processes = Processes::prepare(&job.thread(), job.copies.max(1), WORDS, body)?;
    let before = (timer_interrupts(job.root, job.interrupted)?, MonotonicRaw::read());
    processes.start()?;
    processes.join()?;
    let after = (timer_interrupts(job.root, job.interrupted)?, MonotonicRaw::read());
    let processes = &processes;
    let times = |word: usize| {
        let count = move |number| processes.words(number)[word].load(Ordering::Relaxed);
        (0..processes.len()).map(count)
    };
    let (first, last) = (times(0).min().unwrap_or(before.1), times(1).max().unwrap_or(after.1));
    Ok(TimedDoc {
        elapsed_ns: (last.saturating_sub(first) as i64).max(1),
        interrupts: after.0.saturating_sub(before.0),
        window_ns: ((after.1 - before.1) as i64).max(1),
    })
}

fn in_threads(job: SortJob<'_>) -> Result<TimedDoc, TickError> {
    let left = AtomicI64::new(i64::try_from(job.pieces).unwrap_or(i64::MAX));
    std::thread::scope(|scope| {
        let mut copies = Vec::new();
        for _ in 0..job.copies.max(1) {
            let left = &left;
            let run = move |mut work: Work, ()| {
                let first = MonotonicRaw::read();
                while left.fetch_sub(1, Ordering::Relaxed) > 0 {
                    std::hint::black_box(work.run::<MonotonicRaw>(job.iterations));
                }
                (first, MonotonicRaw::read())
            };
            let prepare = move || Ok::<_, TickError>((job.warm_up()?, ()));
            copies.push(job.thread().prepare_scoped(scope, prepare, run).map_err(no_thread)?);
        }
        // If one copy fails, the others end without running.
        copies.iter().try_for_each(Waiting::ready)?;
        let before = (timer_interrupts(job.root, job.interrupted)?, MonotonicRaw::read());
        let threads: Vec<_> = copies.into_iter().map(|copy| copy.start(())).collect();
        let spans: Vec<(u64, u64)> = threads.into_iter().filter_map(|thread| thread.join().ok().flatten()).collect();
        let after = (timer_interrupts(job.root, job.interrupted)?, MonotonicRaw::read());
        let first = spans.iter().map(|span| span.0).min().unwrap_or(before.1);
        let last = spans.iter().map(|span| span.1).max().unwrap_or(after.1);
        Ok(TimedDoc {
            elapsed_ns: ((last - first) as i64).max(1),
            interrupts: after.0.saturating_sub(before.0),
            window_ns: ((after.1 - before.1) as i64).max(1),
        })
    })
}

impl SortJob<'_> {
    /// A thread at the place of the work.
    pub(in crate::measure) fn thread(&self) -> Thread {
        Thread { name: "becalm/sort".to_owned(), cpu: self.cpu, policy: self.policy.unless_other() }
    }

    /// Runs one iteration to load code and data, in the thread that will do the work.
    pub(in crate::measure) fn warm_up(&self) -> Result<Work, TickError> {
        let mut work = Work::new(self.body, self.root, self.cpu)?;
        std::hint::black_box(work.run::<MonotonicRaw>(1));
        Ok(work)
    }
}

/// The error if the system cannot create a thread.
pub(in crate::measure) fn no_thread(source: io::Error) -> TickError {
    TickError::System { action: "start a working thread", source }
}

#[cfg(test)]
mod tests {
    use becalm_linux::sched;

    use super::*;

    fn job(cpu: CpuId, copies: u32, processes: bool, pieces: u64) -> SortJob<'static> {
        let root = Path::new("/");
        SortJob {
            root,
            cpu,
            interrupted: cpu,
            policy: Policy::Other,
            copies,
            processes,
            body: Body::Sum,
            iterations: 200_000,
            pieces,
        }
    }

    #[test]
    fn twice_the_pieces_take_about_twice_the_time() {
        let cpu = sched::current_cpu().unwrap();
        // Others compete for the CPU in a test run, so of several attempts one must come close.
        let ratio = |copies, processes| {
            let time = |pieces| time_work(job(cpu, copies, processes, pieces)).unwrap().elapsed_ns as f64;
            time(400) / time(200)
        };
        for (copies, processes) in [(1, false), (3, false), (1, true), (3, true)] {
            let close = (0..20).any(|_| (1.8..2.2).contains(&ratio(copies, processes)));
            assert!(close, "with {copies} copies, processes: {processes}");
        }
    }

    #[test]
    fn a_cpu_that_does_not_exist_is_an_error_and_leaves_no_thread_waiting() {
        for processes in [false, true] {
            let job = job(CpuId::new(4_000), 2, processes, 10);
            let error = time_work(SortJob { interrupted: CpuId::new(0), ..job }).unwrap_err();
            assert!(error.to_string().starts_with("cannot run on CPU 4000"), "{error}");
        }
    }
}
