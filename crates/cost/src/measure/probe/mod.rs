//! Probes of what a thread can bring about itself: [`traps`] and [`detours()`].

mod chase;
mod detours;
mod interrupt;
mod preempt;
mod swap;
mod switch;
mod trap;

pub use detours::detours;
pub use trap::traps;
