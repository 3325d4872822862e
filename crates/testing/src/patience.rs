//! Waits for events that must happen, however busy the machine is.

use std::thread;
use std::time::{Duration, Instant};

/// Long enough for anything that must happen, in a checked and hardly optimized build, on a slow and busy machine. A longer wait is a hang.
pub const PATIENCE: Duration = Duration::from_secs(300);

/// Waits until a condition holds.
///
/// # Panics
///
/// If it does not hold within [`PATIENCE`].
#[track_caller]
pub fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < PATIENCE, "waited for too long until {what}");
        thread::sleep(Duration::from_millis(10));
    }
}
