//! The timers of threads.

use core::ffi::c_int;
use core::sync::atomic::{AtomicI32, Ordering::Relaxed};

use crate::layout;
use crate::memory::Slot;
use crate::process::{calls, state};
use crate::schedule;

/// The kernel's number of the timer of each slot. Private to this process: a number written by others could be that of one of the program's own
/// timers.
static TIMERS: [AtomicI32; layout::SLOTS] = [const { AtomicI32::new(NONE) }; layout::SLOTS];
const NONE: c_int = -1;

/// The timer of a slot, if it has one.
pub fn in_slot(slot: Slot<'_>) -> Option<c_int> {
    Some(TIMERS[slot.number()].load(Relaxed)).filter(|timer| *timer != NONE)
}

/// Gives a slot the timer of this number.
pub fn keep(slot: Slot<'_>, timer: c_int) {
    TIMERS[slot.number()].store(timer, Relaxed);
}

/// Leaves a slot without a timer, if another process had one.
pub fn forget(slot: Slot<'_>) {
    keep(slot, NONE);
}

/// Creates a timer whose signals are for a slot and go to its thread. Returns its number; `None` if the kernel provides no more.
#[must_use]
pub fn create(slot: Slot<'_>, tid: c_int) -> Option<c_int> {
    calls::timer_create(state::signal(), slot.address(), tid)
}

/// Sets the timer of a slot, if it has one, for the next due detour.
pub fn set(slot: Slot<'_>) {
    if let Some(timer) = in_slot(slot) {
        calls::timer_set(timer, schedule::timer_at(slot));
    }
}

/// Deletes the timer of a slot, if it has one. Returns whether it had.
pub fn delete(slot: Slot<'_>) -> bool {
    let timer = TIMERS[slot.number()].swap(NONE, Relaxed);
    if timer != NONE {
        calls::timer_delete(timer);
    }
    timer != NONE
}
