//! What two sides' lengths say of each other: a difference, or that there is none beyond so much.
//!
//! A figure is uncertain in two ways. Its file says it between two values only ([`Known`]): whatever lies between them is possible. And
//! by chance it would be another one at another time. How much chance there is depends on how detours come: those of a tick scatter less than
//! independent ones, those of a daemon far more. The times tell, which a distribution does not have, so that one of two things must be there:
//!
//! - **A recording on one of the sides.** Its detours from the compared length on are counted in 256 cells of time, and their blocks say how
//!   many times as far such numbers scatter as independent ones would (the design effect of L. Kish, *Survey Sampling*, 1965; at least 1).
//!   It is taken to hold for the other side, which measured the same.
//! - **Several runs a side,** whose scatter holds whatever makes runs differ (`compare::between`).
//!
//! The interval of B / A is made for the two ends of what the files leave open, and reaches over both (the outer interval of a partially
//! identified parameter: C. F. Manski, *Partial Identification of Probability Distributions*, 2003). A difference is shown where it lies
//! beyond 1 and [`FLOOR`], with allowance for the number of rows (Holm). Otherwise its farther end is what is said: no
//! difference larger than that is possible with these data, in 95 of 100 cases.
//!
//! The lengths of two runs as a whole are compared by the largest distance of their cumulative shares beyond what a bucket's width, a loop's
//! step and [`FLOOR`] of a length leave open: at each edge of a bucket stands the share that is surely shorter on one side
//! against that which may be so on the other.
//! The share of each side is known within sqrt(ln(4 / level) / 2n) (P. Massart, *The tight constant in the Dvoretzky-Kiefer-Wolfowitz
//! inequality*, Annals of Probability 18, 1990, at half the level), n divided by the design effect.

use becalm_analyze::compare::contrast::{self, RunFigure};
use becalm_analyze::compare::series::RatioOfSums;
use becalm_analyze::compare::{FLOOR, LEVEL, holm};
use becalm_stats::{CONFIDENCE, TimeCells, student_quantile, student_tail};

use super::run::{Known, RunLengths};

/// Fewer lengths on a side say nothing.
const LENGTHS_MIN: f64 = 10.0;

/// Where more than this is possible, nothing is said of a difference.
const BOUND_MAX: f64 = 1.0;

/// A figure of both sides that is held against each other.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TestedFigure {
    /// How many lengths came in a second.
    Rate,
    /// Which part of the time they took.
    NoiseRatio,
    /// The median length.
    Median,
    /// The length that 1 in 100 exceeds.
    P99,
    /// The largest distance of the cumulative shares.
    Shares,
}

/// What is shown of a figure.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Shown {
    /// That of B is higher.
    Higher,
    /// That of B is lower.
    Lower,
    /// The lengths are not distributed alike.
    Differs,
    /// No difference larger than this part is possible with these data, in 95 of 100 cases.
    NoneBeyond(f64),
    /// Even a difference by a factor of two is possible.
    TooLittle,
}

impl Shown {
    /// As documents have it.
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

/// A row of what was tested.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Tested {
    /// Of what.
    pub figure: TestedFigure,
    /// What is typical of the runs of A, in Hz, as a ratio or in nanoseconds; of shares the distance that was found, which A has not.
    pub a: Option<f64>,
    /// Of those of B.
    pub b: Option<f64>,
    /// The lower end of the 95 % interval of B / A; of shares that of their distance.
    pub low: f64,
    /// Its upper end; `None` where a bound of A is 0.
    pub high: Option<f64>,
    /// The p-value of no difference, adjusted for the rows of the pair.
    pub p_adjusted: f64,
    /// What is shown.
    pub shown: Shown,
}

/// Why nothing is tested.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Untested {
    /// There is one distribution on each side, and no times.
    NoTimes,
    /// A side has hardly any such lengths.
    FewLengths,
    /// The recording is too short to say how its detours scatter.
    ShortRecording,
    /// Neither side says what a figure would need.
    NoFigure,
}

/// How detours of a recording scatter.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Clustering {
    /// How many times as far as independent ones.
    effect: f64,
    /// On how many degrees of freedom that rests.
    freedom: f64,
}

impl Clustering {
    /// Of the numbers of detours in the cells of a recording that was observed for so long; `None` where it is too short or drifts.
    pub fn from_cells(counts: &TimeCells, observed_ns: i64) -> Option<Self> {
        let count: i64 = counts.noise().iter().sum();
        if count == 0 || observed_ns <= 0 {
            return None;
        }
        let scatter = RatioOfSums::over_time(counts, observed_ns)?.scatter().ok()?;
        let effect = scatter.variance * (observed_ns as f64).powi(2) / count as f64;
        Some(Self { effect: effect.max(1.0), freedom: (scatter.draws as f64 - 1.0).max(1.0) })
    }

    /// The one that scatters farther.
    #[must_use]
    pub fn worse(self, other: Self) -> Self {
        if other.effect > self.effect { other } else { self }
    }
}

/// Tests the runs of two sides.
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
    // How the shares of several runs scatter between these is not known.
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
        // What the files leave open holds 1.
        _ => 1.0,
    };
    let [value_a, value_b] = contrast::typical(&[at(&a, |run| run.value), at(&b, |run| run.value)]);
    Some(Row { figure, a: value_a, b: value_b, low: low.low, high: high.high, p_value })
}

/// Gives runs whose file does not say how a figure scatters the scatter of the other side's.
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

/// By how the runs of a side differ from each other.
fn several_ratio(sides: &[Vec<RunFigure>; 2]) -> Option<Ratio> {
    let found = contrast::contrast(&sides[0], &sides[1]).ok()?;
    let [a, b] = contrast::typical(sides).map(|typical| typical.unwrap_or(0.0));
    let ratio = if a > 0.0 { b / a } else { f64::INFINITY };
    Some(Ratio { ratio, low: found.ratio_low.unwrap_or(0.0), high: found.ratio_high, p_value: found.p_value })
}

/// By how one run a side scatters within itself: to the first order the variance of a logarithm is that of the figure in proportion to
/// its square.
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
