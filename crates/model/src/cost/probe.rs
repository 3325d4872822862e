//! Probes of traps and of detours: samples that a probe took, or the reason why it took none.

use serde::{Deserialize, Serialize};

use super::check::check_picos;
use crate::event_count::EventCount;

/// What timed the samples.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct InstrumentDoc {
    /// `tsc`, `cntvct`, `timebase` or `monotonic_raw`.
    pub counter: String,
    /// Ticks a second.
    pub rate_hz: f64,
    /// Largest relative error of the rate, as parts of 1.
    pub rate_error_ratio: f64,
    /// What the two readings around a sample cost, in picoseconds; it is taken off each.
    pub overhead_ps: i64,
    /// Which events of the processor are not counted, and why, a line for each reason.
    #[serde(default)]
    pub not_counted: Vec<String>,
}

/// The samples of a probe, but for their times, which stand in the table under the probe's name.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct SeriesDoc {
    /// Repetitions in a sample, which is their mean; at least 1.
    pub batch: u32,
    /// How many samples, of all rounds together.
    pub samples: u64,
    /// Interrupts that the kernel counted on the CPU meanwhile; nothing where it does not tell.
    pub interrupts: Option<u64>,
    /// How often the measuring thread was pre-empted meanwhile.
    pub preempted: u64,
    /// Whether the samples are interruptions themselves, so that none is slow for having been interrupted.
    pub interruptions: bool,
    /// What the processor counted in further repetitions, without what comes between samples; often nothing on a virtual
    /// machine.
    #[serde(default)]
    pub counts: Vec<EventCount>,
    /// How many repetitions these were.
    #[serde(default)]
    pub counted: u64,
}

/// One probe: its samples, or the reason why there are none.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ProbeDoc {
    /// Its stable name, which no other probe of the document has.
    pub name: String,
    /// What it is, in a few words.
    pub what: String,
    /// How it was measured.
    pub method: String,
    /// Its samples.
    pub series: Option<SeriesDoc>,
    /// Why there are none.
    pub not_measured: Option<String>,
}

/// Probes of traps or detours.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct ProbeCosts {
    /// What timed them; nothing before they are measured.
    pub instrument: Option<InstrumentDoc>,
    /// The probes, in the order in which they are shown.
    pub probes: Vec<ProbeDoc>,
}

/// What has samples was timed by something.
pub(super) fn check_instrument(instrument: Option<&InstrumentDoc>, nothing_timed: bool) -> Result<(), String> {
    match instrument {
        None if nothing_timed => Ok(()),
        None => Err("it does not tell what timed the samples".to_owned()),
        Some(of) if of.rate_hz > 0.0 && of.rate_error_ratio >= 0.0 => {
            check_picos("overhead_ps", "the instrument", of.overhead_ps)
        }
        Some(of) => Err(format!("{} Hz, known to {}, is no rate of a counter", of.rate_hz, of.rate_error_ratio)),
    }
}

impl ProbeDoc {
    pub(super) fn check(&self) -> Result<(), String> {
        match (&self.series, &self.not_measured) {
            (Some(_), None) | (None, Some(_)) => Ok(()),
            _ => Err(format!("'{}' has both samples and a reason why it has none, or neither", self.name)),
        }
    }
}
