//! The counter of a recording, and readings of the kernel's clocks next to it.

use becalm_units::Nanos;
use serde::{Deserialize, Serialize};

/// Times are below this, in nanoseconds, so differences of differences do not overflow.
const LIMIT: i64 = 1 << 61;

/// The counter, its rate, and how well that is known.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct ClockDoc {
    /// `tsc`, `cntvct`, `timebase` or `monotonic_raw`.
    pub counter: String,
    /// The counter's value at the run's origin, which places other logs of the same counter on the run's axis.
    #[serde(default)]
    pub origin_ticks: u64,
    /// How often the counter ticks in a second, as it was calibrated.
    pub rate_hz: f64,
    /// Largest relative error of the rate, as parts of 1.
    pub rate_error_ratio: f64,
    /// The median difference of two unequal consecutive readings: what the loops can resolve.
    pub resolution_ns: Nanos,
    /// Largest offset between two measured CPUs' counters that could not be excluded.
    pub cross_cpu_ns: Option<Nanos>,
    /// How far the wall clock may be off, by the kernel's estimate from NTP or PTP; `None` if unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wall_error_ns: Option<Nanos>,
    /// Whether anything keeps the wall clock right; `None` as above.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wall_synchronized: Option<bool>,
    /// How often a counter was seen to run backwards.
    pub backwards: u64,
    /// Readings of the counter and of the kernel's clocks at one instant each, in order of time: they place other programs' times on the run's axis.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pairs: Vec<ClockPair>,
}

impl ClockDoc {
    /// The same without readings of the clocks, for documents that no spans are compared with.
    #[must_use]
    pub fn without_pairs(self) -> Self {
        Self { pairs: Vec::new(), ..self }
    }

    /// Fails if the readings of the clocks are not in order of time, or are no times.
    pub fn check(&self) -> Result<(), String> {
        let mut last = None;
        for pair in &self.pairs {
            let is_time = (-LIMIT..LIMIT).contains(&pair.at_ns.get())
                && (0..LIMIT).contains(&pair.width_ns.get())
                && [pair.monotonic_ns, pair.realtime_ns, pair.boottime_ns].iter().all(|ns| *ns < LIMIT as u64);
            if !is_time || last.is_some_and(|last| pair.at_ns < last) {
                return Err(format!(
                    "its clocks were read at {} ns, which is no time after the last reading",
                    pair.at_ns.get()
                ));
            }
            last = Some(pair.at_ns);
        }
        Ok(())
    }
}

/// The counter and the other clocks at one instant.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct ClockPair {
    /// The instant, since the origin.
    pub at_ns: Nanos,
    /// `CLOCK_MONOTONIC` then.
    pub monotonic_ns: u64,
    /// `CLOCK_REALTIME` then.
    pub realtime_ns: u64,
    /// `CLOCK_BOOTTIME` then.
    pub boottime_ns: u64,
    /// The time that the readings took: their largest error.
    pub width_ns: Nanos,
}
