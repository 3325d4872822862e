//! Ticks and thread switches by the number of runnable threads.

use becalm_model::event_count::EventCount;
use becalm_model::node::Warning;
use serde::{Deserialize, Serialize};

use super::check::check_time;

/// Ticks and switches by the number of runnable threads.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct SchedulerCosts {
    /// Planned duration of each of the two measurements of a number.
    pub window_ns: i64,
    /// The numbers of runnable processes or threads that were asked for, in rising order.
    pub runnable: Vec<u32>,
    /// True if they were processes, so the kernel also switched address spaces; threads of one process otherwise, also in older
    /// recordings.
    #[serde(default)]
    pub processes: bool,
    /// Reason if the kernel's trace was not available.
    pub no_trace: Option<String>,
    /// Events of the processor that are not counted, with a line for each reason.
    #[serde(default)]
    pub not_counted: Vec<String>,
    /// Limits of the numbers for the reader.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<Warning>,
    /// One a number that was measured.
    pub rows: Vec<SchedulerDoc>,
}

/// A measurement with a number of runnable threads.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct SchedulerDoc {
    /// Threads that never sleep, all on the one CPU.
    pub runnable: u32,
    /// The kernel's record of the ticks while they only counted; `None` where there was no trace.
    pub ticks: Option<TicksDoc>,
    /// Calls to give way, of all threads.
    pub yields: u64,
    /// Switches away from a thread meanwhile.
    pub switches: u64,
    /// The time of their calls of `sched_yield`, in nanoseconds.
    pub elapsed_ns: i64,
    /// Counts of the processor in all threads while they gave way once more; often nothing on a virtual machine.
    #[serde(default)]
    pub counts: Vec<EventCount>,
    /// Their calls to give way meanwhile.
    #[serde(default)]
    pub counted_yields: u64,
}

/// The kernel's record of a CPU's ticks.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct TicksDoc {
    /// Ticks from entry to exit.
    pub interrupts: u64,
    /// The time of all of them together, in nanoseconds.
    pub handler_ns: i64,
    /// The time of the longest, in nanoseconds.
    pub handler_max_ns: i64,
    /// Switches from one thread to another.
    pub switches: u64,
    /// The time that was recorded, in nanoseconds.
    pub window_ns: i64,
    /// Events that the kernel lost.
    pub lost_events: u64,
}

impl SchedulerDoc {
    pub(super) fn check(&self) -> Result<(), String> {
        if self.runnable == 0 {
            return Err("a row has no runnable thread".to_owned());
        }
        check_time("elapsed_ns", self.elapsed_ns, 0)?;
        self.counts.iter().try_for_each(EventCount::check)?;
        let Some(ticks) = self.ticks else { return Ok(()) };
        check_time("handler_ns", ticks.handler_ns, 0)?;
        check_time("handler_max_ns", ticks.handler_max_ns, 0)?;
        check_time("window_ns", ticks.window_ns, 0)
    }
}
