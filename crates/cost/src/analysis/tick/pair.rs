//! Pairs of interrupt rates, and the cost of the difference.

use super::{Direct, RatePoint, RateSeries, percent_per_1000};

/// The cost of the interrupts that the higher of two rates adds to one piece of work.
///
/// Tsafrir 2007, section 2: for rates h1 < h2 with times a and b, extra interrupts n = (h2 - h1) b; extra time = b - a;
/// direct = n (trap + handler); indirect = extra - direct.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct RatePair {
    /// Number of processes that shared the CPU.
    pub processes: u32,
    /// The lower rate h1, in interrupts per second.
    pub low_hz: f64,
    /// The higher rate h2, in interrupts per second.
    pub high_hz: f64,
    /// The extra interrupts n; above 0.
    pub extra_interrupts: f64,
    /// b - a, in nanoseconds. Negative if the work ran faster at the higher rate, which happens for similar rates.
    pub extra_ns: f64,
    /// The part of it that trap and handler explain, in nanoseconds.
    pub direct_ns: f64,
}

impl RatePair {
    /// The pair of two points; the second has the higher rate.
    pub fn new(processes: u32, low: RatePoint, high: RatePoint, direct: Direct) -> Self {
        let extra_interrupts = (high.rate_hz - low.rate_hz) * high.work_ns / 1e9;
        Self {
            processes,
            low_hz: low.rate_hz,
            high_hz: high.rate_hz,
            extra_interrupts,
            extra_ns: high.work_ns - low.work_ns,
            direct_ns: extra_interrupts * direct.total_ns(),
        }
    }

    /// All pairs of a series: n (n - 1) / 2 for n rates.
    pub fn all(series: &RateSeries, direct: Direct) -> impl Iterator<Item = Self> + '_ {
        let points = series.points();
        let above = move |(at, low): (usize, &RatePoint)| {
            let low = *low;
            points[at + 1..].iter().map(move |high| Self::new(series.processes(), low, *high, direct))
        };
        points.iter().enumerate().flat_map(above)
    }

    /// The time that trap and handler do not explain, in nanoseconds.
    pub fn indirect_ns(&self) -> f64 {
        self.extra_ns - self.direct_ns
    }

    /// The indirect cost as a share of the extra time; `None` if the work was no slower at the higher rate.
    pub fn indirect_share(&self) -> Option<f64> {
        (self.extra_ns > 0.0).then(|| self.indirect_ns() / self.extra_ns)
    }

    /// The indirect cost in percent of a CPU per 1,000 interrupts per second.
    pub fn indirect_percent(&self) -> f64 {
        percent_per_1000(self.indirect_ns() / self.extra_interrupts)
    }

    /// The total cost in percent of a CPU per 1,000 interrupts per second.
    pub fn sum_percent(&self) -> f64 {
        percent_per_1000(self.extra_ns / self.extra_interrupts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The paper's own example: a Pentium III of 664 MHz, one process, 100 against 10,000 Hz.
    #[test]
    fn the_worked_example() {
        let low = RatePoint { rate_hz: 100.0, work_ns: 12_675_000.0 };
        let high = RatePoint { rate_hz: 10_000.0, work_ns: 13_397_000.0 };
        let pair = RatePair::new(1, low, high, Direct { trap_ns: 520.0, handler_ns: 490.0 });
        assert_eq!(pair.extra_interrupts.round(), 133.0);
        assert_eq!((pair.direct_ns / 1e3).round(), 134.0);
        assert_eq!((pair.extra_ns / 1e3).round(), 722.0);
        assert_eq!((pair.indirect_share().unwrap() * 100.0).round(), 81.0);
    }

    #[test]
    fn a_share_of_nothing_is_none() {
        let at = |rate_hz, work_ns| RatePoint { rate_hz, work_ns };
        let pair = RatePair::new(1, at(100.0, 1e6), at(200.0, 1e6), Direct { trap_ns: 1.0, handler_ns: 1.0 });
        assert_eq!(pair.indirect_share(), None);
        assert!(pair.indirect_ns() < 0.0 && pair.sum_percent() == 0.0);
    }
}
