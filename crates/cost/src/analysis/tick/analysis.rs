//! The cost of an interrupt from measurements, and the resulting linear model.

use becalm_stats::{median_mid, trimmed_mean};

use super::{FittedLine, HandlerMode, OtherHandler, Processor, RatePair, RatePoint, RateSeries, percent_per_1000};

/// The cost of an interrupt on one processor, in percent of a CPU per 1,000 interrupts per second, and how well the linear model fits the
/// measurements.
#[derive(Clone, PartialEq, Debug)]
pub struct Analysis {
    /// The name of the processor, as in the tables.
    pub name: String,
    /// The share of kernel entry and exit.
    pub trap_percent: f64,
    /// The share of the handler.
    pub handler_percent: f64,
    /// The indirect cost: the mean over all pairs of rates.
    pub indirect_percent: f64,
    /// The trimmed mean: without the tenth of the pairs with the lowest and the tenth with the highest cost ([`TRIMMED`]). For two similar
    /// rates, a small error of a time is a large one of the cost, which a plain mean follows.
    pub indirect_trimmed_percent: f64,
    /// The name of the handler that ran while the work was timed.
    pub handler: String,
    /// Handlers that did not run then.
    pub other_handlers: Vec<OtherHandler>,
    /// Every pair of rates for every number of processes: by processes, then the lower, then the higher rate.
    pub pairs: Vec<RatePair>,
    /// Measurements compared with the model, in the order of the measurements.
    pub comparisons: Vec<FittedPoint>,
    /// The straight line through the throughput.
    pub line: FittedLine,
}

/// The share of the pairs that the trimmed mean drops at either end.
pub const TRIMMED: f64 = 0.1;

/// A measurement and the model's prediction.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct FittedPoint {
    /// Number of processes that shared the CPU.
    pub processes: u32,
    /// Interrupts per second of the measurement.
    pub rate_hz: f64,
    /// Measured time of a piece of work, in nanoseconds.
    pub observed_ns: f64,
    /// Predicted time, in nanoseconds; `None` if the model leaves the CPU no time at this rate.
    pub predicted_ns: Option<f64>,
    /// Estimated time on a tickless system, in nanoseconds, the same for all rates.
    pub tickless_ns: Option<f64>,
}

impl FittedPoint {
    /// The share of the CPU lost in the measurement: 1 - tickless / observed. Slightly below 0 if the work was faster than the tickless
    /// estimate.
    pub fn overhead_ratio(&self) -> Option<f64> {
        self.tickless_ns.map(|tickless| 1.0 - tickless / self.observed_ns)
    }

    /// The excess of the observation over the prediction, relative to the prediction.
    pub fn residual_ratio(&self) -> Option<f64> {
        self.predicted_ns.map(|predicted| self.observed_ns / predicted - 1.0)
    }
}

impl Analysis {
    /// Analyzes the measurements of one processor.
    pub fn new(processor: &Processor) -> Self {
        let direct = processor.direct;
        let pairs: Vec<RatePair> = processor.series.iter().flat_map(|series| RatePair::all(series, direct)).collect();
        let indirect_percent = pairs.iter().map(RatePair::indirect_percent).sum::<f64>() / pairs.len() as f64;
        let mut costs: Vec<f64> = pairs.iter().map(RatePair::indirect_percent).collect();
        let mut analysis = Self {
            name: processor.name.clone(),
            trap_percent: percent_per_1000(direct.trap_ns),
            handler_percent: percent_per_1000(direct.handler_ns),
            indirect_percent,
            indirect_trimmed_percent: trimmed_mean(&mut costs, TRIMMED).unwrap_or(indirect_percent),
            handler: processor.handler.clone(),
            other_handlers: processor.other_handlers.clone(),
            pairs,
            comparisons: Vec::new(),
            line: FittedLine::through(processor),
        };
        analysis.comparisons = processor.series.iter().flat_map(|series| analysis.compare(series)).collect();
        analysis
    }

    /// Trap, handler and indirect cost together.
    pub fn sum_percent(&self) -> f64 {
        self.trap_percent + self.handler_percent + self.indirect_percent
    }

    /// The same with the trimmed mean of the indirect costs.
    pub fn sum_trimmed_percent(&self) -> f64 {
        self.trap_percent + self.handler_percent + self.indirect_trimmed_percent
    }

    /// The costs of an interrupt with each handler: first the one that ran while the work was timed.
    pub fn modes(&self) -> Vec<HandlerMode> {
        HandlerMode::all(self)
    }

    /// The rates of the measurements, in interrupts per second, each the mean over the numbers of processes.
    pub fn rates_hz(&self) -> Vec<f64> {
        let series: Vec<&[FittedPoint]> = self.comparisons.chunk_by(|a, b| a.processes == b.processes).collect();
        let rates = series.iter().map(|points| points.len()).min().unwrap_or(0);
        let mean = |at: usize| series.iter().map(|points| points[at].rate_hz).sum::<f64>() / series.len() as f64;
        (0..rates).map(mean).collect()
    }

    /// The share of a CPU that interrupts at this rate take: overhead(hz) = hz (P_trap + P_handler + P_indirect).
    pub fn overhead_ratio(&self, rate_hz: f64) -> f64 {
        rate_hz * self.sum_percent() / 100.0 / 1_000.0
    }

    /// The median share of the indirect cost in the extra time, over the pairs with extra time.
    pub fn indirect_share_median(&self) -> Option<f64> {
        let mut shares: Vec<f64> = self.pairs.iter().filter_map(RatePair::indirect_share).collect();
        median_mid(&mut shares)
    }

    /// The largest deviation of a measurement from the model, relative to the prediction; `None` if a prediction is missing.
    pub fn residual_max_ratio(&self) -> Option<f64> {
        self.comparisons.iter().try_fold(0.0_f64, |max, row| Some(max.max(row.residual_ratio()?.abs())))
    }

    /// The share of the variance of the times, within each number of processes, that the model explains (R2). Below zero if it explains
    /// less than the mean does. `None` if the times do not vary, or a prediction is missing.
    pub fn r2_ratio(&self) -> Option<f64> {
        let (mut unexplained, mut variance) = (0.0, 0.0);
        for rows in self.comparisons.chunk_by(|a, b| a.processes == b.processes) {
            let mean = rows.iter().map(|row| row.observed_ns).sum::<f64>() / rows.len() as f64;
            for row in rows {
                unexplained += (row.observed_ns - row.predicted_ns?).powi(2);
                variance += (row.observed_ns - mean).powi(2);
            }
        }
        (variance > 0.0).then(|| 1.0 - unexplained / variance)
    }

    /// Compares the points of a series with the model. Time without ticks = measured time (1 - overhead), averaged over the rates; the
    /// prediction at a rate is that time / (1 - overhead).
    fn compare<'a>(&self, series: &'a RateSeries) -> impl Iterator<Item = FittedPoint> + use<'a> {
        let left = |point: &RatePoint| 1.0 - self.overhead_ratio(point.rate_hz);
        let points = series.points();
        let possible = points.iter().all(|point| left(point) > 0.0);
        let without = points.iter().map(|point| point.work_ns * left(point)).sum::<f64>() / points.len() as f64;
        let tickless_ns = possible.then_some(without);
        let shares: Vec<f64> = points.iter().map(left).collect();
        points.iter().zip(shares).map(move |(point, left)| FittedPoint {
            processes: series.processes(),
            rate_hz: point.rate_hz,
            observed_ns: point.work_ns,
            predicted_ns: tickless_ns.map(|tickless| tickless / left),
            tickless_ns,
        })
    }
}
