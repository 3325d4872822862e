//! The cost of timer interrupts on this machine: the same work at several interrupt rates, without another kernel.
//!
//! A cpu-clock perf event raises the interrupt rate of one CPU. A [`campaign`] times the sorts of Tsafrir 2007 (section 2) under it. The
//! analysis is elsewhere.

pub mod campaign;
mod copies;
mod error;
pub mod events;
mod order;
mod timer_count;
mod timer_trace;
mod trap;

pub(super) use copies::no_thread;
pub use copies::{SortJob, time_work};
pub use error::TickError;
pub use order::shuffled;
pub use timer_count::timer_interrupts;
pub use timer_trace::record_timer;
pub use trap::trap;
