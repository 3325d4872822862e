//! Steps that the threads of all loops make together: start calibrating, finish calibrating, and start measuring.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use becalm_units::Ticks;

/// Lets threads sleep until the common start.
#[derive(Debug, Default)]
pub struct StartSignal {
    given: Mutex<Option<Go>>,
    changed: Condvar,
}

/// The instruction for a waiting thread.
#[derive(Clone, Copy, Debug)]
pub enum Go {
    /// Measure from this counter reading on.
    At(Ticks),
    /// Another thread could not be set up: end at once.
    Not,
}

impl StartSignal {
    /// Releases all waiting threads with this instruction.
    pub fn give(&self, go: Go) {
        *self.given.lock().unwrap_or_else(PoisonError::into_inner) = Some(go);
        self.changed.notify_all();
    }

    /// Sleeps until the instruction is given.
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

/// Keeps finished threads busy until all have finished, so each thread measures its CPU while hyperthread siblings are as busy as during the
/// recording.
#[derive(Debug)]
pub struct Busy {
    left: AtomicUsize,
}

impl Busy {
    /// For this many threads.
    pub const fn new(threads: usize) -> Self {
        Self { left: AtomicUsize::new(threads) }
    }

    /// Marks one thread as done and keeps it busy until all are, at most for `longest`, because another thread may have ended.
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
