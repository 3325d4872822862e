//! What a run of a given length can have seen: how long to run for rare events, and which it may have missed.
//!
//! Events that come independently at a rate r are seen at least once within a time t with the probability 1 - e^(-rt).
//! That is 95 % at rt = 3 (-ln 0.05 = 2.996): the "rule of three" of J. A. Hanley, A. Lippman-Hand, *If nothing goes
//! wrong, is everything all right?*, JAMA 249 (1983). Events in trains are rarer than their rate says; the rate to be put
//! in is that of trains.
//!
//! Of an event that was seen k times the rate is not known, and k / T is too high an estimate for what was seen by luck: of many
//! rare causes those show that happen to come. With all magnitudes of rates alike (density 1/r) the rate of what was seen k
//! times in T is gamma distributed with shape k and rate T, and within t none comes with the probability (T / (T + t))^k:
//! A. Gelman et al., *Bayesian Data Analysis*, 3rd edition, section 2.6. So 95 % need t = T (20^(1/k) - 1).

/// How many events must be expected so that at least one comes with a probability of 95 %.
pub const CERTAIN_COUNT: f64 = 3.0;

/// One in so many runs may miss the event.
const MISSED_IN: f64 = 20.0;

/// How long to run, in nanoseconds, to see with 95 % an event again that was seen `count` times in `observed` nanoseconds:
/// 19 times as long for what was seen once, 3.5 times for what was seen twice. `None` of events that were not seen, and of
/// times above 292 years.
pub fn run_again_for(count: u64, observed: i64) -> Option<i64> {
    let ns = observed as f64 * (MISSED_IN.powf(1.0 / count as f64) - 1.0);
    (ns > 0.0 && ns < i64::MAX as f64).then_some(ns as i64)
}

/// The longest mean time between two events that a run over `observed` nanoseconds sees with 95 %: what comes more
/// rarely than once in that time may have been missed.
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
