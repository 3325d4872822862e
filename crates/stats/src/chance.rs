//! How long to run to see rare events, and how rare an event a run may have missed.
//!
//! Independent events at a rate r occur at least once within a time t with probability 1 - e^(-rt). That is 95 % at rt = 3 (-ln 0.05 =
//! 2.996): the "rule of three" of J. A. Hanley, A. Lippman-Hand, *If nothing goes wrong, is everything all right?*, JAMA 249 (1983). Events
//! in trains are rarer than their rate suggests; use the rate of trains.
//!
//! The rate of an event that was seen k times is unknown, and k / T overestimates it: of many rare causes, only those that happen to occur
//! are seen. If all magnitudes of rates are equally likely (density 1/r), the rate of an event seen k times in T is gamma distributed with
//! shape k and rate T, and none occurs within t with probability (T / (T + t))^k: A. Gelman et al., *Bayesian Data Analysis*, 3rd edition,
//! section 2.6. So 95 % need t = T (20^(1/k) - 1).

/// The expected number of events for which at least one occurs with 95 % probability.
pub const CERTAIN_COUNT: f64 = 3.0;

/// One in this many runs may miss the event.
const MISSED_IN: f64 = 20.0;

/// How long to run, in nanoseconds, to see an event again with 95 % probability after it was seen `count` times in `observed` nanoseconds:
/// 19 times as long if it was seen once, 3.5 times if twice. `None` if it was never seen or the time exceeds 292 years.
pub fn run_again_for(count: u64, observed: i64) -> Option<i64> {
    let ns = observed as f64 * (MISSED_IN.powf(1.0 / count as f64) - 1.0);
    (ns > 0.0 && ns < i64::MAX as f64).then_some(ns as i64)
}

/// The longest mean time between events that a run of `observed` nanoseconds sees with 95 % probability; it may miss rarer events.
pub fn rarest_seen(observed: i64) -> i64 {
    (observed as f64 / CERTAIN_COUNT) as i64
}

#[cfg(test)]
mod tests {
    use super::*;
    use becalm_testing::noise::Source;

    #[test]
    fn times_are_those_of_the_formula() {
        assert_eq!(run_again_for(1, 10_000_000_000), Some(190_000_000_000));
        assert_eq!(run_again_for(2, 1_000_000_000), Some(3_472_135_954));
        assert_eq!(rarest_seen(30_000_000_000), 10_000_000_000);
        for (count, observed) in [(0, 10), (1, 0), (1, -5), (1, i64::MAX)] {
            assert_eq!(run_again_for(count, observed), None, "{count} in {observed}");
        }
    }

    /// Sources whose rates lie anywhere between one in 10,000 runs and 10,000 a run, all magnitudes alike; of those that were seen
    /// k times in a first run, how many come in a second one that is as long as it says: by the formula 95 in 100.
    #[test]
    fn what_was_seen_a_few_times_is_seen_again_95_times_in_100() {
        const RUN: f64 = 1e9;
        let mut source = Source::seeded(1);
        for seen in [1, 2, 3, 5] {
            let (mut given, mut again) = (0, 0);
            while given < 4_000 {
                let hz = 10.0_f64.powf(-4.0 + 8.0 * source.uniform());
                // Rates of which so many events have a chance; the others only take time.
                if hz > 60.0 || source.poisson(hz, RUN).len() as u64 != seen {
                    continue;
                }
                given += 1;
                let time = run_again_for(seen, RUN as i64).unwrap() as f64;
                again += i32::from(source.exponential(RUN / hz) < time);
            }
            let share = f64::from(again) / 4_000.0;
            assert!((0.94..=0.965).contains(&share), "seen {seen} times: {share} come again");
        }
    }
}
