//! Several rounds of the same measurement: the estimate from their medians, and its interval from their spread.

use becalm_stats::{mean_with_half_width, median_mid};

use super::{Analysis, Direct, Processor, RatePoint, RateSeries, SeriesError};

/// The 95 % interval of a figure.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct RoundsInterval {
    /// The lower end, in the unit of the figure.
    pub low: f64,
    /// The upper end, in the unit of the figure.
    pub high: f64,
}

/// An analysis of the medians over rounds, where each round measures everything once.
///
/// The estimate uses the median time of each cell, so a disturbed cell does not move it. Each round alone gives an estimate as well. Rounds
/// are independent, because each measures all cells in its own order, so the spread of their estimates includes drift. The interval is
/// centered on the estimate and as wide as Student's 95 % interval for the mean of that many estimates, which errs on the wide side for the
/// median.
#[derive(Clone, PartialEq, Debug)]
pub struct Rounds {
    /// The analysis of the median times.
    pub analysis: Analysis,
    /// Number of rounds.
    pub count: usize,
    /// The interval of the indirect cost; `None` with one round.
    pub indirect_percent: Option<RoundsInterval>,
    /// The interval of the total cost; `None` with one round.
    pub sum_percent: Option<RoundsInterval>,
}

impl Rounds {
    /// Analyzes rounds with the same series in the same order and a common direct cost. Fails if there is no round, or the medians over the
    /// rounds are unusable. Panics if the rounds differ in their numbers of processes or rates.
    pub fn new(name: &str, direct: Direct, rounds: &[Vec<RateSeries>]) -> Result<Self, SeriesError> {
        let analyze = |series: Vec<RateSeries>| Analysis::new(&Processor::new(name, direct, series));
        let Some(first) = rounds.first() else { return Err(SeriesError::TooFew(0)) };
        let middle = (0..first.len()).map(|at| {
            let points = (0..first[at].points().len()).map(|point| {
                let over_rounds = |value: fn(&RatePoint) -> f64| {
                    let mut values: Vec<f64> = rounds.iter().map(|round| value(&round[at].points()[point])).collect();
                    median_mid(&mut values).expect("there is a round")
                };
                RatePoint { rate_hz: over_rounds(|point| point.rate_hz), work_ns: over_rounds(|point| point.work_ns) }
            });
            RateSeries::new(first[at].processes(), points.collect())
        });
        let analysis = analyze(middle.collect::<Result<_, _>>()?);
        let each: Vec<Analysis> = rounds.iter().map(|round| analyze(round.clone())).collect();
        let bounds = |center: f64, values: Vec<f64>| {
            mean_with_half_width(&values)?.1.map(|half| RoundsInterval { low: center - half, high: center + half })
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
