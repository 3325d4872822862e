//! Costs: the samples of a probe reduced to figures, and the cost of ticks and interrupts from a recording.

mod figures;
mod interrupts;

pub use figures::{Cost, SHORTEST_INTERRUPTION_PS};
pub use interrupts::{Interruptions, TIMER, interruptions};
