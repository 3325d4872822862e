//! What `becalm cost` has to say: what clocks, traps, ticks, and switches between threads cost.

pub(crate) mod clock;
pub(crate) mod events;
pub(crate) mod placement;
pub(crate) mod probe;
pub(crate) mod run;
pub(crate) mod scheduler;
pub(crate) mod tick;
