//! Costs: the samples of a probe reduced to figures, and the cost of ticks and interrupts from a recording.

mod clock;
mod interrupts;
mod placement;
mod probe;
mod recording;
mod scheduler;
pub mod tick;

pub use clock::ClockCost;
pub use placement::{PlacedCost, PlacementCost, QuietAndRaised};
pub use probe::{MeasuredCost, ProbeCost, SHORTEST_INTERRUPTION_PS, SampleFigures};
pub use recording::{not_recorded, recorded};
pub use scheduler::SchedulerCost;
