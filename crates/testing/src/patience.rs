//! Waiting for what must happen, however busy the machine is.

use std::thread;
use std::time::{Duration, Instant};

/// Long enough for anything that must happen, with checked and little optimized code, on a slow machine that is busy with other work. A test
/// that waits longer has found a hang, never a slow machine.
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
