//! Restores while other becalm processes may briefly hold the journal's lock.

use std::thread;
use std::time::{Duration, Instant};

use crate::{Folder, JournalError, LiveMachine, RestoreOptions, Restored, TuneError, restore};

/// The pause between two attempts.
const PAUSE: Duration = Duration::from_millis(100);

/// Restores; repeats that for as long as `patience` while another process holds the lock or is still dying.
pub fn restore_patiently(
    machine: &LiveMachine,
    folder: &Folder,
    restoring: RestoreOptions<'_>,
    patience: Duration,
) -> Result<Option<Restored>, TuneError> {
    let end = Instant::now() + patience;
    loop {
        match restore(machine, folder, restoring, &mut |_| ()) {
            Err(TuneError::InUse { .. } | TuneError::Journal(JournalError::Locked { .. })) if Instant::now() < end => {
                thread::sleep(PAUSE);
            }
            result => return result,
        }
    }
}
