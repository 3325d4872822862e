//! The cost of an interrupt by the place of the work, relative to the interrupted CPU.

use becalm_model::event_count::EventCount;
use becalm_units::CpuId;
use serde::{Deserialize, Serialize};

use super::check::{check_count, check_time};

/// The cost of an interrupt by placement.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct PlacementCosts {
    /// Interrupts a second that were added to those of the measured CPU.
    pub added_hz: u32,
    /// Planned duration of one measurement.
    pub cell_ns: i64,
    /// Planned number of measurements of everything.
    pub rounds: u32,
    /// The seed of the random order of the measurements.
    pub seed: u64,
    /// The kinds of work, by their names as in `becalm work`.
    pub bodies: Vec<String>,
    /// The places where the work ran.
    pub places: Vec<PlaceDoc>,
    /// Places that do not exist, with the reasons.
    pub missing: Vec<String>,
    /// Events of the processor that are not counted, with a line for each reason.
    #[serde(default)]
    pub not_counted: Vec<String>,
    /// Measurements in their order.
    pub results: Vec<PlacementDoc>,
}

/// The place of work, as seen from the interrupts.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum WorkPlace {
    /// It runs on the interrupted hardware thread.
    Same,
    /// It runs on another hardware thread of the same core.
    Sibling,
    /// It runs on another core.
    Other,
    /// It starts on the interrupted hardware thread and is bound to no CPU: the scheduler decides.
    Unbound,
}

impl WorkPlace {
    /// Its name in documents and tables.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Same => "same",
            Self::Sibling => "sibling",
            Self::Other => "other",
            Self::Unbound => "unbound",
        }
    }
}

/// A place and its CPU.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct PlaceDoc {
    /// The place, as seen from the interrupts.
    pub place: WorkPlace,
    /// The CPU at that place; for unbound work, the one where it starts.
    pub cpu: CpuId,
}

/// The same work without and with added interrupts.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct PlacementDoc {
    /// The place where the work ran.
    pub place: WorkPlace,
    /// The kind of work, by its name.
    pub body: String,
    /// The time without added interrupts.
    pub quiet: TimedDoc,
    /// The time with added interrupts.
    pub raised: TimedDoc,
    /// Counts of the processor in further work, without and with them; often nothing on a virtual machine.
    #[serde(default)]
    pub counted: Option<CountedPairDoc>,
    /// Places of unbound work while there were added interrupts; `None` of bound work.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub roamed: Option<RoamedDoc>,
}

/// The CPUs of unbound work before each of its pieces.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct RoamedDoc {
    /// The pieces, each of about a millisecond.
    pub pieces: u64,
    /// Pieces that started on the interrupted CPU.
    pub there: u64,
    /// Pieces that started on another CPU than the one before.
    pub moves: u64,
}

/// The same amount of work, counted without and with added interrupts.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct CountedPairDoc {
    /// The counts without added interrupts.
    pub quiet: CountedDoc,
    /// The counts with added interrupts.
    pub raised: CountedDoc,
}

/// Work with counts of the processor.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct CountedDoc {
    /// Timer interrupts that the measured CPU took meanwhile.
    pub interrupts: u64,
    /// Counts in the work (user) and in the kernel meanwhile.
    pub counts: Vec<EventCount>,
}

/// The time that work took, and the interrupts meanwhile.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct TimedDoc {
    /// Its time; above 0.
    pub elapsed_ns: i64,
    /// Timer interrupts that the measured CPU took in `window_ns`.
    pub interrupts: u64,
    /// From one reading of the count of interrupts to the other; above 0.
    pub window_ns: i64,
}

impl TimedDoc {
    /// Timer interrupts per second.
    #[must_use]
    pub fn rate_hz(self) -> f64 {
        self.interrupts as f64 * 1e9 / self.window_ns as f64
    }
}

impl PlacementDoc {
    pub(super) fn check(&self) -> Result<(), String> {
        for timed in [self.quiet, self.raised] {
            check_time("elapsed_ns", timed.elapsed_ns, 1)?;
            check_time("window_ns", timed.window_ns, 1)?;
        }
        if let Some(RoamedDoc { pieces, there, moves }) = self.roamed
            && (there > pieces || moves > pieces)
        {
            return Err(format!(
                "of {pieces} pieces, {there} started on the interrupted CPU and {moves} on another one"
            ));
        }
        check_count("pieces", self.roamed.map_or(0, |roamed| roamed.pieces))?;
        let mut counts = self.counted.iter().flat_map(|pair| pair.quiet.counts.iter().chain(&pair.raised.counts));
        counts.try_for_each(EventCount::check)
    }
}
