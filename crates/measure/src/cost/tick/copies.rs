//! Copies of the same work that share a CPU, and the time until a given number of pieces is done.
//!
//! All copies take their pieces from one store until it is empty. The CPU works until the last piece is done, whatever
//! the scheduler lets run, so that elapsed time / pieces is the time of a piece, interrupts included: the combined
//! throughput of Tsafrir 2007, without a remainder.

use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicI64, Ordering};

use becalm_linux::clock::{Counter, MonotonicRaw};
use becalm_linux::placed::{Thread, Waiting};
use becalm_linux::sched::Policy;
use becalm_model::cost::TimedDoc;
use becalm_units::CpuId;

use super::{TickError, timer_interrupts};
use crate::work::{Body, Work};

/// What is to be done where.
#[derive(Clone, Copy, Debug)]
pub struct SortJob<'a> {
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
    /// The kind of work that the copies do.
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
pub fn time_work(job: SortJob<'_>) -> Result<TimedDoc, TickError> {
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
        // The copies end without having run where one of them cannot.
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
    /// A thread where the work is to be done.
    pub(super) fn thread(&self) -> Thread {
        Thread { name: "becalm/sort".to_owned(), cpu: self.cpu, policy: self.policy.unless_other() }
    }

    /// Does one iteration beforehand, which loads code and data; in the thread that is to do the work.
    pub(super) fn warm_up(&self) -> Result<Work, TickError> {
        let mut work = Work::new(self.body, self.root, self.cpu)?;
        std::hint::black_box(work.run::<MonotonicRaw>(1));
        Ok(work)
    }
}

/// The error of a thread that the system has no room for.
pub(super) fn no_thread(source: io::Error) -> TickError {
    TickError::System { action: "start a working thread", source }
}

#[cfg(test)]
mod tests {
    use becalm_linux::sched;

    use super::*;

    fn job(cpu: CpuId, copies: u32, pieces: u64) -> SortJob<'static> {
        let root = Path::new("/");
        SortJob {
            root,
            cpu,
            interrupted: cpu,
            policy: Policy::Other,
            copies,
            body: Body::Sum,
            iterations: 200_000,
            pieces,
        }
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
        let error = time_work(SortJob { interrupted: CpuId::new(0), ..job(CpuId::new(4_000), 2, 10) }).unwrap_err();
        assert!(matches!(error, TickError::Sched(_)), "{error}");
    }
}
