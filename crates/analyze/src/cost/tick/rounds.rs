//! Several rounds of the same measurement: the estimate from their medians, and its interval from their spread.

use super::student::half_width;
use super::{Analysis, Direct, Point, Processor, Series, SeriesError};

/// The 95 % interval of a figure.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Bounds {
    /// The lower end.
    pub low: f64,
    /// The upper end.
    pub high: f64,
}

/// An analysis of the medians over rounds, each of which measured everything once.
///
/// The estimate rests on the median time of each cell, so that what disturbs a single cell does not move it. Each round alone
/// gives an estimate as well. The rounds are independent, since each measures all cells in an order of its own, so that the
/// spread of their estimates holds what drifted meanwhile; the interval is as wide as Student's 95 % interval for the
/// mean of that many estimates, which lets it err to the wide side for the median, and lies around the estimate.
#[derive(Clone, PartialEq, Debug)]
pub struct Rounds {
    /// Of the median times.
    pub analysis: Analysis,
    /// How many rounds.
    pub count: usize,
    /// Of the indirect cost; nothing with one round.
    pub indirect_percent: Option<Bounds>,
    /// Of the whole cost; nothing with one round.
    pub sum_percent: Option<Bounds>,
}

impl Rounds {
    /// Of rounds with the same series in the same order. The direct cost is common to all.
    ///
    /// # Errors
    /// If there is no round, or the medians over the rounds are no measurement.
    ///
    /// # Panics
    /// If the rounds do not have the same numbers of processes and of rates.
    pub fn of(name: &str, direct: Direct, rounds: &[Vec<Series>]) -> Result<Self, SeriesError> {
        let of = |series: Vec<Series>| Analysis::of(&Processor { name: name.to_owned(), direct, series });
        let Some(first) = rounds.first() else { return Err(SeriesError::TooFew(0)) };
        let middle = (0..first.len()).map(|at| {
            let points = (0..first[at].points().len()).map(|point| {
                let over_rounds = |value: fn(&Point) -> f64| {
                    let mut values: Vec<f64> = rounds.iter().map(|round| value(&round[at].points()[point])).collect();
                    values.sort_unstable_by(f64::total_cmp);
                    median(&values)
                };
                Point { rate_hz: over_rounds(|point| point.rate_hz), work_ns: over_rounds(|point| point.work_ns) }
            });
            Series::new(first[at].processes(), points.collect())
        });
        let analysis = of(middle.collect::<Result<_, _>>()?);
        let each: Vec<Analysis> = rounds.iter().map(|round| of(round.clone())).collect();
        let bounds = |center: f64, values: Vec<f64>| {
            half_width(&values).map(|half| Bounds { low: center - half, high: center + half })
        };
        Ok(Self {
            count: rounds.len(),
            indirect_percent: bounds(
                analysis.indirect_percent,
                each.iter().map(|analysis| analysis.indirect_percent).collect(),
            ),
            sum_percent: bounds(analysis.sum_percent(), each.iter().map(Analysis::sum_percent).collect()),
            analysis,
        })
    }
}

/// Of sorted values, at least one: the middle one, or the middle between both.
fn median(sorted: &[f64]) -> f64 {
    f64::midpoint(sorted[(sorted.len() - 1) / 2], sorted[sorted.len() / 2])
}
