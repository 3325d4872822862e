//! The common start of all loops.

use std::sync::{Condvar, Mutex, PoisonError};

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
