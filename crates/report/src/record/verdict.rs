//! The answer before all figures: whether the measured CPUs were quiet. Text and page show the same one.

use becalm_analyze::summary::Summary;
use becalm_units::Nanos;

use crate::Value;
use crate::form::section::Grade;
use crate::form::value::time;
use crate::record::figures::{CpuRow, cpu};

/// The largest share of CPU time that a quiet machine loses.
pub const NOISE_QUIET: f64 = 0.001;

/// The longest interruption of a quiet machine.
pub(super) const MAX_QUIET: Nanos = Nanos::from_micros(50);

/// Whether a recording was quiet.
pub(super) struct Verdict {
    /// The verdict in one word.
    pub(super) word: &'static str,
    /// The reason, without a full stop.
    pub(super) reason: String,
    /// Its color on a page.
    pub(super) tone: Grade,
}

impl Verdict {
    pub(super) fn new(summary: &Summary) -> Self {
        let row = CpuRow::total(summary);
        let Some(lost) = row.figures.noise_ratio() else {
            let reason = "how much CPU time was lost, because it is not known how long the loops ran".to_owned();
            return Self { word: "UNKNOWN", reason, tone: Grade::Plain };
        };
        let Some(longest) = row.figures.durations.max() else {
            let reason = format!("no interruption was seen in {} of CPU time", cpu::DURATION_NS.cell(&row));
            return Self { word: "QUIET", reason, tone: Grade::Good };
        };
        let interval = interval(&row).map_or_else(String::new, |interval| format!(" (95 % CI {interval})"));
        let reason = format!("{} of CPU time lost{interval}, longest interruption {}", ratio(lost), time(longest));
        let (word, tone) = match (lost <= NOISE_QUIET, longest <= MAX_QUIET.get()) {
            (true, true) => ("QUIET", Grade::Good),
            (true, false) => ("NOISY", Grade::Fair),
            (false, _) => ("NOISY", Grade::Bad),
        };
        Self { word, reason, tone }
    }
}

/// The limits of a quiet machine.
pub(super) fn limits() -> String {
    format!("Quiet: at most {}% lost, none over {MAX_QUIET}.", NOISE_QUIET * 100.0)
}

pub(super) fn ratio(ratio: f64) -> String {
    Value::Ratio(ratio).cell()
}

/// The interval of the share that is lost; `None` if it is not known.
pub(super) fn interval(row: &CpuRow) -> Option<String> {
    let interval = row.figures.interval?;
    let [low, high] = [interval.low()?, interval.high()?].map(ratio);
    Some(format!("{low} to {high}"))
}
