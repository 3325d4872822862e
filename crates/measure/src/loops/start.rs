//! What the threads of all loops do together: begin to calibrate, end that, and start.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use becalm_units::Ticks;

/// Lets threads sleep until all of them may go.
#[derive(Debug, Default)]
pub struct StartSignal {
    given: Mutex<Option<Go>>,
    changed: Condvar,
}

/// What a waiting thread is told.
#[derive(Clone, Copy, Debug)]
pub enum Go {
    /// Measure from this reading of the counter on.
    At(Ticks),
    /// Another thread could not be set up: end at once.
    Not,
}

impl StartSignal {
    /// Tells all threads that wait what to do.
    pub fn give(&self, go: Go) {
        *self.given.lock().unwrap_or_else(PoisonError::into_inner) = Some(go);
        self.changed.notify_all();
    }

    /// Sleeps until the start is given.
    pub fn wait(&self) -> Go {
        let mut given = self.given.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            match *given {
                Some(go) => return go,
                None => given = self.changed.wait(given).unwrap_or_else(PoisonError::into_inner),
            }
        }
    }
}

/// Keeps threads that are done busy until all of them are, so that each of them measures its CPU beside siblings that are as busy as
/// they will be.
#[derive(Debug)]
pub struct Busy {
    left: AtomicUsize,
}

impl Busy {
    /// For so many threads.
    pub const fn new(threads: usize) -> Self {
        Self { left: AtomicUsize::new(threads) }
    }

    /// One thread is done: it is kept busy until all are, but for no longer than this, as one of them may be gone.
    pub fn until_all_are_done(&self, longest: Duration) {
        self.left.fetch_sub(1, Ordering::AcqRel);
        let begun = Instant::now();
        while self.left.load(Ordering::Acquire) > 0 && begun.elapsed() < longest {
            std::hint::spin_loop();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicBool;

    #[test]
    fn the_first_is_busy_until_the_last_is_done() {
        let (busy, last) = (Busy::new(2), AtomicBool::new(false));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                busy.until_all_are_done(Duration::from_secs(60));
                assert!(last.load(Ordering::Acquire));
            });
            std::thread::sleep(Duration::from_millis(20));
            last.store(true, Ordering::Release);
            busy.until_all_are_done(Duration::from_secs(60));
        });
    }

    #[test]
    fn one_that_is_gone_is_not_waited_for() {
        let busy = Busy::new(2);
        let begun = Instant::now();
        busy.until_all_are_done(Duration::from_millis(5));
        assert!(begun.elapsed() >= Duration::from_millis(5));
    }
}
