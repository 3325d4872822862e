//! Several rounds of the same measurement: the estimate from their mean, and its interval from their spread.

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

/// An analysis of the mean over rounds, each of which measured everything once.
///
/// Each round alone gives an estimate of each cost. The rounds are independent, since each measures all cells in an order of
/// its own, so that the spread of their estimates holds what drifted meanwhile; the 95 % interval is Student's for
/// the mean of that many estimates, around the estimate from the mean times.
#[derive(Clone, PartialEq, Debug)]
pub struct Rounds {
    /// Of the mean times.
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
    /// If there is no round, or the mean over the rounds is no measurement.
    ///
    /// # Panics
    /// If the rounds do not have the same numbers of processes and of rates.
    pub fn of(name: &str, direct: Direct, rounds: &[Vec<Series>]) -> Result<Self, SeriesError> {
        let of = |series: Vec<Series>| Analysis::of(&Processor { name: name.to_owned(), direct, series });
        let Some(first) = rounds.first() else { return Err(SeriesError::TooFew(0)) };
        let mean = (0..first.len()).map(|at| {
            let points = (0..first[at].points().len()).map(|point| {
                let of_rounds = rounds.iter().map(|round| round[at].points()[point]);
                let n = rounds.len() as f64;
                let (rate, work) = of_rounds.fold((0.0, 0.0), |sum, p| (sum.0 + p.rate_hz, sum.1 + p.work_ns));
                Point { rate_hz: rate / n, work_ns: work / n }
            });
            Series::new(first[at].processes(), points.collect())
        });
        let analysis = of(mean.collect::<Result<_, _>>()?);
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
