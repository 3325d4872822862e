//! Our signal: one that the program does not use, replaced as soon as it does.
//!
//! When the program names our signal, timers switch to another one first, and the program's call then finds the signal as if it had never been used.

use core::ffi::c_int;
use core::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, Ordering::SeqCst};

use crate::abi::{SIG_BLOCK, SIG_SETMASK};
use crate::layout;
use crate::memory::{Shared, Slot};
use crate::process::{actions, calls, handler, slots, state, timer};
use crate::signals::{ALL_REALTIME, bit, candidates};

/// Signals that the program has named.
static NAMED: AtomicU64 = AtomicU64::new(0);
/// The process that this memory belongs to. The child of a vfork, which borrows it, has its own actions until it executes another program, and no
/// timers.
static OWNER: AtomicI32 = AtomicI32::new(0);
/// Held, with all signals blocked, while the signal changes.
static LOCK: AtomicBool = AtomicBool::new(false);

/// Runs something exclusively, without interruption by signals.
fn locked<T>(run: impl FnOnce() -> T) -> T {
    // A handler of the program that ran meanwhile would wait for its own thread forever.
    let before = calls::mask(SIG_BLOCK, u64::MAX);
    while LOCK.swap(true, SeqCst) {
        core::hint::spin_loop();
    }
    let result = run();
    LOCK.store(false, SeqCst);
    calls::mask(SIG_SETMASK, before);
    result
}

/// Called in a forked child, which has only the thread that forked: none there holds the lock.
pub fn follow_fork() {
    LOCK.store(false, SeqCst);
    OWNER.store(calls::pid(), SeqCst);
}

/// Takes a signal that the program does not use; returns whether there is one.
#[must_use]
pub fn choose(shared: Shared<'static>) -> bool {
    OWNER.store(calls::pid(), SeqCst);
    locked(|| take_free(shared))
}

fn take_free(shared: Shared<'static>) -> bool {
    let blocked = calls::mask(SIG_BLOCK, 0);
    let free = candidates(NAMED.load(SeqCst), blocked).find(|signal| {
        // SAFETY: the handler may run at any point of the program: see its module.
        actions::is_default(*signal) && unsafe { actions::handle(*signal, handler::on_signal) }
    });
    state::set_signal(free.unwrap_or(0));
    if free.is_none() {
        shared.count(layout::GIVEN_UP);
    }
    free.is_some()
}

/// The program names these signals: if ours is among them, gives it up.
pub fn named(signals: u64) {
    let signals = signals & ALL_REALTIME;
    let ours = state::signal();
    if signals == 0 || ours != 0 && calls::pid() != OWNER.load(SeqCst) {
        return;
    }
    NAMED.fetch_or(signals, SeqCst);
    if ours != 0 && signals & bit(ours) != 0
        && let Some(shared) = state::shared()
    {
        locked(|| give_up(shared));
    }
}

/// Switches to another signal, unless another thread has done so meanwhile.
fn give_up(shared: Shared<'static>) {
    let ours = state::signal();
    if ours == 0 || NAMED.load(SeqCst) & bit(ours) == 0 {
        return;
    }
    // No timer may send the old signal once its action is another: first delete them, ...
    for timer in slots::own(shared).filter_map(timer::in_slot) {
        calls::timer_delete(timer);
    }
    // ... then discard what they have already sent.
    actions::ignore(ours);
    actions::reset(ours);
    shared.count(layout::MOVES);
    if take_free(shared) {
        for slot in with_timer(shared) {
            if let Some(timer) = timer::create(slot, slot.get(layout::TID) as c_int) {
                timer::keep(slot, timer);
                // A handler that is running sets it again; one that runs too early does so, too.
                timer::set(slot);
            }
        }
    }
}

/// The slots of this process's threads whose noise has started.
fn with_timer(shared: Shared<'static>) -> impl Iterator<Item = Slot<'static>> {
    slots::own(shared).filter(|slot| timer::in_slot(*slot).is_some())
}
