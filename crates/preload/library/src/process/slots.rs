//! Slots of threads: taken when a thread starts and given back when it ends.

use core::ffi::c_int;

use crate::abi::CLOCK_MONOTONIC;
use crate::layout;
use crate::memory::{Shared, Slot};
use crate::process::{calls, timer};

/// A slot for the calling thread or one that it is about to create; `None` if all are taken.
#[must_use]
pub fn take(shared: Shared<'static>) -> Option<Slot<'static>> {
    let pid = calls::pid();
    for also_of_the_dead in [false, true] {
        for slot in shared.slots() {
            let (state, owner) = (slot.get(layout::STATE), slot.get(layout::PID));
            let mine = if state != layout::SLOT_TAKEN {
                slot.replace(layout::STATE, state, layout::SLOT_TAKEN)
            } else {
                also_of_the_dead
                    && !calls::is_alive(owner as c_int)
                    && slot.replace(layout::PID, owner, pid as u64)
            };
            if mine {
                clear(slot, pid);
                return Some(slot);
            }
        }
    }
    shared.count(layout::UNATTENDED);
    None
}

/// Clears a slot, which other threads may have had before, for a new thread.
fn clear(slot: Slot<'_>, pid: c_int) {
    let observed = slot.get(layout::SEEN_AT).saturating_sub(slot.get(layout::BEGAN_AT));
    slot.add(layout::OBSERVED_BEFORE, observed);
    slot.set(layout::BEGAN_AT, 0);
    slot.set(layout::SEEN_AT, 0);
    timer::forget(slot);
    slot.set(layout::PID, pid as u64);
    slot.set(layout::TID, calls::tid() as u64);
}

/// Ends the noise of a slot; its figures stay.
pub fn give_back(slot: Slot<'_>) {
    if timer::delete(slot) {
        slot.set(layout::SEEN_AT, calls::clock_ns(CLOCK_MONOTONIC));
    }
    slot.set(layout::STATE, layout::SLOT_ENDED);
}

/// The slots of this process's threads.
pub fn own(shared: Shared<'static>) -> impl Iterator<Item = Slot<'static>> {
    let pid = calls::pid() as u64;
    shared
        .slots()
        .filter(move |slot| slot.get(layout::STATE) == layout::SLOT_TAKEN && slot.get(layout::PID) == pid)
}

/// Ends the slots that the program before an `exec` has left in this process. The kernel has deleted their timers.
pub fn end_former_program(shared: Shared<'static>) {
    for slot in own(shared) {
        slot.set(layout::STATE, layout::SLOT_ENDED);
    }
}
