//! Converts the time stamps of a trace to nanoseconds.

use becalm_units::Nanos;

use crate::read::ReadError;

/// The latest stamp of a run, 73 years: sums of two still fit.
const LATEST: i128 = 1 << 61;

/// The unit of a trace's stamps.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum StampClock {
    /// Nanoseconds.
    Nanos,
    /// Ticks, converted by `ticks * mult >> shift`.
    Scaled {
        /// The factor.
        mult: u32,
        /// The shift to the right, in bits.
        shift: u32,
    },
    /// Ticks, with this many per second.
    Rate(f64),
}

impl StampClock {
    /// The nanoseconds of a stamp, since the clock's own zero.
    pub fn nanos(self, stamp: u64) -> i128 {
        match self {
            Self::Nanos => stamp.into(),
            Self::Scaled { mult, shift } => (i128::from(stamp) * i128::from(mult)) >> shift,
            // In two parts, because a double does not hold all digits of a stamp.
            Self::Rate(hz) => {
                let second = hz.round().max(1.0) as u64;
                let (seconds, ticks) = (stamp / second, stamp % second);
                i128::from(seconds) * 1_000_000_000 + (ticks as f64 * 1e9 / second as f64) as i128
            }
        }
    }

    /// Ticks per second.
    pub fn hz(self) -> f64 {
        match self {
            Self::Nanos => 1e9,
            Self::Scaled { mult, shift } => 1e9 * (1_u64 << shift) as f64 / f64::from(mult),
            Self::Rate(hz) => hz,
        }
    }
}

/// Places the stamps of a CPU on the run's axis, each later than the one before: equal ones keep the order of the file, one nanosecond
/// apart.
#[derive(Clone, Copy, Debug)]
pub(super) struct Axis {
    origin: i128,
    last: i128,
    /// The latest stamp as it was read.
    newest: i128,
    /// The number of stamps earlier than the one before.
    pub backwards: u64,
}

impl Axis {
    /// Counts times from this instant of the clock.
    pub const fn new(origin: i128) -> Self {
        Self { origin, last: -1, newest: i128::MIN, backwards: 0 }
    }

    /// The instant of a stamp. Fails if it is more than 73 years after the first.
    pub fn place(&mut self, nanos: i128, offset: usize) -> Result<Nanos, ReadError> {
        let mut at = nanos - self.origin;
        self.backwards += u64::from(nanos < self.newest);
        self.newest = self.newest.max(nanos);
        if at <= self.last {
            at = self.last + 1;
        }
        if at > LATEST {
            return Err(ReadError::byte(
                offset,
                "the time of an event is more than 73 years after that of the first one",
            ));
        }
        self.last = at;
        Ok(Nanos::new(at as i64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_become_the_time_that_they_take() {
        // 2.5 GHz: 0.4 ns per tick.
        let (shift, mult) = (31, 858_993_459);
        for (clock, most) in [(StampClock::Scaled { mult, shift }, 1_000), (StampClock::Rate(2.5e9), 0)] {
            let hours = 100 * 3_600 * 2_500_000_000_u64;
            let off = clock.nanos(hours) - 360_000_000_000_000;
            assert!(off.abs() <= 360_000_000_000_000 / 1_000_000_000 + most, "{clock:?} is off by {off} ns");
            assert!((clock.hz() - 2.5e9).abs() < 10.0);
        }
    }

    #[test]
    fn stamps_of_an_axis_rise() {
        let mut axis = Axis::new(100);
        let placed: Vec<i64> = [100, 100, 100, 105, 104, 110].map(|at| axis.place(at, 0).unwrap().get()).to_vec();
        assert_eq!((placed, axis.backwards), (vec![0, 1, 2, 5, 6, 10], 1));
        assert!(axis.place(i128::from(u64::MAX), 7).unwrap_err().to_string().starts_with("byte 7: "));
    }
}
