//! Probes that a thread can cause itself: [`traps`] and [`detours()`].

mod chase;
mod detours;
mod interrupt;
mod preempt;
mod swap;
mod switch;
mod trap;

pub use detours::detours;
pub use trap::traps;
