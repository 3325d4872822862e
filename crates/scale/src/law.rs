//! The noise law of Tsafrir 2007 (section 3): closed forms for delays of one length that hit with one probability.

use becalm_units::Nanos;

use crate::ScaleError;
use crate::delay::TIME_LIMIT;

/// One rank's noise, reduced to two numbers.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Law {
    probability: f64,
    delay: Nanos,
    grain: Nanos,
}

/// The law's result for one number of ranks.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct LawPoint {
    /// The number of ranks, n.
    pub ranks: u64,
    /// d(n) = 1 - (1-p)^n: the probability that at least one rank is delayed in a phase.
    pub delay_probability: f64,
    /// The slowdown: 1 + d(n) D/G.
    pub slowdown_ratio: f64,
    /// 1 + p n D/G, the linear law.
    pub linear_ratio: f64,
    /// Whether the linear law holds within 5 %: p <= 1/(10 n).
    pub valid: bool,
}

/// The tolerable noise of a job at one number of ranks, if it may lose some share of its time; each figure with all else unchanged.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct TolerablePoint {
    /// The longest delay; `None` if there is no limit.
    pub delay: Option<Nanos>,
    /// The highest probability of a delay on one rank, 0 to 1.
    pub probability: f64,
}

impl Law {
    /// A rank is delayed by `delay` in a phase of `grain` with the given probability, independently of all others. Fails for a probability outside of
    /// 0 to 1, a grain of zero, or a negative delay.
    pub fn new(grain: Nanos, delay: Nanos, probability: f64) -> Result<Self, ScaleError> {
        if grain <= Nanos::ZERO {
            return Err(ScaleError::Grain(grain, "the law needs one above 0"));
        }
        if delay < Nanos::ZERO {
            return Err(ScaleError::Range("the delay", delay.to_string(), "0ns and more"));
        }
        if !(0.0..=1.0).contains(&probability) {
            return Err(ScaleError::Range("the probability", probability.to_string(), "0 to 1"));
        }
        Ok(Self { probability, delay, grain })
    }

    /// A tick of a rate that always delays: p = G HZ. Fails if G HZ exceeds 1, because then a phase meets several ticks and the law does not apply.
    pub fn from_rate(grain: Nanos, delay: Nanos, rate_hz: f64) -> Result<Self, ScaleError> {
        let probability = grain.as_secs_f64() * rate_hz;
        if !rate_hz.is_finite() || rate_hz < 0.0 || probability > 1.0 {
            return Err(ScaleError::Range(
                "the rate",
                format!("{rate_hz}Hz"),
                "0Hz to one event per grain, because the probability of the law is grain times rate",
            ));
        }
        Self::new(grain, delay, probability)
    }

    /// The probability that one rank is delayed in a phase.
    pub fn probability(&self) -> f64 {
        self.probability
    }

    /// The delay D of a rank that is hit.
    pub fn delay(&self) -> Nanos {
        self.delay
    }

    /// The upper limit of the slowdown for any number of ranks: 1 + D/G.
    pub fn limit_ratio(&self) -> f64 {
        1.0 + self.delay.get() as f64 / self.grain.get() as f64
    }

    /// The result for a number of ranks.
    pub fn at(&self, ranks: u64) -> Result<LawPoint, ScaleError> {
        if ranks == 0 {
            return Err(ScaleError::NoRanks);
        }
        let (p, n) = (self.probability, ranks as f64);
        // 1 - (1-p)^n without cancellation, also for p of 1e-12; p = 1 gives exp(-inf) = 0.
        let delay_probability = -libm::expm1(n * libm::log1p(-p));
        let height = self.delay.get() as f64 / self.grain.get() as f64;
        Ok(LawPoint {
            ranks,
            delay_probability,
            slowdown_ratio: 1.0 + delay_probability * height,
            linear_ratio: 1.0 + p * n * height,
            valid: p * n <= 0.1 * (1.0 + 1e-12),
        })
    }

    /// The noise with which a job of this many ranks loses `lost` of its time, 0 to below 1: 1 - 1/slowdown. Solves 1 + d(n) D/G for each of n, D and
    /// p.
    pub fn tolerable(&self, ranks: u64, lost: f64) -> Result<TolerablePoint, ScaleError> {
        let point = self.at(ranks)?;
        let added = self.tolerable_added_ns(lost);
        let longest = added / point.delay_probability;
        // A delay beyond the time limit means no limit.
        let delay = (longest < TIME_LIMIT.get() as f64).then(|| Nanos::new(longest.floor() as i64));
        let probability = match added / self.delay.get() as f64 {
            share if share < 1.0 => Self::tolerable_probability(ranks, share),
            _ => 1.0,
        };
        Ok(TolerablePoint { delay, probability })
    }

    /// The maximum number of ranks at which a job loses at most `lost` of its time; `None` if it does so at any number.
    pub fn tolerable_ranks(&self, lost: f64) -> Option<u64> {
        let share = self.tolerable_added_ns(lost) / self.delay.get() as f64;
        // d(n) stays below 1, so the limit is only approached.
        if self.probability == 0.0 || self.delay == Nanos::ZERO || share >= 1.0 {
            return None;
        }
        let ranks = libm::log1p(-share) / libm::log1p(-self.probability);
        Some(ranks.max(0.0).floor() as u64)
    }

    /// The tolerable mean extra time of a phase.
    fn tolerable_added_ns(&self, lost: f64) -> f64 {
        lost / (1.0 - lost) * self.grain.get() as f64
    }

    /// The largest probability of a delay on one rank with which at most the given share of a machine's phases is delayed: p = 1 - (1-d)^(1/n).
    pub fn tolerable_probability(ranks: u64, delayed_share: f64) -> f64 {
        -libm::expm1(libm::log1p(-delayed_share) / ranks as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// T07: D = 1 ms once every 10 s; G = 10 ms tends to 1.1, G = 1 ms to 2.0.
    #[test]
    fn published_limits() {
        for (grain_ms, limit) in [(10, 1.1), (1, 2.0)] {
            let law = Law::from_rate(Nanos::from_millis(grain_ms), Nanos::from_millis(1), 0.1).unwrap();
            assert!((law.limit_ratio() - limit).abs() < 1e-12);
            assert!((law.at(1 << 40).unwrap().slowdown_ratio - limit).abs() < 1e-9);
            assert!(law.at(1).unwrap().slowdown_ratio < 1.0 + 1e-3);
        }
    }

    /// Beckman et al. 2007, section 6: for 100,000 nodes the machine-wide probability is below 0.1 only if p is not above 1e-6.
    #[test]
    fn published_tolerable_probability() {
        let p = Law::tolerable_probability(100_000, 0.1);
        assert!((1.0e-6..1.1e-6).contains(&p), "{p}");
        let law = Law::new(Nanos::from_millis(1), Nanos::from_millis(1), 1e-6).unwrap();
        let point = law.at(100_000).unwrap();
        assert!(point.delay_probability < 0.1 && point.valid);
    }

    #[test]
    fn a_tick_that_always_delays_costs_n_hz_d() {
        let law = Law::from_rate(Nanos::from_millis(1), Nanos::from_micros(5), 100.0).unwrap();
        assert!((law.at(1).unwrap().linear_ratio - (1.0 + 100.0 * 5e-6)).abs() < 1e-12);
        assert!(Law::from_rate(Nanos::from_secs(1), Nanos::from_micros(5), 100.0).is_err());
    }

    #[test]
    fn refuses_what_makes_no_sense() {
        let ms = Nanos::from_millis(1);
        assert!(Law::new(Nanos::ZERO, ms, 0.5).is_err());
        assert!(Law::new(ms, -ms, 0.5).is_err());
        assert!(Law::new(ms, ms, 1.5).is_err());
        assert!(Law::new(ms, ms, f64::NAN).is_err());
        assert_eq!(Law::new(ms, ms, 0.5).unwrap().at(0), Err(ScaleError::NoRanks));
        assert_eq!(Law::new(ms, ms, 1.0).unwrap().at(3).unwrap().delay_probability, 1.0);
    }

    proptest! {
        /// Tolerable noise loses exactly the allowed time, and slightly more noise loses more.
        #[test]
        fn what_is_tolerable_is_the_law_turned_round(
            p in 1e-7_f64..0.5, delay_us in 1_i64..100_000, ranks in 1_u64..1_000_000, lost in 0.001_f64..0.9,
        ) {
            let grain = Nanos::from_millis(1);
            let law = |delay, p| Law::new(grain, delay, p).unwrap();
            let loses = |law: Law, ranks| 1.0 - 1.0 / law.at(ranks).unwrap().slowdown_ratio;
            let delay = Nanos::from_micros(delay_us);
            let tolerable = law(delay, p).tolerable(ranks, lost).unwrap();
            let longest = tolerable.delay.unwrap();
            prop_assert!(loses(law(longest, p), ranks) <= lost + 1e-9);
            prop_assert!(loses(law(longest + Nanos::new(1), p), ranks) > lost - 1e-9);
            let often = tolerable.probability;
            prop_assert!(loses(law(delay, often), ranks) <= lost + 1e-9);
            prop_assert!(often == 1.0 || loses(law(delay, (often * 1.001).min(1.0)), ranks) > lost * (1.0 - 1e-9) || often > 0.5);
            match law(delay, p).tolerable_ranks(lost) {
                None => prop_assert!(loses(law(delay, p), 1 << 50) <= lost + 1e-9),
                Some(most) => {
                    prop_assert!(most == 0 || loses(law(delay, p), most) <= lost + 1e-9);
                    prop_assert!(loses(law(delay, p), most + 1) > lost - 1e-9);
                }
            }
        }

        /// T07: the relative error of d ~ pn is at most np/2.
        #[test]
        fn the_linear_law_errs_by_at_most_half_np(n in 1_u64..1_000_000, np in 1e-9_f64..0.1) {
            let law = Law::new(Nanos::from_millis(1), Nanos::from_millis(1), np / n as f64).unwrap();
            let point = law.at(n).unwrap();
            prop_assert!(point.valid);
            let error = (np - point.delay_probability) / np;
            prop_assert!((-1e-9..=np / 2.0 + 1e-9).contains(&error), "{error}");
        }
    }
}
