//! Periods in the times of events.

/// Events that come again and again after the same time.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Period {
    /// The time between two of them, in nanoseconds.
    pub interval_ns: f64,
    /// The standard error of that, in nanoseconds.
    pub interval_error_ns: f64,
    /// The standard deviation of single events around the beat, in nanoseconds.
    pub jitter_ns: f64,
    /// How many events were on the beat.
    pub events: u64,
    /// How many beats there were from the first of them to the last; what is more than `events` was missed.
    pub beats: u64,
    /// The probability that events without any period would have shown one as clear anywhere in the search.
    pub false_alarm: f64,
}

impl Period {
    /// How often it comes, in Hz.
    #[must_use]
    pub fn frequency_hz(&self) -> f64 {
        1e9 / self.interval_ns
    }
}
