//! Copies of the same work that share a CPU, and the time until a given number of pieces is done.
//!
//! All copies take their pieces from one store until it is empty. The CPU works until the last piece is done, whatever
//! the scheduler lets run, so that elapsed time / pieces is the time of a piece, interrupts included: the combined
//! throughput of Tsafrir 2007, without a remainder.

use std::path::Path;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::mpsc::channel;

use becalm_linux::clock::{Counter, MonotonicRaw};
use becalm_linux::sched::{self, Policy};
use becalm_model::cost::TimedDoc;
use becalm_units::CpuId;

use super::{TickError, timer_interrupts};
use crate::work::{Body, Work};

/// What is to be done where.
#[derive(Clone, Copy, Debug)]
pub struct Job<'a> {
    /// The root of the file system.
    pub root: &'a Path,
    /// The CPU that all copies share.
    pub cpu: CpuId,
    /// The CPU whose timer interrupts are counted meanwhile.
    pub interrupted: CpuId,
    /// The scheduling class of the copies. In a real-time one nobody else gets the CPU meanwhile, but for the share that the
    /// kernel keeps back.
    pub policy: Policy,
    /// How many copies do the work; at least 1.
    pub copies: u32,
    /// The kind of work.
    pub body: Body,
    /// Iterations of the body that make a piece.
    pub iterations: u64,
    /// How many pieces all copies do together.
    pub pieces: u64,
}

/// Does the work, in new threads, and times it from the first copy's start to the last one's end. The window of the
/// interrupts is a little longer. Times below the clock's step count as one nanosecond.
///
/// # Errors
/// If a thread cannot be had or placed, or the interrupts cannot be counted.
pub fn time_work(job: Job<'_>) -> Result<TimedDoc, TickError> {
    let left = AtomicI64::new(i64::try_from(job.pieces).unwrap_or(i64::MAX));
    std::thread::scope(|scope| {
        let (ready, prepared) = channel();
        let mut threads = Vec::new();
        let mut starts = Vec::new();
        for _ in 0..job.copies.max(1) {
            let (start, started) = channel::<()>();
            let (ready, left) = (ready.clone(), &left);
            let run = move || -> Option<(u64, u64)> {
                let prepared = prepare(job);
                let (failed, work) = match prepared {
                    Ok(work) => (None, Some(work)),
                    Err(error) => (Some(error), None),
                };
                // Nobody listens any more if another copy failed; its start then does not come.
                let _ = ready.send(failed);
                drop(ready);
                let mut work = work?;
                started.recv().ok()?;
                let first = MonotonicRaw::read();
                while left.fetch_sub(1, Ordering::Relaxed) > 0 {
                    std::hint::black_box(work.run::<MonotonicRaw>(job.iterations));
                }
                Some((first, MonotonicRaw::read()))
            };
            let thread = std::thread::Builder::new().name("becalm/sort".to_owned()).spawn_scoped(scope, run);
            threads.push(thread.map_err(|source| TickError::System { action: "start a working thread", source })?);
            starts.push(start);
        }
        drop(ready);
        // Ends early, and so drops the starts, where a copy failed.
        if let Some(error) = prepared.iter().flatten().next() {
            return Err(error);
        }
        let before = (timer_interrupts(job.root, job.interrupted)?, MonotonicRaw::read());
        starts.iter().for_each(|start| {
            // A copy that does not wait has ended, and is missed below.
            let _ = start.send(());
        });
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

/// Places the thread, and does one piece beforehand, which loads code and data.
pub(super) fn prepare(job: Job<'_>) -> Result<Work, TickError> {
    sched::pin_current_thread(job.cpu)?;
    if job.policy != Policy::Other {
        sched::set_policy(job.policy)?;
    }
    let mut work = Work::new(job.body, job.root, job.cpu)?;
    std::hint::black_box(work.run::<MonotonicRaw>(1));
    Ok(work)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(cpu: CpuId, copies: u32, pieces: u64) -> Job<'static> {
        let root = Path::new("/");
        Job { root, cpu, interrupted: cpu, policy: Policy::Other, copies, body: Body::Sum, iterations: 200_000, pieces }
    }

    #[test]
    fn twice_the_pieces_take_about_twice_the_time() {
        let cpu = sched::current_cpu().unwrap();
        // Others compete for the CPU in a test run, so of several attempts one must come close.
        let ratio = |copies| {
            let time = |pieces| time_work(job(cpu, copies, pieces)).unwrap().elapsed_ns as f64;
            time(400) / time(200)
        };
        for copies in [1, 3] {
            let close = (0..20).any(|_| (1.8..2.2).contains(&ratio(copies)));
            assert!(close, "with {copies} copies");
        }
    }

    #[test]
    fn a_cpu_that_does_not_exist_is_an_error_and_leaves_no_thread_waiting() {
        let error = time_work(Job { interrupted: CpuId::new(0), ..job(CpuId::new(4_000), 2, 10) }).unwrap_err();
        assert!(matches!(error, TickError::Sched(_)), "{error}");
    }
}
