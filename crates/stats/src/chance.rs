//! What a run of a given length can have seen: how long to run for rare events, and which it may have missed.
//!
//! Events that come independently at a rate r are seen at least once within a time t with the probability 1 - e^(-rt).
//! That is 95 % at rt = 3 (-ln 0.05 = 2.996): the "rule of three" of J. A. Hanley, A. Lippman-Hand, *If nothing goes
//! wrong, is everything all right?*, JAMA 249 (1983). Events in trains are rarer than their rate says; the rate to be put
//! in is that of trains.

/// How many events must be expected so that at least one comes with a probability of 95 %.
pub const CERTAIN_COUNT: f64 = 3.0;

/// How long to run, in nanoseconds, to see with 95 % an event that comes `rate_hz` times a second on average; `None` of
/// rates that are not above 0, and of times above 292 years.
#[must_use]
pub fn run_at_least(rate_hz: f64) -> Option<i64> {
    let ns = CERTAIN_COUNT / rate_hz * 1e9;
    (ns > 0.0 && ns < i64::MAX as f64).then_some(ns as i64)
}

/// The longest mean time between two events that a run over `observed` nanoseconds sees with 95 %: what comes more
/// rarely than once in that time may have been missed.
#[must_use]
pub fn rarest_seen(observed: i64) -> i64 {
    (observed as f64 / CERTAIN_COUNT) as i64
}

#[cfg(test)]
mod tests {
    use super::*;
    use becalm_testing::noise::Source;

    #[test]
    fn ask_and_answer_agree() {
        assert_eq!(run_at_least(1.0), Some(3_000_000_000));
        assert_eq!(rarest_seen(30_000_000_000), 10_000_000_000);
        for rate in [0.0, -1.0, f64::NAN, f64::INFINITY, 1e-300] {
            assert_eq!(run_at_least(rate), None, "{rate}");
        }
    }

    #[test]
    fn an_event_is_seen_95_times_in_100() {
        let mut source = Source::seeded(1);
        let seen = (0..10_000).filter(|_| source.exponential(1e9) < run_at_least(1.0).unwrap() as f64).count();
        assert!((9_430..9_570).contains(&seen), "{seen}");
    }
}
