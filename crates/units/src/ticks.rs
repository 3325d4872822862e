//! Values of a hardware counter and their exact conversion to time.

use std::fmt;
use std::ops::Sub;

use serde::{Deserialize, Serialize};

use crate::Nanos;

/// A raw value of a counter, or a difference of two.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Ticks(u64);

impl Ticks {
    /// A reading with this value of the counter.
    // Always inlined, because this function and the next are part of measuring loops.
    #[inline(always)]
    pub const fn new(ticks: u64) -> Self {
        Self(ticks)
    }

    /// The counter's value as a plain number.
    #[inline(always)]
    pub const fn get(self) -> u64 {
        self.0
    }
}

impl Sub for Ticks {
    type Output = Self;

    /// The distance from an earlier value, correct even if the counter wrapped at 2^64.
    fn sub(self, earlier: Self) -> Self {
        Self(self.0.wrapping_sub(earlier.0))
    }
}

/// The rate of a counter.
#[derive(Clone, Copy, PartialEq, PartialOrd, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct TickRate(f64);

impl TickRate {
    /// Creates a rate from ticks per second. Panics unless it is finite and from 1 kHz to 1 THz, the range of real counters.
    pub fn from_hz(hz: f64) -> Self {
        assert!((1e3..=1e12).contains(&hz), "a counter runs at 1 kHz to 1 THz, not at {hz} Hz");
        Self(hz)
    }

    /// The rate in ticks per second.
    pub const fn hz(self) -> f64 {
        self.0
    }

    /// The length of a tick, in nanoseconds.
    pub fn tick_ns(self) -> f64 {
        1e9 / self.0
    }

    /// The duration in ticks, rounded up.
    pub fn ticks_in(self, duration: Nanos) -> Ticks {
        Ticks((duration.get().max(0) as f64 * self.0 / 1e9).ceil() as u64)
    }
}

impl fmt::Display for TickRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.6} MHz", self.0 / 1e6)
    }
}

/// The only conversion from ticks to time: `ns = (ticks - origin) * multiplier / 2^32`, rounded down, through 128 bits.
///
/// The multiplier has 32 fractional bits, so its rounding error is below 2.4e-10 ns per tick: less than a nanosecond per second at 4 GHz,
/// and constant over a run, so differences have the same relative error. The conversion is monotone.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TicksToNanos {
    origin: Ticks,
    multiplier: u64,
}

impl TicksToNanos {
    /// For a counter with this rate, from this origin on.
    pub fn new(origin: Ticks, rate: TickRate) -> Self {
        // A rate of at least 1 kHz keeps the multiplier below 2^52.
        Self { origin, multiplier: (1e9 / rate.hz() * f64::from(2_u32.pow(31)) * 2.0).round() as u64 }
    }

    /// The counter's value at time zero.
    pub const fn origin(self) -> Ticks {
        self.origin
    }

    /// The time of a counter value since the origin; negative before it.
    pub const fn instant(self, ticks: Ticks) -> Nanos {
        let since = ticks.get().wrapping_sub(self.origin.get()) as i64;
        Nanos::new(((since as i128 * self.multiplier as i128) >> 32) as i64)
    }

    /// The length of a difference of counter values, rounded down.
    pub const fn duration(self, ticks: Ticks) -> Nanos {
        Nanos::new(((ticks.get() as u128 * self.multiplier as u128) >> 32) as i64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_day_at_2_6_ghz_is_right_to_the_multipliers_rounding() {
        let to = TicksToNanos::new(Ticks::new(5), TickRate::from_hz(2.6e9));
        let day = 86_400.0 * 2.6e9;
        let ns = to.instant(Ticks::new(5 + day as u64)).get();
        assert!((ns - 86_400_000_000_000).abs() < 86_400, "{ns}");
    }

    proptest! {
        #[test]
        fn conversion_is_monotone_and_near_the_real_number(
            hz in 1e6_f64..5e9, a in 0_u64..1 << 50, step in 0_u64..1 << 40,
        ) {
            let to = TicksToNanos::new(Ticks::new(a), TickRate::from_hz(hz));
            let ns = to.instant(Ticks::new(a + step));
            prop_assert!(ns >= Nanos::ZERO);
            prop_assert!(to.instant(Ticks::new(a + step + 1)) >= ns);
            let real = step as f64 / hz * 1e9;
            prop_assert!((ns.get() as f64 - real).abs() <= 1.0 + real * 1e-9);
            prop_assert_eq!(to.duration(Ticks::new(step)), ns);
        }
    }
}
