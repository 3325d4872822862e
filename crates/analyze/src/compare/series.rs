//! A figure of one run as a ratio of sums over its cells of time, and its scatter.
//!
//! The noise ratio is noise over time, the rate detours over time, the mean detour noise over detours. Each is R = sum of y(k) / sum of x(k) over the
//! cells k. To first order its error is the mean of the residuals (y(k) - R x(k)) / (mean of x) (W. G. Cochran, *Sampling Techniques*, 1977, section
//! 6.3). Their means over blocks give the scatter of the sum.
//!
//! The blocks are longer than those of one run's interval. The best length for one run misses some of the correlation of trains, so the error is a
//! few percent too small, and a tenth of pairs of equal runs would be called different. Four times that length, and at least 8 of 256 cells, brings
//! this below 6 in 100, and leaves at least 8 blocks.
//!
//! A drift over the whole run makes it differ from the next one by more than its blocks show. The variance of the means of longer and longer
//! stretches reveals drift: from eighths to quarters it halves if stretches are independent, and does not fall at all if the noise wanders. It is
//! extrapolated at the same rate from quarters to the whole (`RatioOfSums::alone`).

use super::Doubt;
use becalm_stats::{BLOCKS_MIN, TimeCells, blocks, circular_sums};

/// Block length as a multiple of that for one run's interval.
const BLOCK_FACTOR: usize = 4;

/// Maximum and minimum number of blocks per run.
const BLOCKS: (usize, usize) = (32, 8);

/// The coarsest division of a run whose means are compared to detect drift.
const QUARTERS: usize = 4;

/// A ratio of two sums over the cells of time, with the data for its scatter.
#[derive(Clone, Debug)]
pub struct RatioOfSums {
    /// The ratio of the sums.
    pub(super) value: f64,
    /// The deviation of each cell; they add up to 0.
    residuals: Vec<f64>,
    /// The contribution of each cell to the numerator, used as its weight.
    weights: Vec<f64>,
    /// The length of a cell.
    width_ns: i64,
}

impl RatioOfSums {
    /// Sums over the observed time in nanoseconds. `None` if that is 0.
    pub fn over_time(sums: &TimeCells, observed: i64) -> Option<Self> {
        let per_cell = observed as f64 / sums.noise().len() as f64;
        (per_cell > 0.0).then(|| Self::new(sums, |_| 1.0, per_cell))
    }

    /// Sums over counts, cell by cell. `None` if the counts are all 0.
    pub fn per_count(sums: &TimeCells, counts: &TimeCells) -> Option<Self> {
        let total: f64 = counts.noise().iter().map(|count| *count as f64).sum();
        let mean = total / counts.noise().len() as f64;
        (mean > 0.0).then(|| Self::new(sums, |cell| counts.noise()[cell] as f64 / mean, mean))
    }

    /// `size` gives the size of a cell in mean cells; `mean` is that of the denominator.
    fn new(sums: &TimeCells, size: impl Fn(usize) -> f64, mean: f64) -> Self {
        let weights: Vec<f64> = sums.noise().iter().map(|sum| *sum as f64 / mean).collect();
        let value = weights.iter().sum::<f64>() / weights.len() as f64;
        let residuals = weights.iter().enumerate().map(|(cell, weight)| weight - value * size(cell)).collect();
        Self { value, residuals, weights, width_ns: sums.width() }
    }

    /// The scatter of the figure, from blocks of the run. Fails if the run has too few cells, or its trains are too long for it.
    pub fn scatter(&self) -> Result<Scatter, Doubt> {
        let n = self.residuals.len();
        if n < BLOCKS_MIN {
            return Err(Doubt::ShortRun);
        }
        let train = blocks(&self.residuals)
            .map_err(|cells| Doubt::LongTrains { block_ns: self.width_ns.saturating_mul(cells as i64) })?
            .length;
        let block_means = |length: usize| -> Vec<f64> {
            circular_sums(&self.residuals, length).map(|sum| sum / length as f64).collect()
        };
        let spread = |length: usize| block_means(length).iter().map(|b| b * b).sum::<f64>() * length as f64;
        // If neighbors compensate each other, as with a tick that beats against the cells, there is no train to miss.
        let factor = if spread(train) > spread(1) { BLOCK_FACTOR } else { 1 };
        let block = (factor * train).clamp(n.div_ceil(BLOCKS.0), n.div_ceil(BLOCKS.1));
        let draws = n.div_ceil(block);
        let variance = block_means(block).iter().map(|b| b * b).sum::<f64>() / n as f64 / (draws - 1) as f64;
        // Trains keep their own weights even if several share a block.
        Ok(Scatter { value: self.value, variance, draws, weights: self.trains_weights(train) })
    }

    /// The same for a run that is alone on its side, with its drift.
    pub(super) fn alone(&self) -> Result<Scatter, Doubt> {
        let drift = self.drift();
        let scatter = self.scatter()?;
        Ok(if scatter.variance < drift { Scatter { variance: drift, draws: 2 * QUARTERS, ..scatter } } else { scatter })
    }

    /// The variance of the figure extrapolated from eighths and quarters of the run: the fall from eighths to quarters continues to halves and to the
    /// whole.
    fn drift(&self) -> f64 {
        let [quarters, eighths] = [QUARTERS, 2 * QUARTERS].map(|parts| {
            let means = self.residuals.chunks(self.residuals.len().div_ceil(parts));
            let squares = means.map(|part| (part.iter().sum::<f64>() / part.len() as f64).powi(2));
            squares.sum::<f64>() / (parts - 1) as f64
        });
        let falls = if eighths > 0.0 { (quarters / eighths).clamp(0.5, 1.0) } else { 0.5 };
        quarters * falls * falls
    }

    /// The share of the value in each stretch of this many cells.
    fn trains_weights(&self, cells: usize) -> Vec<f64> {
        let all = self.weights.len() as f64;
        self.weights.chunks(cells).map(|stretch| stretch.iter().sum::<f64>() / all).collect()
    }
}

/// The scatter of a figure of a run.
#[derive(Clone, Debug)]
pub struct Scatter {
    pub(super) value: f64,
    /// The variance of `value`.
    pub variance: f64,
    /// The number of blocks behind it.
    pub draws: usize,
    /// The share of `value` in each stretch of a train's length.
    weights: Vec<f64>,
}

impl Scatter {
    /// The degrees of freedom of its variance.
    pub(super) fn freedom(&self) -> f64 {
        (self.draws - 1) as f64
    }
}

/// The effective number of equal blocks of both runs together (Kish), as for one run in [`TooLittle::FewTrains`](becalm_stats::TooLittle::FewTrains).
pub(super) fn trains(a: &Scatter, b: &Scatter) -> f64 {
    let weights = || a.weights.iter().chain(&b.weights);
    let squares: f64 = weights().map(|weight| weight * weight).sum();
    if squares > 0.0 { weights().sum::<f64>().powi(2) / squares } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn cells(sums: &[i64]) -> TimeCells {
        let mut cells = TimeCells::new(0, 256_000);
        sums.iter().enumerate().for_each(|(cell, sum)| cells.add(cell as i64 * 1_000, *sum));
        cells
    }

    proptest! {
        #[test]
        fn a_series_is_the_ratio_of_its_sums(sums in proptest::collection::vec((1_i64..1_000, 1_i64..9), 256)) {
            let (noise, counts): (Vec<i64>, Vec<i64>) = sums.into_iter().unzip();
            let (noise_sum, count_sum) = (noise.iter().sum::<i64>() as f64, counts.iter().sum::<i64>() as f64);
            let over_time = RatioOfSums::over_time(&cells(&noise), 256_000).unwrap();
            let mean = RatioOfSums::per_count(&cells(&noise), &cells(&counts)).unwrap();
            prop_assert!((over_time.value - noise_sum / 256_000.0).abs() < 1e-12);
            prop_assert!((mean.value / (noise_sum / count_sum) - 1.0).abs() < 1e-12);
            for series in [over_time, mean] {
                prop_assert!(series.residuals.iter().sum::<f64>().abs() < 1e-9 * series.value * 256.0);
            }
        }
    }

    #[test]
    fn nothing_has_no_ratio() {
        assert!(RatioOfSums::per_count(&cells(&[0; 256]), &cells(&[0; 256])).is_none());
        assert!(RatioOfSums::over_time(&cells(&[1; 256]), 0).is_none());
        let short = RatioOfSums::over_time(&TimeCells::new(0, 19), 19).unwrap();
        assert_eq!(short.scatter().unwrap_err(), Doubt::ShortRun);
    }

    #[test]
    fn trains_are_counted_over_both_runs() {
        let spread = |every: usize| -> Vec<i64> { (0..256).map(|cell| i64::from(cell % every == 0) * 500).collect() };
        let scatter = |sums: &[i64]| RatioOfSums::over_time(&cells(sums), 256_000).unwrap().scatter().unwrap();
        let (one, few, none) = (scatter(&spread(256)), scatter(&spread(32)), scatter(&[]));
        assert!((trains(&one, &none) - 1.0).abs() < 1e-9);
        assert_eq!(trains(&none, &none), 0.0);
        assert!((trains(&few, &few) - 16.0).abs() < 1e-9);
        assert!(trains(&few, &one) < 10.0);
    }
}
