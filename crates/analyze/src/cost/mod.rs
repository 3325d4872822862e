//! Costs: the samples of a probe reduced to figures, and the cost of ticks and interrupts from a recording.

mod figures;
mod interrupts;
mod scheduler;

pub use figures::{Cost, MeasuredCost, SHORTEST_INTERRUPTION_PS};
pub use interrupts::{Interruptions, TIMER, interruptions};
pub use scheduler::SchedulerCost;
