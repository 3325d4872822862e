//! Threads that the program makes, and processes that it forks: each has noise of its own.

use core::ffi::c_void;
use core::sync::atomic::{AtomicI32, Ordering::Relaxed};

use crate::layout;
use crate::memory::Slot;
use crate::process::{calls, guard, noise, slots, state};

/// The key whose value is the address of a thread's slot, so that the C library says when the thread ends; -1 for none.
static KEY: AtomicI32 = AtomicI32::new(-1);

/// A function that a thread runs.
pub type Run = unsafe extern "C" fn(*mut c_void) -> *mut c_void;

/// Follows threads and forks from now on.
pub fn follow() {
    // SAFETY: the function takes any value.
    if let Some(key) = unsafe { calls::thread_key(end) } {
        KEY.store(key as i32, Relaxed);
    }
    calls::at_fork_in_child(begin_child);
}

/// A slot for a thread that the program is about to make, with what the thread is to run; `None` if it has no noise.
#[must_use]
pub fn prepare(run: Run, argument: *mut c_void) -> Option<Slot<'static>> {
    let shared = state::shared().filter(|shared| state::signal() != 0 && shared.get(layout::MAIN_ONLY) == 0)?;
    let slot = slots::take(shared)?;
    noise::copy_toll(shared, slot);
    slot.set(layout::RUN, run as usize as u64);
    slot.set(layout::ARGUMENT, argument.expose_provenance() as u64);
    Some(slot)
}

/// What a thread with a slot runs first.
///
/// # Safety
/// The argument is the address of a slot that [`prepare`] gave, for this thread and no other; what was prepared may be run.
pub unsafe extern "C" fn begin(slot: *mut c_void) -> *mut c_void {
    let found = state::shared().and_then(|shared| Some((shared, shared.slot_at(slot.addr())?)));
    // It was one when the thread was made, and memory and slots stay.
    let Some((shared, slot)) = found else { calls::exit_now(127) };
    slot.set(layout::TID, calls::tid() as u64);
    let (run, argument) = (slot.get(layout::RUN) as usize, slot.get(layout::ARGUMENT) as usize);
    let key = KEY.load(Relaxed);
    // Without a key nobody would say when the thread ends.
    if key >= 0 && calls::set_thread_value(key as u32, slot.address()) {
        noise::start(shared, slot);
    }
    // SAFETY: the number is that of a function of this type, written in `prepare` by the thread that made this one; only
    // those two threads write to the slot.
    let run = unsafe { core::mem::transmute::<usize, Run>(run) };
    // SAFETY: function and argument are those that the program gave to pthread_create, to be run once, in this thread.
    unsafe { run(core::ptr::with_exposed_provenance_mut(argument)) }
}

/// Called at the end of a thread with a slot's address. Safe with any value: one that is no slot's address changes nothing.
unsafe extern "C" fn end(slot: *mut c_void) {
    if let Some(slot) = state::shared().and_then(|shared| shared.slot_at(slot.addr())) {
        slots::give_back(slot);
    }
}

/// Called in a forked child, which has none of its parent's timers.
extern "C" fn begin_child() {
    guard::follow_fork();
    let Some(shared) = state::shared().filter(|_| state::signal() != 0) else { return };
    shared.count(layout::PROCESSES);
    if let Some(slot) = slots::take(shared) {
        noise::copy_toll(shared, slot);
        noise::start(shared, slot);
    }
}
