//! The noise law of Tsafrir 2007 (section 3): closed forms for delays of one length that hit with one probability.

use becalm_units::Nanos;

use crate::ScaleError;

/// One rank's noise, reduced to two numbers.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Law {
    probability: f64,
    delay: Nanos,
    grain: Nanos,
}

/// What the law says for one number of ranks.
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

impl Law {
    /// A rank is delayed by `delay` in a phase of `grain` with the given probability, independently of all others.
    ///
    /// # Errors
    /// [`ScaleError`] for a probability outside of 0 to 1, a grain of zero, a negative delay.
    pub fn new(grain: Nanos, delay: Nanos, probability: f64) -> Result<Self, ScaleError> {
        if grain <= Nanos::ZERO {
            return Err(ScaleError::Grain { grain, needed: "the law needs one above 0" });
        }
        if delay < Nanos::ZERO {
            return Err(ScaleError::Range { name: "the delay", value: delay.to_string(), allowed: "0ns and more" });
        }
        if !(0.0..=1.0).contains(&probability) {
            let value = probability.to_string();
            return Err(ScaleError::Range { name: "the probability", value, allowed: "0 to 1" });
        }
        Ok(Self { probability, delay, grain })
    }

    /// A tick of a rate that always delays: p = G HZ. Nothing but an error where G HZ passes 1, as then a phase meets
    /// several ticks and the law does not apply.
    ///
    /// # Errors
    /// As [`Law::new`].
    pub fn from_rate(grain: Nanos, delay: Nanos, rate_hz: f64) -> Result<Self, ScaleError> {
        let probability = grain.as_secs_f64() * rate_hz;
        if !rate_hz.is_finite() || rate_hz < 0.0 || probability > 1.0 {
            return Err(ScaleError::Range {
                name: "the rate",
                value: format!("{rate_hz}Hz"),
                allowed: "0Hz to one event in a grain, as the law takes the probability as grain times rate",
            });
        }
        Self::new(grain, delay, probability)
    }

    /// The probability that one rank is delayed in a phase.
    #[must_use]
    pub fn probability(&self) -> f64 {
        self.probability
    }

    /// The delay D of a rank that is hit.
    #[must_use]
    pub fn delay(&self) -> Nanos {
        self.delay
    }

    /// The slowdown that no number of ranks passes: 1 + D/G.
    #[must_use]
    pub fn limit_ratio(&self) -> f64 {
        1.0 + self.delay.get() as f64 / self.grain.get() as f64
    }

    /// What it says for a number of ranks.
    ///
    /// # Errors
    /// [`ScaleError::NoRanks`].
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

    /// The largest probability of a delay on one rank with which at most the given share of a machine's phases is
    /// delayed: p = 1 - (1-d)^(1/n).
    #[must_use]
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

    /// T07: for 100,000 ranks the machine-wide probability stays under 0.1 only if p <= 1e-6.
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
