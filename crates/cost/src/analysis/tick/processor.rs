//! The measurements that the analysis starts from.

/// The measurements of one processor.
#[derive(Clone, PartialEq, Debug)]
pub struct Processor {
    /// The name of the processor, as in the tables.
    pub name: String,
    /// The direct cost of an interrupt, with the handler that ran while the work was timed.
    pub direct: Direct,
    /// The name of that handler: `pit`, or [`MEASURED`] if unnamed.
    pub handler: String,
    /// Times of alternative handlers; empty if only one was measured.
    pub other_handlers: Vec<OtherHandler>,
    /// The time of the work by interrupt rate, one series per number of processes. At least one.
    pub series: Vec<RateSeries>,
}

/// The default name of the handler that ran while the work was timed.
pub const MEASURED: &str = "measured";

impl Processor {
    /// Measurements with one handler.
    pub fn new(name: &str, direct: Direct, series: Vec<RateSeries>) -> Self {
        Self { name: name.to_owned(), direct, handler: MEASURED.to_owned(), other_handlers: Vec::new(), series }
    }
}

/// A handler of the same interrupt that did not run while the work was timed: the kernel's tick with another clock.
///
/// Tsafrir 2007 timed the sorts with the programmable interval timer as the clock, and the handlers with that and with the time stamp
/// counter. The indirect cost follows from the times, and so from the first; the other handler's time is combined with the same indirect
/// cost (table 2, figure 5).
#[derive(Clone, PartialEq, Debug)]
pub struct OtherHandler {
    /// Its name in the column of the table: `tsc` for `handler_tsc_us`.
    pub name: String,
    /// From the first to the last instruction of the handler, in nanoseconds.
    pub handler_ns: f64,
}

/// The direct cost of an interrupt: the time in the kernel for it.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Direct {
    /// Kernel entry and exit, in nanoseconds; measured with a system call that does nothing.
    pub trap_ns: f64,
    /// From the first to the last instruction of the handler, in nanoseconds.
    pub handler_ns: f64,
}

impl Direct {
    /// Both parts, in nanoseconds.
    #[must_use]
    pub fn total_ns(self) -> f64 {
        self.trap_ns + self.handler_ns
    }
}

/// The time of one piece of work at an interrupt rate.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct RatePoint {
    /// The rate of timer interrupts per second.
    pub rate_hz: f64,
    /// Time for one piece of work (one sort), in nanoseconds.
    pub work_ns: f64,
}

/// The points for one number of processes.
#[derive(Clone, PartialEq, Debug)]
pub struct RateSeries {
    processes: u32,
    points: Vec<RatePoint>,
}

/// Measurements that give no cost.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
pub enum SeriesError {
    /// There are fewer than two rates.
    #[error("at least 2 interrupt rates are needed, not {0}: a cost is the difference between two")]
    TooFew(usize),
    /// A rate is negative or NaN.
    #[error("{0} is not an interrupt rate in Hz")]
    Rate(f64),
    /// A rate does not exceed the previous one.
    #[error("interrupt rates must rise: {1} Hz comes after {0} Hz")]
    NotRising(f64, f64),
    /// A time is not above zero.
    #[error("{work_ns} ns at {rate_hz} Hz is not a time that work can take")]
    Time {
        /// The interrupt rate, in interrupts per second.
        rate_hz: f64,
        /// The time of a piece of work, in nanoseconds.
        work_ns: f64,
    },
}

impl RateSeries {
    /// Creates a series for this many processes, in ascending order of rates. Fails if there are fewer than two points, the rates do not
    /// rise, or a time is not above zero.
    pub fn new(processes: u32, points: Vec<RatePoint>) -> Result<Self, SeriesError> {
        if points.len() < 2 {
            return Err(SeriesError::TooFew(points.len()));
        }
        for RatePoint { rate_hz, work_ns } in points.iter().copied() {
            if !(rate_hz.is_finite() && rate_hz >= 0.0) {
                return Err(SeriesError::Rate(rate_hz));
            }
            if !(work_ns.is_finite() && work_ns > 0.0) {
                return Err(SeriesError::Time { rate_hz, work_ns });
            }
        }
        if let Some(pair) = points.windows(2).find(|pair| pair[0].rate_hz >= pair[1].rate_hz) {
            return Err(SeriesError::NotRising(pair[0].rate_hz, pair[1].rate_hz));
        }
        Ok(Self { processes, points })
    }

    /// Number of processes that shared the CPU.
    pub fn processes(&self) -> u32 {
        self.processes
    }

    /// At least two, in ascending order of rates.
    pub fn points(&self) -> &[RatePoint] {
        &self.points
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn series(points: &[(f64, f64)]) -> Result<RateSeries, SeriesError> {
        RateSeries::new(1, points.iter().map(|&(rate_hz, work_ns)| RatePoint { rate_hz, work_ns }).collect())
    }

    #[test]
    fn what_cannot_be_measured_is_refused() {
        assert!(series(&[(0.0, 1.0), (100.0, 2.0)]).is_ok());
        for (points, why) in [
            (&[(100.0, 1.0)][..], "at least 2 interrupt rates are needed, not 1"),
            (&[(100.0, 1.0), (100.0, 2.0)], "100 Hz comes after 100 Hz"),
            (&[(-1.0, 1.0), (100.0, 2.0)], "-1 is not an interrupt rate"),
            (&[(1.0, 1.0), (f64::NAN, 2.0)], "NaN is not an interrupt rate"),
            (&[(1.0, 0.0), (2.0, 2.0)], "0 ns at 1 Hz"),
            (&[(1.0, 1.0), (2.0, f64::INFINITY)], "inf ns at 2 Hz"),
        ] {
            let error = series(points).unwrap_err().to_string();
            assert!(error.contains(why), "{error}");
        }
    }
}
