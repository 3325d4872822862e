//! The rate of a counter, measured against `CLOCK_MONOTONIC_RAW`.

use becalm_units::{Nanos, TickRate, Ticks};

use super::counter::Counter;
use super::gettime::clock_gettime_ns;

/// A reading of the counter and of `CLOCK_MONOTONIC_RAW` as close to one instant as possible.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Anchor {
    /// The counter, at the middle of its bracket.
    pub ticks: Ticks,
    /// The kernel's raw clock, `CLOCK_MONOTONIC_RAW`, in nanoseconds.
    pub raw_ns: u64,
    /// The wall clock, `CLOCK_REALTIME`, some nanoseconds later.
    pub wall_ns: u64,
    /// The difference of the counter readings before and after; `raw_ns` was read in between.
    pub bracket: Ticks,
}

impl Anchor {
    /// Takes the reading with the narrowest bracket of many, which excludes interrupted ones.
    #[must_use]
    pub fn take<C: Counter>() -> Self {
        let mut best: Option<Self> = None;
        for _ in 0..256 {
            let before = C::read();
            let raw_ns = clock_gettime_ns(libc::CLOCK_MONOTONIC_RAW);
            let after = C::read();
            let bracket = Ticks::new(after.saturating_sub(before));
            if best.is_none_or(|best| bracket < best.bracket) {
                let wall_ns = clock_gettime_ns(libc::CLOCK_REALTIME);
                best = Some(Self { ticks: Ticks::new(before + bracket.get() / 2), raw_ns, wall_ns, bracket });
            }
        }
        best.expect("at least one reading was taken")
    }
}

/// The rate of a counter and its accuracy.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Calibration {
    /// The counter's ticks per second.
    pub rate: TickRate,
    /// The largest relative error that the brackets allow, where 1 is 100 %.
    pub error_ratio: f64,
    /// The reading at the end of the calibration.
    pub anchor: Anchor,
}

/// A counter that cannot be calibrated.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum RateError {
    /// It has stopped, or runs backwards.
    #[error("the counter {counter} moved by {ticks} ticks in {elapsed}: it has stopped or runs backward")]
    NotRunning {
        /// The counter's name, [`Counter::NAME`].
        counter: &'static str,
        /// How many ticks it advanced; negative if it ran backwards.
        ticks: i64,
        /// How far `CLOCK_MONOTONIC_RAW` advanced in the same time.
        elapsed: Nanos,
    },
    /// Its rate is one that no counter has.
    #[error("the counter {counter} seems to run at {hz} Hz, which is outside of 1 kHz to 1 THz")]
    Absurd {
        /// The counter's name, [`Counter::NAME`].
        counter: &'static str,
        /// The measured rate, in ticks per second.
        hz: f64,
    },
}

becalm_units::fault::faultless!(RateError);

impl Calibration {
    /// Computes the rate between two anchors; the further apart they are, the smaller the error. Fails if the counter stopped, ran backwards or at an
    /// absurd rate.
    pub fn from_anchors<C: Counter>(start: &Anchor, end: &Anchor) -> Result<Self, RateError> {
        let elapsed_ns = end.raw_ns.saturating_sub(start.raw_ns);
        let ticks = end.ticks.get().wrapping_sub(start.ticks.get()) as i64;
        if ticks <= 0 || elapsed_ns == 0 {
            return Err(RateError::NotRunning { counter: C::NAME, ticks, elapsed: Nanos::new(elapsed_ns as i64) });
        }
        let hz = ticks as f64 / elapsed_ns as f64 * 1e9;
        if !(1e3..=1e12).contains(&hz) {
            return Err(RateError::Absurd { counter: C::NAME, hz });
        }
        // Each end is known to half its bracket, and the raw clock to a nanosecond.
        let uncertain_ticks = (start.bracket.get() + end.bracket.get()) as f64 / 2.0;
        let error_ratio = uncertain_ticks / ticks as f64 + 1.0 / elapsed_ns as f64;
        Ok(Self { rate: TickRate::from_hz(hz), error_ratio, anchor: *end })
    }
}

/// Measures the counter's rate over at least this time, sleeping meanwhile. Fails if the counter stopped, runs backwards or at an absurd rate.
pub fn calibrate<C: Counter>(baseline: Nanos) -> Result<Calibration, RateError> {
    let start = Anchor::take::<C>();
    std::thread::sleep(baseline.to_std());
    Calibration::from_anchors::<C>(&start, &Anchor::take::<C>())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::MonotonicRaw;

    #[test]
    fn the_raw_clock_runs_at_a_gigahertz() {
        let calibration = calibrate::<MonotonicRaw>(Nanos::from_millis(20)).unwrap();
        let error = (calibration.rate.hz() / 1e9 - 1.0).abs();
        assert!(error <= calibration.error_ratio, "{error} > {}", calibration.error_ratio);
    }

    #[cfg(target_arch = "x86_64")]
    #[test]
    fn two_calibrations_agree_within_their_errors() {
        use crate::clock::Native;
        let a = calibrate::<Native>(Nanos::from_millis(50)).unwrap();
        let b = calibrate::<Native>(Nanos::from_millis(100)).unwrap();
        let difference = (a.rate.hz() / b.rate.hz() - 1.0).abs();
        assert!(difference <= a.error_ratio + b.error_ratio, "{difference}: {a:?} {b:?}");
    }

    #[test]
    fn a_counter_that_stands_still_is_refused() {
        struct Dead;
        impl Counter for Dead {
            const NAME: &'static str = "dead";
            fn read() -> u64 {
                7
            }
        }
        assert!(matches!(calibrate::<Dead>(Nanos::from_millis(2)), Err(RateError::NotRunning { ticks: 0, .. })));
    }
}
