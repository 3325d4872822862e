//! What a counter of the processor or the kernel came to beside a measurement.

use serde::{Deserialize, Serialize};

/// How often an event came.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct EventCount {
    /// The event's name: `cycles`, `cache_misses`.
    pub event: String,
    /// Where: `user` or `kernel`.
    pub space: String,
    /// How often while it was counted.
    pub value: u64,
    /// For how long it was to be counted.
    pub enabled_ns: i64,
    /// For how long it was: less where events take turns.
    pub running_ns: i64,
}

impl EventCount {
    /// That its figures can be true.
    ///
    /// # Errors
    /// What cannot be.
    pub fn check(&self) -> Result<(), String> {
        let Self { event, enabled_ns, running_ns, .. } = self;
        match (0..=LONGEST_NS).contains(enabled_ns) && (0..=*enabled_ns).contains(running_ns) {
            true => Ok(()),
            false => Err(format!("{event} was counted for {running_ns} of {enabled_ns} ns, and cannot have been")),
        }
    }
}

/// A day: sums of as many as there may be stay far from where integers end.
const LONGEST_NS: i64 = 86_400_000_000_000;
