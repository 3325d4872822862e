//! The intervals of a noise ratio and of a rate: a circular block bootstrap over equal cells of time.
//!
//! Detours come in trains: a tick brings its softirq, a daemon wakes another. Treating them as independent would give
//! intervals far too narrow, so whole stretches of time are drawn again, long enough to hold a train:
//!
//! - The run is cut into [256 equal cells](super::TimeCells); x(k) is the noise in cell k.
//! - The block length b, in cells, is chosen from the autocorrelation of x: D. N. Politis, H. White, *Automatic
//!   block-length selection for the dependent bootstrap*, Econometric Reviews 23 (2004), with the correction of
//!   A. Patton, D. N. Politis, H. White, Econometric Reviews 28 (2009), for the circular bootstrap.
//! - Blocks are drawn with replacement from the cells closed to a circle, so that every cell counts alike:
//!   D. N. Politis, J. P. Romano, *A circular block-resampling procedure for stationary data*, in *Exploring the
//!   Limits of Bootstrap*, Wiley 1992.
//! - The interval is that of the studentized mean (bootstrap-t) with the spread of the blocks as its scale: B. Efron,
//!   R. Tibshirani, *An Introduction to the Bootstrap*, 1993, section 12.5. Noise is skewed, with rare long detours,
//!   and the plain percentile interval ends too low for it.
//!
//! A run that holds only 8 to 19 such blocks has a *rough* interval: Student's t over their spread, as there are too few blocks to
//! draw from. Where the run cannot carry that either, there is none, with the reason ([`TooLittle`]). Both say how long a run
//! would have to be. What they cover is measured by tests of this module: on synthetic Poisson, bursty, heavy-tailed,
//! periodic and slowly changing noise.

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

use super::TimeCells;
use crate::distributions::student_quantile;
use crate::order::nearest_rank;

/// The share of intervals that hold the true ratio, if the run is like the time around it.
pub const CONFIDENCE: f64 = 0.95;

/// How many times the run is drawn again.
pub const RESAMPLES: usize = 1_000;

/// The seed of every interval; the same bundle gives the same numbers forever.
pub const SEED: u64 = 0x6265_6361_6c6d;

/// The method's name, for the output.
pub const METHOD: &str = "circular block bootstrap, studentized";

/// Fewer blocks than this are not drawn from: their spread, which scales the interval, would itself be a guess.
pub const BLOCKS_MIN: usize = 20;

/// Of fewer blocks than this nothing is said; of as many and fewer than [`BLOCKS_MIN`] the interval is rough.
pub const ROUGH_BLOCKS_MIN: usize = 8;

/// A rough interval must rest on this many of its blocks, counted by their weight.
const ROUGH_TRAINS_MIN: f64 = 5.0;

/// By how much longer than what just suffices a run should be, as another run's blocks need not be those of this one.
const RESERVE: f64 = 1.5;

/// Correlations up to half of this lag count in full, even where they cannot be told from none.
const WINDOW_MIN: usize = 4;

/// The noise must rest on this many blocks, counted by their weight; see [`TooLittle::FewTrains`].
const TRAINS_MIN: f64 = 10.0;

/// The interval of a ratio or a rate, or why there is none.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Interval {
    /// It lies between these with [`CONFIDENCE`].
    Between {
        /// The lower end, at least 0.
        low: f64,
        /// The upper end; of a ratio at most 1.
        high: f64,
    },
    /// The same from so few stretches of time that the share of intervals which hold the true ratio is not well kept.
    Rough {
        /// The lower end, at least 0.
        low: f64,
        /// The upper end; of a ratio at most 1.
        high: f64,
        /// About how long a run for a better one would be, in nanoseconds.
        needed_ns: i64,
    },
    /// The run is too short to say.
    Unknown(TooLittle),
}

/// Why a run carries no interval.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum TooLittle {
    /// No detour was seen. That bounds how often detours come, but not how long they are, so nothing bounds the ratio.
    NoDetour,
    /// Nearly all of the noise comes from a few stretches of the run: `trains` is the squared sum of the blocks' noise
    /// over the sum of their squares, which is n for n equal blocks (L. Kish, *Survey Sampling*, 1965). One huge
    /// detour counts as 1, however many small ones surround it.
    FewTrains {
        /// How many equal blocks would weigh the same.
        trains: f64,
        /// About how long a run with enough of them would be, in nanoseconds.
        needed_ns: i64,
    },
    /// The noise drifts, or comes in trains so long, that fewer than 8 independent stretches fit into the run.
    LongTrains {
        /// The stretch that would be needed, in nanoseconds; see [`run_for_blocks`].
        block_ns: i64,
    },
    /// The run is so short that it has fewer than 20 cells.
    ShortRun,
}

impl Interval {
    /// Of the ratio of the noise in these cells to the time that was observed, in nanoseconds: that of one CPU, or the
    /// sum over all whose noise the cells hold.
    pub fn from_cells(cells: &TimeCells, observed: i64) -> Self {
        Self::for_noise(cells.noise(), cells.width(), observed)
    }

    /// Computes the interval of the noise in any equal cells of this width.
    pub fn for_noise(noise: &[i64], width: i64, observed: i64) -> Self {
        match mean_of_cells(noise, width) {
            Ok(_) if observed <= 0 => Self::Unknown(TooLittle::NoDetour),
            Ok(mean) => mean.to_interval(observed as f64 / noise.len() as f64, 1.0),
            Err(why) => Self::Unknown(why),
        }
    }

    /// Computes the interval of the rate of detours in 1/s, from how many began in each cell, over the time that was observed. The upper end
    /// of a run without any is 3 over its length, as e^-3 is 5 %.
    pub fn for_rate(counts: &[i64], width: i64, observed: i64) -> Self {
        let seconds = observed as f64 / 1e9;
        match mean_of_cells(counts, width) {
            Ok(_) | Err(TooLittle::NoDetour) if observed <= 0 => Self::Unknown(TooLittle::NoDetour),
            Ok(mean) => mean.to_interval(seconds / counts.len() as f64, f64::INFINITY),
            Err(TooLittle::NoDetour) => Self::Between { low: 0.0, high: super::chance::CERTAIN_COUNT / seconds },
            Err(why) => Self::Unknown(why),
        }
    }

    /// The lower end, where there is one. A run without a detour has the lower end 0.
    pub const fn low(self) -> Option<f64> {
        match self {
            Self::Between { low, .. } | Self::Rough { low, .. } => Some(low),
            Self::Unknown(TooLittle::NoDetour) => Some(0.0),
            Self::Unknown(_) => None,
        }
    }

    /// The upper end, where there is one.
    pub const fn high(self) -> Option<f64> {
        match self {
            Self::Between { high, .. } | Self::Rough { high, .. } => Some(high),
            Self::Unknown(_) => None,
        }
    }

    /// Whether it is given, and rough.
    pub const fn is_rough(self) -> bool {
        matches!(self, Self::Rough { .. })
    }
}

/// How long a run would have to be for an interval that is not rough, where independent stretches last `block_ns`, in nanoseconds.
pub const fn run_for_blocks(block_ns: i64) -> i64 {
    (block_ns as f64 * BLOCKS_MIN as f64 * RESERVE) as i64
}

/// Between which values lies what a cell holds on average.
#[derive(Clone, Copy, Debug)]
struct MeanOfCells {
    low: f64,
    high: f64,
    /// If it is rough, how long a run for a better one would be.
    needed_ns: Option<i64>,
}

impl MeanOfCells {
    /// In units of so much a cell, and of at most `most` of those.
    fn to_interval(self, per_cell: f64, most: f64) -> Interval {
        let (low, high) = ((self.low / per_cell).max(0.0), (self.high / per_cell).min(most));
        match self.needed_ns {
            None => Interval::Between { low, high },
            Some(needed_ns) => Interval::Rough { low, high, needed_ns },
        }
    }
}

/// The interval of what a cell holds on average.
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

/// Of cells that hold too few blocks of the `needed` length to draw from: [`ROUGH_BLOCKS_MIN`] that are as long or longer, if there
/// are as many. The longest that are left depend on each other least, and Student's t knows how few they are.
pub(super) fn rough_blocks(values: &[f64], needed: usize) -> Option<Blocks> {
    let longest = values.len() / ROUGH_BLOCKS_MIN;
    (longest >= needed.max(1)).then(|| Blocks::new(values, longest, 0.0))
}

/// The interval of the mean of a cell by Student's t, with the blocks' number less one as its degrees of freedom.
fn over_few_blocks(values: &[f64], dependence: Blocks) -> (f64, f64) {
    let n = values.len();
    let mean = values.iter().sum::<f64>() / n as f64;
    let freedom = (n / dependence.length) as f64 - 1.0;
    let half = student_quantile((1.0 - CONFIDENCE) / 2.0, freedom) * (dependence.variance / n as f64).sqrt();
    (mean - half, mean + half)
}

/// How many equal blocks would weigh the same as these; see [`TooLittle::FewTrains`].
pub(super) fn trains(values: &[f64], block: usize) -> f64 {
    let sum: f64 = values.iter().sum();
    sum * sum / values.chunks(block).map(|block| block.iter().sum::<f64>().powi(2)).sum::<f64>()
}

/// How the cells depend on their neighbors.
#[derive(Clone, Copy, Debug)]
pub struct Blocks {
    /// The block length in cells, at least 1.
    pub length: usize,
    /// The variance of the sum of all cells over their number: what the variance of a cell would be, were they
    /// independent.
    ///
    /// The spread of block means falls short of it by a part of the order of 1 over the block's length, as trains are cut
    /// at the ends of blocks; the sum of the autocovariances under the flat-top window does not (D. N. Politis,
    /// J. P. Romano, *Bias-corrected nonparametric spectral estimation*, J. Time Series Analysis 16 (1995)), but scatters
    /// more, and may be negative. It is the larger of the two.
    pub(super) variance: f64,
}

impl Blocks {
    fn new(values: &[f64], length: usize, spectrum: f64) -> Self {
        let (n, size) = (values.len(), length as f64);
        let mean = values.iter().sum::<f64>() / n as f64;
        let squares: f64 = block_means(values, length, mean).iter().map(|mean| mean * mean).sum();
        // The mean of all moves with the blocks and takes a part length/n of their spread away, which is given back.
        let spread = squares / n as f64 / (1.0 - size / n as f64);
        Self { length, variance: spectrum.max(spread * size) }
    }
}

/// How the cells depend on each other, with the block length; or, as the error, the length that would be needed where the cells do not
/// hold [`BLOCKS_MIN`] of those.
///
/// Politis and White 2004, section 3.2: b = (2 G^2 / D)^(1/3) n^(1/3), with G the sum of lambda(k/M) |k| R(k) and
/// D = 4/3 g(0)^2, g(0) the sum of lambda(k/M) R(k), over |k| <= M; R the autocovariance, lambda the flat-top window,
/// and M twice the last lag before the correlation vanishes.
pub fn blocks(noise: &[f64]) -> Result<Blocks, usize> {
    let n = noise.len();
    // So few do not hold that many blocks of even one cell, nor the lags below.
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
    // "Vanishes" is K correlations in a row below the band that independent cells leave once in twenty times or less.
    let log = (n as f64).log10();
    let band = 2.0 * (log / n as f64).sqrt();
    let run = log.sqrt().ceil().max(5.0) as usize;
    let lag_max = (n as f64).sqrt().ceil() as usize + run;
    let small: Vec<bool> = (1..=lag_max).map(|lag| (covariance(lag) / variance).abs() < band).collect();
    let vanishes = small.windows(run).position(|lags| lags.iter().all(|small| *small));
    let last = vanishes.unwrap_or_else(|| small.iter().rposition(|small| !small).map_or(0, |at| at + 1));
    // Correlation between neighbors may be real although it is within the band.
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
        // Neighbors balance each other, as with a tick that beats against the cells. Long blocks would narrow the
        // interval; short ones err to the wide side, so what fits is enough.
        Ok(Blocks::new(noise, longest, spectrum))
    } else {
        Err(needed)
    }
}

/// The mean of the cells from each on around the circle, less the mean of all: every block that can be drawn.
pub(super) fn block_means(values: &[f64], block: usize, mean: f64) -> Vec<f64> {
    circular_sums(values, block).map(|sum| sum / block as f64 - mean).collect()
}

/// The sums of `length` values in a row, from each on around the circle; `length` is from 1 to their number.
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
            // Of a resample without any spread only the sign is known.
            if spread > 0.0 { shift / spread.sqrt() } else { f64::INFINITY.copysign(shift) }
        })
        .collect();
    pivots.sort_unstable_by(f64::total_cmp);
    let tail = (1.0 - CONFIDENCE) / 2.0;
    let at = |share: f64| pivots[nearest_rank(share, RESAMPLES)];
    (mean - at(1.0 - tail) * error, mean - at(tail) * error)
}

/// A uniform number below `n`, which is small: the multiplication's bias is below n / 2^64.
#[inline]
pub fn below(n: usize, random: &mut impl Rng) -> usize {
    ((u128::from(random.next_u64()) * n as u128) >> 64) as usize
}

#[cfg(test)]
mod tests;
