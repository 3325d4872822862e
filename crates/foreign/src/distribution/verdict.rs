//! Tests the lengths of two sides: they differ, or there is no difference beyond a bound.
//!
//! A figure is uncertain in two ways. Its file only gives bounds ([`Known`]), and every value between these is possible. And by chance it
//! would differ at another time. The amount of chance depends on how detours come: those of a tick scatter less than independent ones,
//! those of a daemon far more. Times show that, and a distribution has none, so a test needs one of two things:
//!
//! - **A recording on one of the sides.** Its detours from the compared length on are counted in 256 cells of time. Blocks of cells give
//!   the variance of such counts relative to independent ones (the design effect of L. Kish, *Survey Sampling*, 1965; at least 1). It is
//!   taken to hold for the other side, which measured the same.
//! - **Several runs per side,** whose scatter includes everything that makes runs differ (`compare::between`).
//!
//! The interval of B / A is computed for both ends of what the files leave open, and covers both (the outer interval of a partially
//! identified parameter: C. F. Manski, *Partial Identification of Probability Distributions*, 2003). A difference is shown if it is beyond
//! 1 and [`FLOOR`], adjusted for the number of rows (Holm). Otherwise the farther end is reported: no larger difference is possible with
//! these data, in 95 of 100 cases.
//!
//! The lengths of two runs as a whole are compared by the largest distance of their cumulative shares beyond what a bucket's width, a
//! loop's step and [`FLOOR`] of a length leave open: at each edge of a bucket, the share that is surely shorter on one side is compared
//! with the share that may be shorter on the other. The share of each side is known within sqrt(ln(4 / level) / 2n) (P. Massart, *The tight
//! constant in the Dvoretzky-Kiefer-Wolfowitz inequality*, Annals of Probability 18, 1990, at half the level), n divided by the design
//! effect.

use becalm_analyze::compare::contrast::{self, RunFigure};
use becalm_analyze::compare::series::RatioOfSums;
use becalm_analyze::compare::{FLOOR, LEVEL, holm};
use becalm_stats::{CONFIDENCE, TimeCells, student_quantile, student_tail};

use super::run::{Known, RunLengths};

/// The fewest lengths per side that are tested.
const LENGTHS_MIN: f64 = 10.0;

/// If a larger difference is possible, the verdict is "not enough data".
const BOUND_MAX: f64 = 1.0;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TestedFigure {
    /// Lengths per second.
    Rate,
    /// The share of time that they took.
    NoiseRatio,
    /// The median length.
    Median,
    /// The length that 1 in 100 exceeds.
    P99,
    /// The largest distance of the cumulative shares.
    Shares,
}

/// The verdict on a figure.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Shown {
    /// B is higher.
    Higher,
    /// B is lower.
    Lower,
    /// The lengths are not distributed alike.
    Differs,
    /// No difference larger than this share is possible with these data, in 95 of 100 cases.
    NoneBeyond(f64),
    /// Even a difference by a factor of two is possible.
    TooLittle,
}

impl Shown {
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Higher => "higher",
            Self::Lower => "lower",
            Self::Differs => "differs",
            Self::NoneBeyond(_) => "none beyond",
            Self::TooLittle => "not enough data",
        }
    }
}

/// A tested figure with its result.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Tested {
    pub figure: TestedFigure,
    /// The typical value of the runs of A, in Hz, a ratio or nanoseconds; `None` for shares.
    pub a: Option<f64>,
    /// The typical value of the runs of B; for shares the distance that was found.
    pub b: Option<f64>,
    /// The lower end of the 95 % interval of B / A; for shares of their distance.
    pub low: f64,
    /// Its upper end; `None` if a bound of A is 0.
    pub high: Option<f64>,
    /// The p-value of no difference, adjusted for the rows of the pair.
    pub p_adjusted: f64,
    pub shown: Shown,
}

/// Why nothing is tested.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Untested {
    /// There is one distribution on each side, and no times.
    NoTimes,
    /// A side has too few lengths.
    FewLengths,
    /// The recording is too short to show how its detours scatter.
    ShortRecording,
    /// A figure lacks the data that it needs.
    NoFigure,
}

/// How detours of a recording scatter.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Clustering {
    /// The design effect: the variance of their counts relative to independent ones.
    effect: f64,
    /// The degrees of freedom of that estimate.
    freedom: f64,
}

impl Clustering {
    /// Computes it from the numbers of detours in the cells of a recording, observed for this time; `None` if it is too short or drifts.
    pub fn from_cells(counts: &TimeCells, observed_ns: i64) -> Option<Self> {
        let count: i64 = counts.noise().iter().sum();
        if count == 0 || observed_ns <= 0 {
            return None;
        }
        let scatter = RatioOfSums::over_time(counts, observed_ns)?.scatter().ok()?;
        let effect = scatter.variance * (observed_ns as f64).powi(2) / count as f64;
        Some(Self { effect: effect.max(1.0), freedom: (scatter.draws as f64 - 1.0).max(1.0) })
    }

    /// The one with the larger effect.
    #[must_use]
    pub fn worse(self, other: Self) -> Self {
        if other.effect > self.effect { other } else { self }
    }
}

pub(super) fn test(sides: &[Vec<RunLengths<'_>>; 2], clustering: Option<Clustering>) -> Result<Vec<Tested>, Untested> {
    let several = sides.iter().any(|side| side.len() > 1);
    if clustering.is_none() && !several {
        return Err(Untested::NoTimes);
    }
    let number = |side: &[RunLengths<'_>]| side.iter().map(RunLengths::about).sum::<Option<f64>>();
    let [Some(number_a), Some(number_b)] = sides.each_ref().map(|side| number(side)) else {
        return Err(Untested::NoFigure);
    };
    if number_a.min(number_b) < LENGTHS_MIN {
        return Err(Untested::FewLengths);
    }
    let effect = clustering.map_or(1.0, |found| found.effect);
    let sides = sides.each_ref().map(|side| side.iter().map(|run| RunLengths { effect, ..*run }).collect::<Vec<_>>());
    type Figure = fn(&RunLengths<'_>) -> Option<Known>;
    let figures: [(TestedFigure, Figure); 4] = [
        (TestedFigure::Rate, |run| run.rate()),
        (TestedFigure::NoiseRatio, |run| run.noise_ratio()),
        (TestedFigure::Median, |run| run.level(0.5)),
        (TestedFigure::P99, |run| run.level(0.99)),
    ];
    let freedom = clustering.map_or(1.0, |found| found.freedom);
    let mut rows: Vec<Row> =
        figures.iter().filter_map(|(figure, test)| row(*figure, &sides, *test, several, freedom)).collect();
    // How shares scatter between several runs is unknown.
    rows.extend(clustering.filter(|_| !several).and_then(|_| shares(&sides)));
    if rows.is_empty() {
        return Err(Untested::NoFigure);
    }
    let adjusted = holm::adjusted(&rows.iter().map(|row| row.p_value).collect::<Vec<_>>());
    Ok(rows.into_iter().zip(adjusted).map(|(row, p_adjusted)| row.judged(p_adjusted)).collect())
}

/// A row without its verdict.
struct Row {
    figure: TestedFigure,
    a: Option<f64>,
    b: Option<f64>,
    low: f64,
    high: Option<f64>,
    p_value: f64,
}

impl Row {
    fn judged(self, p_adjusted: f64) -> Tested {
        let Self { figure, a, b, low, high, .. } = self;
        let sure = p_adjusted <= LEVEL;
        let shown = match (figure, high) {
            (TestedFigure::Shares, Some(high)) if !(sure && low > FLOOR) => at_most(high),
            (TestedFigure::Shares, _) => Shown::Differs,
            _ if sure && low > 1.0 + FLOOR => Shown::Higher,
            (_, Some(high)) if sure && high < 1.0 - FLOOR => Shown::Lower,
            (_, Some(high)) => at_most((high - 1.0).max(1.0 - low)),
            (_, None) => Shown::TooLittle,
        };
        Tested { figure, a, b, low, high, p_adjusted, shown }
    }
}

fn at_most(part: f64) -> Shown {
    if part <= BOUND_MAX { Shown::NoneBeyond(part.max(0.0)) } else { Shown::TooLittle }
}

/// A figure that every run of both sides has.
fn row(
    figure: TestedFigure,
    sides: &[Vec<RunLengths<'_>>; 2],
    read: fn(&RunLengths<'_>) -> Option<Known>,
    several: bool,
    freedom: f64,
) -> Option<Row> {
    let known = sides.each_ref().map(|side| side.iter().map(read).collect::<Option<Vec<Known>>>());
    let [a, b] = known;
    let (a, b) = lend(a?, b?)?;
    // At each end of what the files leave open.
    let at = |side: &[Known], end: fn(&Known) -> f64| -> Vec<RunFigure> {
        side.iter().map(|run| RunFigure::new(end(run).max(0.0), run.variance.unwrap_or(0.0))).collect()
    };
    let ends = [[at(&a, |run| run.high), at(&b, |run| run.low)], [at(&a, |run| run.low), at(&b, |run| run.high)]];
    let [low, high] =
        ends.each_ref().map(|sides| if several { several_ratio(sides) } else { two_ratio(sides, freedom) });
    let (low, high) = (low?, high?);
    let p_value = match (low.ratio > 1.0, high.ratio < 1.0) {
        (true, _) => low.p_value,
        (_, true) => high.p_value,
        // The range that the files leave open includes 1.
        _ => 1.0,
    };
    let [value_a, value_b] = contrast::typical(&[at(&a, |run| run.value), at(&b, |run| run.value)]);
    Some(Row { figure, a: value_a, b: value_b, low: low.low, high: high.high, p_value })
}

/// Gives runs whose file does not show the scatter of a figure the largest known one.
fn lend(mut a: Vec<Known>, mut b: Vec<Known>) -> Option<(Vec<Known>, Vec<Known>)> {
    let widest = a
        .iter()
        .chain(&b)
        .filter_map(|run| run.variance)
        .fold(None, |most: Option<f64>, variance| Some(most.map_or(variance, |most| most.max(variance))))?;
    a.iter_mut().chain(&mut b).for_each(|run| run.variance = run.variance.or(Some(widest)));
    Some((a, b))
}

/// The ratio of two sides, with its interval.
struct Ratio {
    ratio: f64,
    low: f64,
    high: Option<f64>,
    p_value: f64,
}

/// By the differences between the runs of a side.
fn several_ratio(sides: &[Vec<RunFigure>; 2]) -> Option<Ratio> {
    let found = contrast::contrast(&sides[0], &sides[1]).ok()?;
    let [a, b] = contrast::typical(sides).map(|typical| typical.unwrap_or(0.0));
    let ratio = if a > 0.0 { b / a } else { f64::INFINITY };
    Some(Ratio { ratio, low: found.ratio_low.unwrap_or(0.0), high: found.ratio_high, p_value: found.p_value })
}

/// By the scatter within one run per side: to the first order, the variance of a logarithm is that of the figure divided by its square.
fn two_ratio([a, b]: &[Vec<RunFigure>; 2], freedom: f64) -> Option<Ratio> {
    let (a, b) = (a.first()?, b.first()?);
    if a.value <= 0.0 || b.value <= 0.0 {
        let ratio = if a.value > 0.0 { 0.0 } else { f64::INFINITY };
        return Some(Ratio { ratio, low: 0.0, high: None, p_value: 1.0 });
    }
    let log = (b.value / a.value).ln();
    let error = (a.within / (a.value * a.value) + b.within / (b.value * b.value)).sqrt();
    let half = student_quantile((1.0 - CONFIDENCE) / 2.0, freedom) * error;
    let p_value = match error > 0.0 {
        true => (2.0 * student_tail(log.abs() / error, freedom)).min(1.0),
        false => f64::from(log == 0.0),
    };
    Some(Ratio { ratio: log.exp(), low: (log - half).exp(), high: Some((log + half).exp()), p_value })
}

/// The distance of the cumulative shares of two runs.
fn shares(sides: &[Vec<RunLengths<'_>>; 2]) -> Option<Row> {
    let (a, b) = (sides[0].first()?, sides[1].first()?);
    let mut edges: Vec<i64> = [a, b].iter().flat_map(|run| &run.series.buckets).map(|bucket| bucket.below_ns).collect();
    edges.sort_unstable();
    edges.dedup();
    let mut distance = 0.0_f64;
    for edge in edges {
        let ((a_low, a_high), (b_low, b_high)) = (a.share_below(edge)?, b.share_below(edge)?);
        distance = distance.max(b_low - a_high).max(a_low - b_high);
    }
    let scale = (a.effect / a.about()?).sqrt() + (b.effect / b.about()?).sqrt();
    let known_within = ((4.0 / (1.0 - CONFIDENCE)).ln() / 2.0).sqrt() * scale;
    let p_value = (4.0 * (-2.0 * (distance / scale).powi(2)).exp()).min(1.0);
    Some(Row {
        figure: TestedFigure::Shares,
        a: None,
        b: Some(distance),
        low: (distance - known_within).max(0.0),
        high: Some((distance + known_within).min(1.0)),
        p_value,
    })
}

#[cfg(test)]
mod tests;
