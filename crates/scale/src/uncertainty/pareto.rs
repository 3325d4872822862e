//! The longest delays as a generalized Pareto law: all shapes and scales compatible with the recorded ones, and the contribution of such a tail to
//! the time of many ranks.

use super::AddedTime;
use crate::order::any;
use crate::random::Stream;

/// The prior of the shape: mean and standard deviation. Lengths of real detours have shapes from 0 (exponential) to 1 (no mean).
const SHAPE_BEFORE: (f64, f64) = (0.25, 0.4);

/// Shapes from bounded tails to those that just have a mean.
const SHAPES: (f64, f64) = (-0.5, 0.98);

/// Logarithms of the scale over the mean excess.
const SCALES: (f64, f64) = (-3.5, 1.5);

/// Points of the grid of shapes, and of scales.
const GRID: usize = 48;

/// Minimum number of delays in a tail.
const FEWEST: usize = 10;

/// The number of points at which the distribution above the threshold is evaluated.
const POINTS: usize = 40;

/// The law extends until fewer than this share of phases have a longer delay.
const NEGLIGIBLE: f64 = 1e-6;

/// The maximum delay: 10,000 s.
const LONGEST: f64 = 1e13;

/// The number of iterations between the distribution of delays and that of waiting for them.
const ROUNDS: usize = 3;

/// A point of the grid.
#[derive(Clone, Copy, Debug)]
struct Possible {
    shape: f64,
    /// In nanoseconds.
    scale: f64,
    log_likelihood: f64,
}

/// The fitted law of the longest delays.
#[derive(Clone, Debug)]
pub(super) struct Tail {
    threshold: f64,
    count: usize,
    grid: Vec<Possible>,
    /// The sum of probabilities up to each point of the grid.
    sums: Vec<f64>,
    best: (f64, f64),
    /// The assumed length of a recording, in multiples of the real one.
    times: f64,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Law {
    threshold: f64,
    shape: f64,
    scale: f64,
}

impl Tail {
    /// Fits delays in falling order: as many as follow the law. `None` if there are too few.
    pub(super) fn fit(delays: &[f64]) -> Option<Self> {
        let mut count = delays.len().checked_sub(1)?;
        let mut fitted = None;
        while count >= FEWEST {
            let threshold = delays[count];
            let excesses: Vec<f64> =
                delays[..count].iter().rev().map(|delay| delay - threshold).filter(|y| *y > 0.0).collect();
            if excesses.len() >= FEWEST {
                let tail = Self::new(threshold, &excesses);
                let follows = misfit(&excesses, tail.best.0, tail.best.1) <= misfit_limit(tail.best.0);
                // The few longest are used even if they do not follow it: nothing better is known.
                fitted = Some(tail);
                if follows {
                    break;
                }
            }
            count = (count as f64 / 1.19) as usize;
        }
        fitted
    }

    fn new(threshold: f64, excesses: &[f64]) -> Self {
        let n = excesses.len() as f64;
        let mean = excesses.iter().sum::<f64>() / n;
        let middle = |(from, to): (f64, f64), at: usize| from + (to - from) * (at as f64 + 0.5) / GRID as f64;
        let scales: Vec<f64> = (0..GRID).map(|column| mean * libm::exp(middle(SCALES, column))).collect();
        let mut grid = Vec::with_capacity(GRID * GRID);
        let mut best = (0.0, mean, f64::NEG_INFINITY);
        for row in 0..GRID {
            let shape = middle(SHAPES, row);
            for &scale in &scales {
                let log_likelihood = log_likelihood(excesses, shape, scale);
                if log_likelihood > best.2 {
                    best = (shape, scale, log_likelihood);
                }
                if log_likelihood.is_finite() {
                    grid.push(Possible { shape, scale, log_likelihood });
                }
            }
        }
        let tail =
            Self { threshold, count: excesses.len(), grid, sums: Vec::new(), best: (best.0, best.1), times: 1.0 };
        tail.for_longer(1.0)
    }

    /// The same for a recording this many times as long, with proportionally more delays.
    pub(super) fn for_longer(&self, times: f64) -> Self {
        let log = |possible: &Possible| {
            let off = (possible.shape - SHAPE_BEFORE.0) / SHAPE_BEFORE.1;
            times * possible.log_likelihood - off * off / 2.0
        };
        let largest = self.grid.iter().map(log).fold(f64::NEG_INFINITY, f64::max);
        let mut sum = 0.0;
        let sums = self.grid.iter().map(|possible| {
            sum += libm::exp(log(possible) - largest);
            sum
        });
        Self { sums: sums.collect(), times, ..self.clone() }
    }

    /// In nanoseconds.
    pub(super) fn threshold(&self) -> f64 {
        self.threshold
    }

    /// The number of delays above the threshold.
    pub(super) fn count(&self) -> usize {
        self.count
    }

    /// The most probable longest delay of a recording.
    pub(super) fn likely_longest(&self) -> f64 {
        let law = Law { threshold: self.threshold, shape: self.best.0, scale: self.best.1 };
        law.level(1.0 / (self.count as f64 * self.times))
    }

    /// The number of delays above the threshold in another recording of the same length, relative to the number here.
    pub(super) fn count_drawn(&self, stream: &mut Stream) -> f64 {
        // A sum of three uniform numbers is close enough to a normal one for an estimate.
        let normal = 2.0 * ((0..3).map(|_| stream.unit()).sum::<f64>() - 1.5);
        libm::exp(normal / (self.count as f64 * self.times).sqrt())
    }

    pub(super) fn drawn(&self, stream: &mut Stream) -> Law {
        let all = self.sums.last().copied().unwrap_or(0.0);
        let wanted = stream.unit() * all;
        let at = self.sums.partition_point(|sum| *sum < wanted).min(self.grid.len().saturating_sub(1));
        let Possible { shape, scale, .. } = self.grid[at];
        // Uniform in the cell around the point.
        let cell = |(from, to): (f64, f64), stream: &mut Stream| (to - from) / GRID as f64 * (stream.unit() - 0.5);
        let shape = (shape + cell(SHAPES, stream)).min(SHAPES.1);
        let scale = scale * libm::exp(cell(SCALES, stream));
        Law { threshold: self.threshold, shape, scale }
    }
}

impl Law {
    /// The probability of an excess of more than y.
    fn survival(&self, y: f64) -> f64 {
        let z = y / self.scale;
        if self.shape.abs() < 1e-6 {
            return libm::exp(-z);
        }
        let base = 1.0 + self.shape * z;
        if base <= 0.0 { 0.0 } else { libm::exp(-libm::log(base) / self.shape) }
    }

    /// The integral of the survival function from y on.
    fn rest(&self, y: f64) -> f64 {
        let base = self.scale + self.shape * y;
        if base <= 0.0 { 0.0 } else { self.survival(y) * base / (1.0 - self.shape) }
    }

    /// The delay that is exceeded with this probability.
    fn level(&self, probability: f64) -> f64 {
        let log = libm::log(probability.clamp(1e-300, 1.0));
        let excess = if self.shape.abs() < 1e-6 { -log } else { libm::expm1(-self.shape * log) / self.shape };
        (self.threshold + self.scale * excess).min(LONGEST)
    }

    /// The mean time that delays above the threshold add to a phase of n units, without the threshold itself, and the part of it above the `longest`
    /// one. `rate` delays of one unit exceed the threshold per nanosecond.
    pub(super) fn added(&self, n: f64, rate: f64, grain: f64, longest: f64) -> AddedTime {
        let top = self.level((NEGLIGIBLE / (n * rate * grain)).min(0.1));
        // Rising by a constant factor, from steps that are small compared with the scale.
        let first = (self.scale / 20.0).min((top - self.threshold) / 50.0);
        let factor = libm::exp(libm::log((top - self.threshold) / first) / (POINTS - 1) as f64);
        let mut points = [self.threshold; POINTS + 1];
        let mut excess = first;
        for point in &mut points[1..] {
            *point = self.threshold + excess;
            excess *= factor;
        }
        let lates = Late::at_points(self, grain, &points);
        let (mut waiting, mut total, mut unseen) = ([0.0; POINTS + 1], 0.0, 0.0);
        for _ in 0..ROUNDS {
            let reach = lates.each_ref().map(|late| any(n, (rate * late.time(&waiting)).min(1.0)));
            (total, unseen) = (0.0, 0.0);
            waiting[0] = reach[0];
            for at in 0..POINTS {
                let (from, to) = (points[at], points[at + 1]);
                let mean = (reach[at] + reach[at + 1]) / 2.0;
                total += mean * (to - from);
                unseen += mean * (to - from.max(longest)).max(0.0);
                waiting[at + 1] = mean;
            }
        }
        AddedTime { below: 0.0, above: total, unseen }
    }
}

/// The time for which a delay makes phases that start then late by more than one of the points: the part that does not depend on how long others
/// wait, which is the only expensive one.
#[derive(Clone, Copy, Debug)]
struct Late {
    /// A grain, over all delays.
    working: f64,
    /// The part of a delay from the point on, and from the sum of the point and each of the points on.
    rest: f64,
    rests: [f64; POINTS + 1],
}

impl Late {
    /// For each point.
    fn at_points(law: &Law, grain: f64, points: &[f64; POINTS + 1]) -> [Self; POINTS + 1] {
        let mut lates = points.map(|point| {
            let excess = point - law.threshold;
            let working = grain * law.survival(excess);
            Self { working, rest: law.rest(excess), rests: [0.0; POINTS + 1] }
        });
        // The time from the sum of two points on is symmetric.
        for one in 0..=POINTS {
            for other in 0..=one {
                let rest = law.rest(points[one] - law.threshold + points[other]);
                lates[one].rests[other] = rest;
                lates[other].rests[one] = rest;
                // They fall: what is added from here on is less than half of the last digit of the time so far.
                if rest <= lates[one].working * (f64::EPSILON / 4.0) {
                    break;
                }
            }
        }
        lates
    }

    /// A grain, plus the part of the delay that a waiting rank does not see. A rank waited longer than `points[i]` with the probability `waiting[i +
    /// 1]`.
    fn time(&self, waiting: &[f64; POINTS + 1]) -> f64 {
        let (mut time, mut rest) = (self.working, self.rest);
        for (next, waiting) in self.rests.iter().zip(waiting) {
            if *waiting <= 0.0 {
                break;
            }
            time += waiting * (rest - next);
            rest = *next;
        }
        time
    }
}

/// The log-likelihood of a generalized Pareto law. Factors are multiplied before taking the logarithm, as long as the product stays in range: a
/// logarithm for each would take far longer than all the rest.
fn log_likelihood(excesses: &[f64], shape: f64, scale: f64) -> f64 {
    let n = excesses.len() as f64;
    if shape.abs() < 1e-6 {
        return -n * libm::log(scale) - excesses.iter().sum::<f64>() / scale;
    }
    let slope = shape / scale;
    let (mut logs, mut product) = (0.0, 1.0);
    for excess in excesses {
        let base = 1.0 + slope * excess;
        if base <= 0.0 {
            return f64::NEG_INFINITY;
        }
        product *= base;
        if !(1e-100..1e100).contains(&product) {
            logs += libm::log(product);
            product = 1.0;
        }
    }
    -n * libm::log(scale) - (1.0 + 1.0 / shape) * (logs + libm::log(product))
}

/// The misfit of rising excesses to a law: the statistic A^2 of T. W. Anderson and D. A. Darling, J. Am. Stat. Assoc. 49 (1954).
fn misfit(excesses: &[f64], shape: f64, scale: f64) -> f64 {
    let n = excesses.len();
    let law = Law { threshold: 0.0, shape, scale };
    let above: Vec<f64> = excesses.iter().map(|excess| libm::log(law.survival(*excess).max(1e-300))).collect();
    let term = |i: usize| (2 * i + 1) as f64 * (libm::log1p(-libm::exp(above[i])).max(-700.0) + above[n - 1 - i]);
    -(n as f64) - (0..n).map(term).sum::<f64>() / n as f64
}

/// Its 90 % quantile for samples that follow the law; `becalm-stats` has the source of these.
fn misfit_limit(shape: f64) -> f64 {
    const LIMITS: [(f64, f64); 8] = [
        (-0.5, 1.0),
        (-0.4, 0.91),
        (-0.2, 0.824),
        (0.0, 0.777),
        (0.2, 0.724),
        (0.4, 0.692),
        (0.6, 0.666),
        (1.0, 0.657),
    ];
    let at = LIMITS.partition_point(|(limit, _)| *limit < shape).clamp(1, LIMITS.len() - 1);
    let ((left, a), (right, b)) = (LIMITS[at - 1], LIMITS[at]);
    a + (b - a) * ((shape - left) / (right - left)).clamp(0.0, 1.0)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{Law, NEGLIGIBLE, POINTS, ROUNDS, any, log_likelihood};

    /// [`Law::added`] written out: the time for which delays make phases late, and the waiting time of ranks, computed from each other in turn.
    fn added_plainly(law: &Law, n: f64, rate: f64, grain: f64, longest: f64) -> (f64, f64) {
        let top = law.level((NEGLIGIBLE / (n * rate * grain)).min(0.1));
        let first = (law.scale / 20.0).min((top - law.threshold) / 50.0);
        let factor = libm::exp(libm::log((top - law.threshold) / first) / (POINTS - 1) as f64);
        let rising =
            std::iter::successors(Some(first), |excess| Some(excess * factor)).map(|excess| law.threshold + excess);
        let points: Vec<f64> = std::iter::once(law.threshold).chain(rising).take(POINTS + 1).collect();
        let (mut waiting, mut total, mut unseen) = (vec![0.0; POINTS + 1], 0.0, 0.0);
        for _ in 0..ROUNDS {
            let late = |delay: &f64| {
                let excess = delay - law.threshold;
                let mut time = grain * law.survival(excess);
                for (at, waiting) in waiting.iter().enumerate() {
                    let from = if at == 0 { 0.0 } else { points[at - 1] };
                    time += waiting * (law.rest(excess + from) - law.rest(excess + points[at]));
                }
                any(n, (rate * time).min(1.0))
            };
            let reach: Vec<f64> = points.iter().map(late).collect();
            let mean = |at: usize| (reach[at] + reach[at + 1]) / 2.0;
            let over = |from: f64, at: usize| mean(at) * (points[at + 1] - points[at].max(from)).max(0.0);
            total = (0..POINTS).map(|at| over(0.0, at)).sum();
            unseen = (0..POINTS).map(|at| over(longest, at)).sum();
            waiting = std::iter::once(reach[0]).chain((0..POINTS).map(mean)).collect();
        }
        (total, unseen)
    }

    fn is_close(one: f64, other: f64) -> bool {
        (one - other).abs() <= 1e-9 * one.abs().max(other.abs())
    }

    proptest! {
        #[test]
        fn what_is_added_is_what_the_definition_says(
            shape in -0.5..0.98, scale in 2.0..7.0, threshold in 3.0..8.0, grain in 4.0..8.0, n in 0.0..7.0, phases in -6.0..0.0,
            longest in 0.0..3.0,
        ) {
            let ten_to = |power: f64| 10.0_f64.powf(power);
            let law = Law { threshold: ten_to(threshold).round(), shape, scale: ten_to(scale) };
            let (n, grain) = (ten_to(n).round(), ten_to(grain).round());
            let rate = ten_to(phases) / grain;
            let longest = law.threshold + longest * law.scale;
            let (fast, plain) = (law.added(n, rate, grain, longest), added_plainly(&law, n, rate, grain, longest));
            prop_assert!(is_close(fast.above, plain.0) && is_close(fast.unseen, plain.1), "{fast:?} and {plain:?}");
        }

        #[test]
        fn the_likelihood_is_the_product_of_the_densities(
            excesses in prop::collection::vec(0.0..9.0_f64, 1..200), shape in -0.5..0.98, scale in 0.0..9.0,
        ) {
            let excesses: Vec<f64> = excesses.into_iter().map(|power| 10.0_f64.powf(power)).collect();
            let scale = 10.0_f64.powf(scale);
            let log_density = |excess: &f64| {
                let base = 1.0 + shape * excess / scale;
                if base <= 0.0 { f64::NEG_INFINITY } else { -libm::log(scale) - (1.0 + 1.0 / shape) * libm::log(base) }
            };
            let (fast, plain) = (log_likelihood(&excesses, shape, scale), excesses.iter().map(log_density).sum::<f64>());
            prop_assert!(fast == plain || (fast - plain).abs() <= 1e-9 * (1.0 + plain.abs()), "{fast} and {plain}");
        }
    }

    #[test]
    fn without_a_shape_a_law_is_exponential() {
        let excesses = [1.0, 2.0, 4.5];
        let exactly = log_likelihood(&excesses, 0.0, 3.0);
        assert!(is_close(exactly, -3.0 * 3.0_f64.ln() - 7.5 / 3.0), "{exactly}");
        assert!((exactly - log_likelihood(&excesses, 1e-5, 3.0)).abs() < 1e-3);
    }
}
