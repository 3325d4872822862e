//! Confidence intervals of a noise ratio and of a rate: a circular block bootstrap over equal time cells.
//!
//! Detours come in trains: a tick brings its softirq, a daemon wakes another. Intervals that assume independence would be far too narrow,
//! so the bootstrap resamples blocks of time long enough to hold a train:
//!
//! - The run is cut into [256 equal cells](super::TimeCells); x(k) is the noise in cell k.
//! - The block length b, in cells, is chosen from the autocorrelation of x: D. N. Politis, H. White, *Automatic
//!   block-length selection for the dependent bootstrap*, Econometric Reviews 23 (2004), with the correction of
//!   A. Patton, D. N. Politis, H. White, Econometric Reviews 28 (2009), for the circular bootstrap.
//! - Blocks are drawn with replacement from the cells arranged in a circle, so every cell counts equally: D. N. Politis, J. P. Romano, *A
//!   circular block-resampling procedure for stationary data*, in *Exploring the Limits of Bootstrap*, Wiley 1992.
//! - The interval is that of the studentized mean (bootstrap-t) with the spread of the blocks as its scale: B. Efron,
//!   R. Tibshirani, *An Introduction to the Bootstrap*, 1993, section 12.5. Noise is skewed, with rare long detours,
//!   and the plain percentile interval ends too low for it.
//!
//! A run of only 8 to 19 such blocks gets a *rough* interval, Student's t over their spread, because that is too few to resample. A run too
//! short for that gets none, with the reason ([`TooLittle`]). Both report the run length needed. Tests of this module measure the coverage
//! on synthetic Poisson, bursty, heavy-tailed, periodic and slowly changing noise.

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

use super::TimeCells;
use crate::distributions::student_quantile;
use crate::order::nearest_rank;

/// The share of intervals that contain the true ratio, if the run is typical of the time around it.
pub const CONFIDENCE: f64 = 0.95;

/// The number of resamples.
pub const RESAMPLES: usize = 1_000;

/// The seed of every interval, so the same bundle always gives the same numbers.
pub const SEED: u64 = 0x6265_6361_6c6d;

/// The method's name, for the output.
pub const METHOD: &str = "circular block bootstrap, studentized";

/// Fewer blocks are not resampled: their spread, which scales the interval, would itself be a guess.
pub const BLOCKS_MIN: usize = 20;

/// Fewer blocks give no interval; from here up to [`BLOCKS_MIN`] it is rough.
pub const ROUGH_BLOCKS_MIN: usize = 8;

/// A rough interval must rest on this many blocks, counted by weight.
const ROUGH_TRAINS_MIN: f64 = 5.0;

/// The safety factor on the run length that just suffices, because another run's blocks will differ.
const RESERVE: f64 = 1.5;

/// Correlations up to half of this lag count in full, even if they are not significant.
const WINDOW_MIN: usize = 4;

/// The noise must rest on this many blocks, counted by weight; see [`TooLittle::FewTrains`].
const TRAINS_MIN: f64 = 10.0;

/// The confidence interval of a ratio or a rate, or why there is none.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Interval {
    /// The interval at the level [`CONFIDENCE`].
    Between {
        /// The lower end, at least 0.
        low: f64,
        /// The upper end; at most 1 for a ratio.
        high: f64,
    },
    /// The same from so few blocks that its coverage is only approximate.
    Rough {
        /// The lower end, at least 0.
        low: f64,
        /// The upper end; at most 1 for a ratio.
        high: f64,
        /// The approximate run length for a better interval, in nanoseconds.
        needed_ns: i64,
    },
    /// The run is too short for an interval.
    Unknown(TooLittle),
}

/// Why a run has no interval.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum TooLittle {
    /// No detour was seen. That bounds their rate but not their length, so nothing bounds the ratio.
    NoDetour,
    /// A few blocks hold nearly all of the noise: `trains` is the squared sum of the blocks' noise over the sum of their squares, which is
    /// n for n equal blocks (L. Kish, *Survey Sampling*, 1965). One huge detour counts as 1, however many small ones surround it.
    FewTrains {
        /// The number of equal blocks with the same weight.
        trains: f64,
        /// The approximate run length for enough of them, in nanoseconds.
        needed_ns: i64,
    },
    /// The noise drifts, or its trains are so long that fewer than 8 independent blocks fit into the run.
    LongTrains {
        /// The block length needed, in nanoseconds; see [`run_for_blocks`].
        block_ns: i64,
    },
    /// The run has fewer than 20 cells.
    ShortRun,
}

impl Interval {
    /// Computes the interval of the ratio of the noise in these cells to the observed time, in nanoseconds: of one CPU, or summed over all
    /// CPUs in the cells.
    pub fn from_cells(cells: &TimeCells, observed: i64) -> Self {
        Self::for_noise(cells.noise(), cells.width(), observed)
    }

    /// Computes the interval of the noise in equal cells of any width.
    pub fn for_noise(noise: &[i64], width: i64, observed: i64) -> Self {
        match mean_of_cells(noise, width) {
            Ok(_) if observed <= 0 => Self::Unknown(TooLittle::NoDetour),
            Ok(mean) => mean.to_interval(observed as f64 / noise.len() as f64, 1.0),
            Err(why) => Self::Unknown(why),
        }
    }

    /// Computes the interval of the rate of detours in 1/s from the number that started in each cell, over the observed time. Without any,
    /// the upper end is 3 over the run's length, because e^-3 is 5 %.
    pub fn for_rate(counts: &[i64], width: i64, observed: i64) -> Self {
        let seconds = observed as f64 / 1e9;
        match mean_of_cells(counts, width) {
            Ok(_) | Err(TooLittle::NoDetour) if observed <= 0 => Self::Unknown(TooLittle::NoDetour),
            Ok(mean) => mean.to_interval(seconds / counts.len() as f64, f64::INFINITY),
            Err(TooLittle::NoDetour) => Self::Between { low: 0.0, high: super::chance::CERTAIN_COUNT / seconds },
            Err(why) => Self::Unknown(why),
        }
    }

    /// The lower end, if any; 0 for a run without a detour.
    pub const fn low(self) -> Option<f64> {
        match self {
            Self::Between { low, .. } | Self::Rough { low, .. } => Some(low),
            Self::Unknown(TooLittle::NoDetour) => Some(0.0),
            Self::Unknown(_) => None,
        }
    }

    /// The upper end, if any.
    pub const fn high(self) -> Option<f64> {
        match self {
            Self::Between { high, .. } | Self::Rough { high, .. } => Some(high),
            Self::Unknown(_) => None,
        }
    }

    /// Whether there is an interval and it is rough.
    pub const fn is_rough(self) -> bool {
        matches!(self, Self::Rough { .. })
    }
}

/// The run length for an interval that is not rough if independent blocks last `block_ns`, both in nanoseconds.
pub const fn run_for_blocks(block_ns: i64) -> i64 {
    (block_ns as f64 * BLOCKS_MIN as f64 * RESERVE) as i64
}

#[derive(Clone, Copy, Debug)]
struct MeanOfCells {
    low: f64,
    high: f64,
    /// If it is rough, the run length for a better one, in nanoseconds.
    needed_ns: Option<i64>,
}

impl MeanOfCells {
    /// Converts to units of `per_cell` per cell, limited to `most` of them.
    fn to_interval(self, per_cell: f64, most: f64) -> Interval {
        let (low, high) = ((self.low / per_cell).max(0.0), (self.high / per_cell).min(most));
        match self.needed_ns {
            None => Interval::Between { low, high },
            Some(needed_ns) => Interval::Rough { low, high, needed_ns },
        }
    }
}

/// The interval of the mean of a cell.
fn mean_of_cells(values: &[i64], width: i64) -> Result<MeanOfCells, TooLittle> {
    let values: Vec<f64> = values.iter().map(|value| *value as f64).collect();
    if values.len() < BLOCKS_MIN {
        return Err(TooLittle::ShortRun);
    }
    let sum: f64 = values.iter().sum();
    if sum <= 0.0 {
        return Err(TooLittle::NoDetour);
    }
    let few_trains = |trains: f64| {
        let run = width as f64 * values.len() as f64;
        TooLittle::FewTrains { trains, needed_ns: (run * TRAINS_MIN / trains * RESERVE) as i64 }
    };
    let dependence = match blocks(&values) {
        Ok(dependence) => dependence,
        Err(cells_needed) => {
            let block_ns = width.saturating_mul(cells_needed as i64);
            let dependence = rough_blocks(&values, cells_needed).ok_or(TooLittle::LongTrains { block_ns })?;
            let trains = trains(&values, dependence.length);
            if trains < ROUGH_TRAINS_MIN {
                return Err(few_trains(trains));
            }
            let (low, high) = over_few_blocks(&values, dependence);
            return Ok(MeanOfCells { low, high, needed_ns: Some(run_for_blocks(block_ns)) });
        }
    };
    let trains = trains(&values, dependence.length);
    if trains < TRAINS_MIN {
        return Err(few_trains(trains));
    }
    let (low, high) = studentized(&values, dependence, &mut Xoshiro256PlusPlus::seed_from_u64(SEED));
    Ok(MeanOfCells { low, high, needed_ns: None })
}

/// For cells with too few blocks of the `needed` length to resample: [`ROUGH_BLOCKS_MIN`] blocks of at least that length, if they fit. The
/// longest blocks depend least on each other, and Student's t accounts for their number.
pub(super) fn rough_blocks(values: &[f64], needed: usize) -> Option<Blocks> {
    let longest = values.len() / ROUGH_BLOCKS_MIN;
    (longest >= needed.max(1)).then(|| Blocks::new(values, longest, 0.0))
}

/// The interval of the mean of a cell by Student's t, with one degree of freedom fewer than blocks.
fn over_few_blocks(values: &[f64], dependence: Blocks) -> (f64, f64) {
    let n = values.len();
    let mean = values.iter().sum::<f64>() / n as f64;
    let freedom = (n / dependence.length) as f64 - 1.0;
    let half = student_quantile((1.0 - CONFIDENCE) / 2.0, freedom) * (dependence.variance / n as f64).sqrt();
    (mean - half, mean + half)
}

/// The number of equal blocks with the same weight as these; see [`TooLittle::FewTrains`].
pub(super) fn trains(values: &[f64], block: usize) -> f64 {
    let sum: f64 = values.iter().sum();
    sum * sum / values.chunks(block).map(|block| block.iter().sum::<f64>().powi(2)).sum::<f64>()
}

/// The dependence of cells on their neighbors.
#[derive(Clone, Copy, Debug)]
pub struct Blocks {
    /// The block length in cells, at least 1.
    pub length: usize,
    /// The variance of the sum of all cells over their number; for independent cells, the variance of one.
    ///
    /// The larger of two estimates. The spread of block means is too small by the order of 1 over the block length, because trains are cut
    /// at the ends of blocks. The sum of the autocovariances under the flat-top window is not (D. N. Politis, J. P. Romano, *Bias-corrected
    /// nonparametric spectral estimation*, J. Time Series Analysis 16 (1995)), but it scatters more and may be negative.
    pub(super) variance: f64,
}

impl Blocks {
    fn new(values: &[f64], length: usize, spectrum: f64) -> Self {
        let (n, size) = (values.len(), length as f64);
        let mean = values.iter().sum::<f64>() / n as f64;
        let squares: f64 = block_means(values, length, mean).iter().map(|mean| mean * mean).sum();
        // The overall mean moves with the blocks, which removes a part length/n of their spread; correct for that.
        let spread = squares / n as f64 / (1.0 - size / n as f64);
        Self { length, variance: spectrum.max(spread * size) }
    }
}

/// The dependence of the cells, with the block length. Fails with the length needed if fewer than [`BLOCKS_MIN`] blocks of it fit.
///
/// Politis and White 2004, section 3.2: b = (2 G^2 / D)^(1/3) n^(1/3), with G the sum of lambda(k/M) |k| R(k) and
/// D = 4/3 g(0)^2, g(0) the sum of lambda(k/M) R(k), over |k| <= M; R the autocovariance, lambda the flat-top window,
/// and M twice the last lag before the correlation vanishes.
pub fn blocks(noise: &[f64]) -> Result<Blocks, usize> {
    let n = noise.len();
    // Too few for that many blocks of even one cell, and for the lags below.
    if n < BLOCKS_MIN {
        return Err(1);
    }
    let mean = noise.iter().sum::<f64>() / n as f64;
    let covariance = |lag: usize| -> f64 {
        noise[lag..].iter().zip(noise).map(|(a, b)| (a - mean) * (b - mean)).sum::<f64>() / n as f64
    };
    let variance = covariance(0);
    if variance <= 0.0 {
        return Ok(Blocks { length: 1, variance: 0.0 });
    }
    // "Vanishes" means K correlations in a row within the band that independent cells leave at most once in twenty.
    let log = (n as f64).log10();
    let band = 2.0 * (log / n as f64).sqrt();
    let run = log.sqrt().ceil().max(5.0) as usize;
    let lag_max = (n as f64).sqrt().ceil() as usize + run;
    let small: Vec<bool> = (1..=lag_max).map(|lag| (covariance(lag) / variance).abs() < band).collect();
    let vanishes = small.windows(run).position(|lags| lags.iter().all(|small| *small));
    let last = vanishes.unwrap_or_else(|| small.iter().rposition(|small| !small).map_or(0, |at| at + 1));
    // Correlation between neighbors may be real even within the band.
    let window = (2 * last).clamp(WINDOW_MIN, lag_max);

    let (mut spectrum, mut slope) = (variance, 0.0);
    for lag in 1..=window {
        let t = lag as f64 / window as f64;
        let weighted = 2.0 * covariance(lag) * if t <= 0.5 { 1.0 } else { 2.0 * (1.0 - t) };
        spectrum += weighted;
        slope += weighted * lag as f64;
    }
    let longest = n / BLOCKS_MIN;
    let needed = (2.0 * slope.powi(2) / (4.0 / 3.0 * spectrum.powi(2)) * n as f64).cbrt();
    let needed = if needed.is_finite() { (needed.round() as usize).clamp(1, n) } else { n };
    if needed <= longest {
        Ok(Blocks::new(noise, needed, spectrum))
    } else if spectrum <= variance {
        // Neighbors balance each other, as when a tick beats against the cells. Long blocks would narrow the interval. Short ones err on
        // the wide side, so take the longest that fits.
        Ok(Blocks::new(noise, longest, spectrum))
    } else {
        Err(needed)
    }
}

/// The mean of each block that can be drawn around the circle, less the overall mean.
pub(super) fn block_means(values: &[f64], block: usize, mean: f64) -> Vec<f64> {
    circular_sums(values, block).map(|sum| sum / block as f64 - mean).collect()
}

/// The sums of `length` consecutive values, starting at each one around the circle; `length` is from 1 to their number.
pub fn circular_sums(values: &[f64], length: usize) -> impl Iterator<Item = f64> {
    let circle: Vec<f64> = values.iter().chain(&values[..length - 1]).copied().collect();
    (0..values.len()).map(move |first| circle[first..first + length].iter().sum())
}

/// The interval of the mean of a cell, from the quantiles of (mean* - mean) / error* over the resamples.
fn studentized(noise: &[f64], dependence: Blocks, random: &mut impl Rng) -> (f64, f64) {
    let n = noise.len();
    let mean = noise.iter().sum::<f64>() / n as f64;
    let block = dependence.length;
    let blocks = block_means(noise, block, mean);
    let draws = n.div_ceil(block);
    let error = (dependence.variance / n as f64).sqrt();
    if error == 0.0 {
        return (mean, mean);
    }
    let mut pivots: Vec<f64> = (0..RESAMPLES)
        .map(|_| {
            let (mut sum, mut squares) = (0.0, 0.0);
            for _ in 0..draws {
                let drawn = blocks[below(n, random)];
                sum += drawn;
                squares += drawn * drawn;
            }
            let k = draws as f64;
            let shift = sum / k;
            let spread = (squares / k - shift * shift).max(0.0) / (k - 1.0);
            // For a resample without spread only the sign is known.
            if spread > 0.0 { shift / spread.sqrt() } else { f64::INFINITY.copysign(shift) }
        })
        .collect();
    pivots.sort_unstable_by(f64::total_cmp);
    let tail = (1.0 - CONFIDENCE) / 2.0;
    let at = |share: f64| pivots[nearest_rank(share, RESAMPLES)];
    (mean - at(1.0 - tail) * error, mean - at(tail) * error)
}

/// A uniform number below `n`, which must be small: the bias is below n / 2^64.
#[inline]
pub fn below(n: usize, random: &mut impl Rng) -> usize {
    ((u128::from(random.next_u64()) * n as u128) >> 64) as usize
}

#[cfg(test)]
mod tests;
