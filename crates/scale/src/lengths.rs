//! The rate and the lengths of detours: the input of the noise law, and whether order statistics apply.

use becalm_units::Nanos;

use crate::ScaleError;
use crate::law::Law;
use crate::noise::Noise;

/// The law assumes one length. It is used if the standard deviation of lengths is at most this many times their mean.
const SPREAD_LIMIT: f64 = 0.5;

/// Order statistics are valid if this many ranks are within a detour at any time.
const WITHIN: f64 = 100.0;

/// The detours of one CPU.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct DetourLengths {
    /// Detours per nanosecond.
    rate: f64,
    /// Their mean length, in nanoseconds.
    mean: f64,
    /// The mean of their squares.
    squares: f64,
}

impl DetourLengths {
    /// From all traces, weighted by their lengths.
    pub fn new(noise: &Noise) -> Self {
        let (mut length, mut count, mut sum, mut squares) = (0.0, 0.0, 0.0, 0.0);
        for trace in noise.traces() {
            length += trace.length().get() as f64;
            for (_, duration) in trace.detours() {
                let duration = duration.get() as f64;
                (count, sum, squares) = (count + 1.0, sum + duration, squares + duration * duration);
            }
        }
        let over = |sum: f64| if count > 0.0 { sum / count } else { 0.0 };
        Self { rate: count / length, mean: over(sum), squares: over(squares) }
    }

    /// The law for a grain: a rank is delayed with p = 1 - exp(-rate G), by the mean length. `None` if the standard deviation of lengths is above
    /// half of their mean, which the law does not model. Fails for a grain of zero.
    pub fn law(&self, grain: Nanos) -> Result<Option<Law>, ScaleError> {
        let variance = (self.squares - self.mean * self.mean).max(0.0);
        if variance.sqrt() > SPREAD_LIMIT * self.mean {
            return Ok(None);
        }
        let probability = -libm::expm1(-self.rate * grain.get() as f64);
        Law::new(grain, Nanos::new(self.mean.round() as i64), probability).map(Some)
    }

    /// Whether phases of this many ranks may be assumed to start at random times, including within a detour, as order statistics do. A phase starts
    /// when the last rank arrives, so a rank is within a detour only if that started while it waited. If many are within detours at any time, a phase
    /// nearly always ends with one that many others of the same kind outlast.
    pub fn starts_are_random(&self, ranks: u64) -> bool {
        self.rate == 0.0 || self.rate * self.mean * ranks as f64 >= WITHIN
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::NoiseSpec;

    fn lengths(spec: &str) -> DetourLengths {
        let trace = spec.parse::<NoiseSpec>().unwrap().trace(1).unwrap();
        DetourLengths::new(&Noise::apart(spec, trace))
    }

    #[test]
    fn the_law_has_the_rate_and_the_length() {
        let lengths = lengths("poisson:rate=10Hz,detour=50us");
        let (asked, given) = (
            lengths.law(Nanos::from_millis(1)).unwrap().unwrap().at(64).unwrap().slowdown_ratio,
            1.0 + (1.0 - libm::exp(-0.01 * 64.0)) * 0.05,
        );
        assert!((asked - given).abs() < 1e-4, "{asked} {given}");
    }

    #[test]
    fn lengths_that_differ_have_no_law() {
        let detours = [(0, 1_000), (10_000, 1_000), (20_000, 9_000)];
        let detours = detours.map(|(start, duration)| (Nanos::new(start), Nanos::new(duration)));
        let noise = Noise::apart("two", crate::NoiseTrace::new(Nanos::new(100_000), detours).unwrap());
        assert_eq!(DetourLengths::new(&noise).law(Nanos::from_millis(1)).unwrap(), None);
        let silent = Noise::apart("none", crate::NoiseTrace::silent(Nanos::new(100)).unwrap());
        let law = DetourLengths::new(&silent).law(Nanos::from_millis(1)).unwrap().unwrap();
        assert_eq!(law.at(64).unwrap().slowdown_ratio, 1.0);
    }

    #[test]
    fn few_ranks_do_not_start_within_long_detours() {
        let lengths = lengths("poisson:rate=1Hz,detour=10ms");
        assert!(!lengths.starts_are_random(64) && lengths.starts_are_random(1 << 20));
    }
}
