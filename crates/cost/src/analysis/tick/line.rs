//! A straight line through the throughput: another estimate of the total cost, without pairs.

use super::{Processor, percent_per_1000};

/// If each interrupt costs the same, work done per second is a linear function of the interrupt rate: 1/t = (1 - h c) / t0, with t the time
/// of a piece of work, h the rate, c the cost of an interrupt and t0 the time without any.
///
/// Each number of processes has its own t0; c is common. Fitted by least squares.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct FittedLine {
    /// 100,000 c: percent of a CPU per 1,000 interrupts per second.
    pub sum_percent: f64,
    /// The share of the throughput's variance within each number of processes that the line explains (R2); `None` if the throughput does
    /// not vary.
    pub r2_ratio: Option<f64>,
}

impl FittedLine {
    /// Fits all series of a processor, each with its own t0.
    ///
    /// Each series is scaled to the throughput of its own line without interrupts, so all share the slope c: the least-squares slope over
    /// all of them.
    pub fn through(processor: &Processor) -> Self {
        let (mut covariance, mut spread, mut variance) = (0.0, 0.0, 0.0);
        for series in &processor.series {
            let points: Vec<(f64, f64)> = series.points().iter().map(|p| (p.rate_hz, 1e9 / p.work_ns)).collect();
            let n = points.len() as f64;
            let mean_x = points.iter().map(|p| p.0).sum::<f64>() / n;
            let mean_y = points.iter().map(|p| p.1).sum::<f64>() / n;
            let (mut xx, mut xy, mut yy) = (0.0, 0.0, 0.0);
            for (x, y) in &points {
                xx += (x - mean_x).powi(2);
                xy += (x - mean_x) * (y - mean_y);
                yy += (y - mean_y).powi(2);
            }
            // Rates are ascending, so they differ.
            let unhindered = mean_y - xy / xx * mean_x;
            spread += xx;
            covariance += xy / unhindered;
            variance += yy / (unhindered * unhindered);
        }
        let slope = covariance / spread;
        let explained = slope * covariance;
        Self {
            sum_percent: percent_per_1000(-slope * 1e9),
            r2_ratio: (variance > 0.0).then(|| (explained / variance).clamp(0.0, 1.0)),
        }
    }
}
