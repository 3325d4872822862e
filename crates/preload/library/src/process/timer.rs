//! The timers of threads.

use core::ffi::c_int;

use crate::layout;
use crate::memory::Slot;
use crate::process::{calls, state};
use crate::schedule;

/// Makes a timer whose signals are for a slot and come to its thread. Returns its number; `None` if the kernel gives no more.
#[must_use]
pub fn create(slot: Slot<'_>, tid: c_int) -> Option<c_int> {
    calls::timer_create(state::signal(), slot.address(), tid)
}

/// Sets the timer of a slot for the detour that is due next.
pub fn set(slot: Slot<'_>) {
    calls::timer_set(slot.get(layout::TIMER) as c_int, schedule::timer_at(slot));
}

/// Takes the timer of a slot away, if it has one. Returns whether it had.
pub fn delete(slot: Slot<'_>) -> bool {
    let timer = slot.swap(layout::TIMER, layout::NO_TIMER);
    if timer != layout::NO_TIMER {
        calls::timer_delete(timer as c_int);
    }
    timer != layout::NO_TIMER
}
