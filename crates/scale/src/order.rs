//! Order statistics: the delay of a phase of n units that start at independent uniform offsets.
//!
//! With F the distribution function of one unit's delay, the largest of n is at most x with probability F(x)^n, and its mean is the integral of 1 -
//! F(x)^n. F is known from the pieces of the delay function: 1 - F falls by a jump where some piece is flat and linearly where some are falling, so
//! both are exact for any n, in time O(m log m) once and O(m) for each n. Offsets are treated as real numbers; whole nanoseconds differ by less than
//! one.
//!
//! This holds for one phase at a random time. The phases of a replay follow each other at the same offsets, so their mean over a short replay varies
//! around it.

use becalm_units::Nanos;

use crate::delay::DelayTable;

/// Maximum number of units: 2^40. Beyond, the decisive share of a trace is finer than the arithmetic.
pub const UNITS_LIMIT: u64 = 1 << 40;

/// A stretch of delays on which 1 - F is linear.
#[derive(Clone, Copy, Debug)]
struct LinearStretch {
    /// Its upper end, in nanoseconds of delay.
    high: i64,
    /// The lower end of the delays on it, in nanoseconds.
    low: i64,
    /// 1 - F just below the upper end: the probability of a delay of at least that.
    above_high: f64,
    /// 1 - F at the lower end, before the jump there.
    above_low: f64,
}

/// The distribution of one unit's delay, for a unit of a kind drawn at random from the table's.
#[derive(Clone, Debug)]
pub struct DelayDistribution {
    grain: i64,
    /// From the largest delay down to 0, without gaps.
    stretches: Vec<LinearStretch>,
    /// The probability of any delay.
    delayed: f64,
}

impl DelayDistribution {
    /// From the pieces of a table.
    pub fn new(table: &DelayTable<'_>) -> Self {
        let kinds = table.kinds();
        let weight: Vec<f64> = kinds.iter().map(|kind| 1.0 / (kind.length as f64 * kinds.len() as f64)).collect();
        // Events at levels of delay: from there down, probability jumps up and its slope changes.
        let mut events: Vec<(i64, f64, f64)> = Vec::with_capacity(2 * table.len() + kinds.len());
        let mut covered = vec![0_i64; kinds.len()];
        for piece in table.pieces() {
            let kind = piece.kind as usize;
            let fall = piece.length - piece.flat;
            covered[kind] += piece.length;
            events.push((piece.delay, piece.flat as f64 * weight[kind], if fall > 0 { weight[kind] } else { 0.0 }));
            if fall > 0 {
                events.push((piece.delay - fall, 0.0, -weight[kind]));
            }
        }
        // Starts that no piece covers only have the delay of whole laps.
        for (number, kind) in kinds.iter().enumerate() {
            events.push((kind.base, (kind.length - covered[number]) as f64 * weight[number], 0.0));
        }
        events.sort_unstable_by_key(|event| std::cmp::Reverse(event.0));
        let mut stretches: Vec<LinearStretch> = Vec::new();
        let (mut above, mut slope) = (0.0_f64, 0.0_f64);
        let mut level = events.first().map_or(0, |event| event.0);
        for same in events.chunk_by(|a, b| a.0 == b.0) {
            let next = same[0].0;
            if next < level {
                let low = (above + slope * (level - next) as f64).min(1.0);
                stretches.push(LinearStretch { high: level, low: next, above_high: above, above_low: low });
                above = low;
            }
            level = next;
            if level == 0 {
                break;
            }
            for (_, jump, change) in same {
                above += jump;
                slope += change;
            }
            above = above.min(1.0);
        }
        if level > 0 {
            stretches.push(LinearStretch { high: level, low: 0, above_high: 1.0, above_low: 1.0 });
            above = 1.0;
        }
        Self { grain: table.grain().get(), stretches, delayed: above }
    }

    /// The probability that one unit is delayed in a phase: p of the noise law.
    pub fn delay_probability(&self) -> f64 {
        self.delayed
    }

    /// The expected delay of a phase of n units, in nanoseconds.
    pub fn expected_max_ns(&self, units: u64) -> f64 {
        let n = units.min(UNITS_LIMIT) as f64;
        let mut sum = 0.0;
        for stretch in &self.stretches {
            sum += (stretch.high - stretch.low) as f64 * mean_of_any(n, stretch.above_high, stretch.above_low);
        }
        sum
    }

    /// The expected slowdown of phases of n units.
    pub fn expected_slowdown(&self, units: u64) -> f64 {
        1.0 + self.expected_max_ns(units) / self.grain as f64
    }

    /// The probability that a phase of n units is delayed by at most `delay`.
    pub fn probability_at_most(&self, units: u64, delay: Nanos) -> f64 {
        let n = units.min(UNITS_LIMIT) as f64;
        let delay = delay.get();
        if delay < 0 {
            return 0.0;
        }
        // Stretches run downwards; nothing happens above the first.
        let at = self.stretches.partition_point(|stretch| stretch.low > delay);
        let above = match self.stretches.get(at) {
            Some(stretch) if delay < stretch.high => {
                let share = (stretch.high - delay) as f64 / (stretch.high - stretch.low) as f64;
                stretch.above_high + share * (stretch.above_low - stretch.above_high)
            }
            _ => 0.0,
        };
        1.0 - any(n, above)
    }

    /// The smallest delay that a phase of n units does not exceed with the given probability, in whole nanoseconds.
    pub fn quantile(&self, units: u64, probability: f64) -> Nanos {
        let (mut low, mut high) = (0, self.stretches.first().map_or(0, |stretch| stretch.high));
        while low < high {
            let middle = low + (high - low) / 2;
            if self.probability_at_most(units, Nanos::new(middle)) >= probability {
                high = middle;
            } else {
                low = middle + 1;
            }
        }
        Nanos::new(low)
    }
}

/// 1 - (1-s)^n, without cancellation for a small s.
pub(crate) fn any(n: f64, s: f64) -> f64 {
    if s >= 1.0 { 1.0 } else { -libm::expm1(n * libm::log1p(-s)) }
}

/// The mean of 1 - (1-s)^n over s between two values.
pub(crate) fn mean_of_any(n: f64, from: f64, to: f64) -> f64 {
    let width = (to - from).abs();
    let middle = f64::midpoint(from, to);
    if n * width < 1e-3 {
        // Three-point Gauss: its error is of the sixth power in n times the width, relative to the value.
        let apart = width / 2.0 * 0.6_f64.sqrt();
        return (5.0 * any(n, middle - apart) + 8.0 * any(n, middle) + 5.0 * any(n, middle + apart)) / 18.0;
    }
    // The integral of (1-s)^n is -(1-s)^(n+1) / (n+1).
    let power = |s: f64| if s >= 1.0 { 0.0 } else { libm::exp((n + 1.0) * libm::log1p(-s)) };
    1.0 - (power(from.min(to)) - power(from.max(to))) / ((n + 1.0) * width)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::delay::tests::{delay_by_finish, small_trace};
    use crate::noise::{NodeNoise, Noise};
    use crate::placement::Placement;
    use crate::replay::replay_each;
    use proptest::prelude::*;

    proptest! {
        /// Compared with counting all positions of the circles. With offsets in whole nanoseconds a falling part takes the values at the upper ends
        /// of its nanoseconds, half a nanosecond more than its mean.
        #[test]
        fn agrees_with_counting(
            traces in proptest::collection::vec(small_trace(30), 1..4), grain in 1_i64..80, n in 1_u64..200,
        ) {
            let nodes = traces.iter().map(|trace| NodeNoise::new("n", vec![trace.clone()]).unwrap());
            let noise = Noise::recorded(nodes.collect()).unwrap();
            let table = DelayTable::new(&noise, 1, Nanos::new(grain)).unwrap();
            let distribution = DelayDistribution::new(&table);
            let at_most = |x: i64| -> f64 {
                let share = |trace: &crate::NoiseTrace| {
                    let length = trace.length_ns();
                    let within = (0..length).filter(|at| delay_by_finish(trace, *at, grain) <= x).count();
                    within as f64 / length as f64
                };
                traces.iter().map(share).sum::<f64>() / traces.len() as f64
            };
            let top = table.max_delay().get();
            let exact: f64 = (0..top).map(|x| 1.0 - at_most(x).powi(n as i32)).sum();
            let expected = distribution.expected_max_ns(n);
            prop_assert!((exact - expected).abs() <= 1.0 + 1e-9, "{} {}", exact, expected);
            prop_assert!((at_most(0) - (1.0 - distribution.delay_probability())).abs() < 1e-9);
            prop_assert!((distribution.probability_at_most(n, Nanos::new(top)) - 1.0).abs() < 1e-9);
            for x in 0..top {
                let (low, high) = (at_most(x - 1).powi(n as i32), at_most(x + 1).powi(n as i32));
                let here = distribution.probability_at_most(n, Nanos::new(x));
                prop_assert!(low - 1e-9 <= here && here <= high + 1e-9, "{} <= {} <= {}", low, here, high);
            }
        }

        #[test]
        fn quantiles_invert_the_distribution(trace in small_trace(30), grain in 1_i64..80, n in 1_u64..1 << 40, q in 0.0_f64..1.0) {
            let noise = Noise::apart("one", trace);
            let table = DelayTable::new(&noise, 1, Nanos::new(grain)).unwrap();
            let distribution = DelayDistribution::new(&table);
            let x = distribution.quantile(n, q);
            prop_assert!(distribution.probability_at_most(n, x) >= q - 1e-12);
            prop_assert!(x == Nanos::ZERO || distribution.probability_at_most(n, x - Nanos::new(1)) < q);
        }
    }

    /// A detour of length d in an interval I at grain G < I - d: closed form for one unit.
    #[test]
    fn one_unit_loses_the_noise_ratio() {
        let trace = crate::NoiseTrace::new(Nanos::from_millis(10), [(Nanos::ZERO, Nanos::from_micros(100))]).unwrap();
        let noise = Noise::apart("periodic", trace);
        let table = DelayTable::new(&noise, 1, Nanos::from_millis(1)).unwrap();
        let distribution = DelayDistribution::new(&table);
        // The starts in the 1 ms before the detour meet it, except for the one whose work ends as it starts.
        let expected = (0.1 * (1.0 - 1e-6) + 0.1 * 0.1 / 2.0) / 10.0 * 1e6;
        assert!((distribution.expected_max_ns(1) - expected).abs() < 1e-6);
        assert!((distribution.expected_slowdown(1 << 40) - 1.1).abs() < 1e-9);
        assert!((distribution.delay_probability() - 0.11).abs() < 2e-7);
        assert_eq!(distribution.quantile(1 << 40, 0.5), Nanos::from_micros(100));
    }

    /// The mean of the first phase over replicas is within its Monte Carlo interval.
    #[test]
    fn agrees_with_replays() {
        let trace = "poisson:rate=200Hz,detour=50us".parse::<crate::spec::NoiseSpec>().unwrap().trace(9).unwrap();
        let noise = Noise::apart("poisson", trace);
        let table = DelayTable::new(&noise, 1, Nanos::from_millis(1)).unwrap();
        let distribution = DelayDistribution::new(&table);
        for ranks in [1, 4, 32] {
            let placement = Placement { ranks, per_node: 1, synchronized: false };
            let replicas = 4_000;
            let (mut sum, mut squares) = (0.0, 0.0);
            for replica in 0..replicas {
                let offsets = placement.draw(&table, 11, replica).unwrap();
                let outcome = replay_each(&table, &offsets, 1, None, |_| {}).unwrap();
                let delay = (outcome.total - table.grain()).get() as f64;
                (sum, squares) = (sum + delay, squares + delay * delay);
            }
            let mean = sum / replicas as f64;
            let error = ((squares / replicas as f64 - mean * mean) / replicas as f64).sqrt();
            let expected = distribution.expected_max_ns(ranks);
            assert!((mean - expected).abs() < 4.0 * error, "{ranks}: {mean} +- {error}, {expected}");
        }
    }
}
