//! Ways to read the time, with the cost of a reading.

use super::MeasuredCost;
use crate::documents::{BY_SYSCALL, ClockCosts, ClockWayDoc, CostRun};

/// A way to read the time, with its figures.
#[derive(Clone, PartialEq, Debug)]
pub struct ClockCost {
    /// The way: its name, its resolution, its path.
    pub way: ClockWayDoc,
    /// The cost of a reading.
    pub measured: Option<MeasuredCost>,
    /// The cost of a reading by a raw system call; `None` if there is no such call.
    pub by_syscall: Option<MeasuredCost>,
}

impl ClockCost {
    /// The ways of a stored measurement, in their order.
    pub fn all(run: &CostRun, costs: &ClockCosts) -> Vec<Self> {
        let row = |way: &ClockWayDoc| {
            let by_syscall = way.by_syscall.as_ref();
            Self {
                way: way.clone(),
                measured: MeasuredCost::new(&way.series, run.rounds(&way.name)),
                by_syscall: by_syscall
                    .and_then(|series| MeasuredCost::new(series, run.rounds(&format!("{}{BY_SYSCALL}", way.name)))),
            }
        };
        costs.clocks.iter().map(row).collect()
    }
}
