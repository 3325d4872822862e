//! Threads that the program creates, and processes that it forks: each has its own noise.

use core::ffi::c_void;
use core::sync::atomic::{AtomicI32, AtomicUsize, Ordering::Relaxed};

use crate::layout;
use crate::process::{calls, guard, noise, slots, state};

/// The key for the address of a thread's slot, with which the C library reports the end of the thread; -1 for none.
static KEY: AtomicI32 = AtomicI32::new(-1);

/// The function that a new thread will run, for each slot. Private to this process: processes that have given up their rights may write the shared
/// memory, which contains only figures.
static STARTS: [Start; layout::SLOTS] = [const { Start { run: AtomicUsize::new(0), argument: AtomicUsize::new(0) } }; layout::SLOTS];

#[derive(Debug)]
struct Start {
    /// The address of the function; zero while no thread is about to start.
    run: AtomicUsize,
    argument: AtomicUsize,
}

/// A function that a thread runs.
pub type Run = unsafe extern "C" fn(*mut c_void) -> *mut c_void;

/// Follows threads and forks from now on.
pub fn follow() {
    // SAFETY: the function accepts any value.
    if let Some(key) = unsafe { calls::thread_key(end) } {
        KEY.store(key as i32, Relaxed);
    }
    calls::at_fork_in_child(begin_child);
}

/// Stores what a thread that the program is about to create will run, and takes a slot for it; `None` if it has no noise. The number is for the new
/// thread, or for [`cancel`].
#[must_use]
pub fn prepare(run: Run, argument: *mut c_void) -> Option<usize> {
    let shared = state::shared().filter(|shared| state::signal() != 0 && shared.get(layout::MAIN_ONLY) == 0)?;
    let slot = slots::take(shared)?;
    let number = slot.number();
    // A slot belongs to one thread, unless the shared memory was tampered with: then there is no noise, rather than another thread's function.
    if STARTS[number].run.compare_exchange(0, run as usize, Relaxed, Relaxed).is_err() {
        return None;
    }
    STARTS[number].argument.store(argument.expose_provenance(), Relaxed);
    noise::copy_toll(shared, slot);
    Some(number)
}

/// Gives back the slot of a thread that could not be created.
pub fn cancel(number: usize) {
    STARTS[number].run.store(0, Relaxed);
    if let Some(slot) = state::shared().and_then(|shared| shared.slot(number)) {
        slots::give_back(slot);
    }
}

/// The start function of a thread with a slot.
///
/// # Safety
/// The argument is a number from [`prepare`], for this thread and no other; the prepared function may be run.
pub unsafe extern "C" fn begin(number: *mut c_void) -> *mut c_void {
    let start = &STARTS[number.addr()];
    let (argument, run) = (start.argument.load(Relaxed), start.run.swap(0, Relaxed));
    if let Some((shared, slot)) = state::shared().and_then(|shared| Some((shared, shared.slot(number.addr())?))) {
        slot.set(layout::TID, calls::tid() as u64);
        let key = KEY.load(Relaxed);
        // Without a key, the end of the thread would not be reported.
        if key >= 0 && calls::set_thread_value(key as u32, slot.address()) {
            noise::start(shared, slot);
        }
    }
    // SAFETY: the number is that of a function of this type, written in `prepare` by the thread that created this one; it is not written again before
    // it is taken here, which is why it is not zero.
    let run = unsafe { core::mem::transmute::<usize, Run>(run) };
    // SAFETY: function and argument are those that the program gave to pthread_create, to be run once, in this thread.
    unsafe { run(core::ptr::with_exposed_provenance_mut(argument)) }
}

/// Called at the end of a thread with a slot's address. Safe with any value: it ignores all others.
unsafe extern "C" fn end(slot: *mut c_void) {
    if let Some(slot) = state::shared().and_then(|shared| shared.slot_at(slot.addr())) {
        slots::give_back(slot);
    }
}

/// Called in a forked child, which has none of its parent's timers.
extern "C" fn begin_child() {
    guard::follow_fork();
    // Threads that others were about to create start only in the parent.
    STARTS.iter().filter(|start| start.run.load(Relaxed) != 0).for_each(|start| start.run.store(0, Relaxed));
    let Some(shared) = state::shared().filter(|_| state::signal() != 0) else { return };
    shared.count(layout::PROCESSES);
    if let Some(slot) = slots::take(shared) {
        noise::copy_toll(shared, slot);
        noise::start(shared, slot);
    }
}
