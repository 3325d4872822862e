//! Slots of threads: the first one's, those of threads that the program makes, and that of a forked process.

use core::ffi::{c_int, c_void};
use core::sync::atomic::{AtomicI32, Ordering::Relaxed};

use crate::abi::{self, CLOCK_MONOTONIC, next};
use crate::noise::{self, Slot};
use crate::{guard, layout, words};

/// The key whose value is a thread's slot, so that the C library says when the thread ends; -1 for none.
static KEY: AtomicI32 = AtomicI32::new(-1);

/// Follows threads and forks from now on.
pub fn follow() {
    let mut key = 0;
    // SAFETY: the key is written; the functions live as long as this library, which is never unloaded.
    unsafe {
        if abi::pthread_key_create(&raw mut key, end_thread) == 0 {
            KEY.store(key as i32, Relaxed);
        }
        abi::__register_atfork(None, None, Some(begin_child), core::ptr::null());
    }
}

/// A slot for a thread that is to be the calling one or made by it.
pub fn take_slot() -> Option<Slot> {
    let pid = abi::pid();
    for also_of_the_dead in [false, true] {
        for slot in (0..layout::SLOTS).map_while(noise::slot) {
            let (state, owner) = (slot[layout::STATE].load(Relaxed), slot[layout::PID].load(Relaxed));
            let mine = if state != layout::SLOT_TAKEN {
                slot[layout::STATE].compare_exchange(state, layout::SLOT_TAKEN, Relaxed, Relaxed).is_ok()
            } else {
                also_of_the_dead
                    && !abi::is_alive(owner as c_int)
                    && slot[layout::PID].compare_exchange(owner, pid as u64, Relaxed, Relaxed).is_ok()
            };
            if mine {
                let observed = slot[layout::SEEN_AT].load(Relaxed) - slot[layout::BEGAN_AT].load(Relaxed);
                slot[layout::OBSERVED_BEFORE].fetch_add(observed, Relaxed);
                slot[layout::BEGAN_AT].store(0, Relaxed);
                slot[layout::SEEN_AT].store(0, Relaxed);
                slot[layout::TIMER].store(layout::NO_TIMER, Relaxed);
                slot[layout::PID].store(pid as u64, Relaxed);
                slot[layout::TID].store(abi::tid() as u64, Relaxed);
                return Some(slot);
            }
        }
    }
    if let Some(unattended) = words().get(layout::UNATTENDED) {
        unattended.fetch_add(1, Relaxed);
    }
    None
}

/// Ends the noise of a slot; its figures stay.
fn give_back(slot: Slot) {
    let timer = slot[layout::TIMER].swap(layout::NO_TIMER, Relaxed);
    if timer != layout::NO_TIMER {
        abi::timer_delete(timer as c_int);
        slot[layout::SEEN_AT].store(abi::clock_ns(CLOCK_MONOTONIC), Relaxed);
    }
    slot[layout::STATE].store(layout::SLOT_ENDED, Relaxed);
}

/// Slots of this process, which is the calling one.
pub fn own_slots() -> impl Iterator<Item = Slot> {
    let pid = abi::pid() as u64;
    (0..layout::SLOTS).map_while(noise::slot).filter(move |slot| {
        slot[layout::STATE].load(Relaxed) == layout::SLOT_TAKEN && slot[layout::PID].load(Relaxed) == pid
    })
}

/// The program that this process ran before an exec has left slots, whose timers the kernel has taken away.
pub fn end_former_program() {
    for slot in own_slots() {
        slot[layout::TIMER].store(layout::NO_TIMER, Relaxed);
        slot[layout::STATE].store(layout::SLOT_ENDED, Relaxed);
    }
}

/// Called by the dynamic linker when the program is over.
pub extern "C" fn end_program() {
    own_slots().for_each(give_back);
}

extern "C" fn end_thread(slot: *mut c_void) {
    if let Some(slot) = noise::slot_at(slot as usize) {
        give_back(slot);
    }
}

/// In a forked child, which has none of its parent's timers.
extern "C" fn begin_child() {
    guard::follow_fork();
    if guard::signal() == 0 {
        return;
    }
    words()[layout::PROCESSES].fetch_add(1, Relaxed);
    if let Some(slot) = take_slot() {
        copy_toll(slot);
        noise::arm(slot);
    }
}

/// The cost of a signal as the first slot of all has it: measuring it would hold up every thread.
fn copy_toll(slot: Slot) {
    if let Some(first) = noise::slot(0) {
        for word in [layout::LAG, layout::ENTRY, layout::EXIT] {
            slot[word].store(first[word].load(Relaxed), Relaxed);
        }
    }
}

type Run = unsafe extern "C" fn(*mut c_void) -> *mut c_void;

/// What a new thread runs first.
unsafe extern "C" fn begin_thread(slot: *mut c_void) -> *mut c_void {
    // It was one when the thread was made, and nobody takes it away.
    let Some(slot) = noise::slot_at(slot as usize) else { abi::exit_now(127) };
    slot[layout::TID].store(abi::tid() as u64, Relaxed);
    let (run, argument) = (slot[layout::RUN].load(Relaxed) as usize, slot[layout::ARGUMENT].load(Relaxed) as usize);
    let key = KEY.load(Relaxed);
    // SAFETY: the key was made.
    if key >= 0 && unsafe { abi::pthread_setspecific(key as u32, slot.as_ptr().cast()) } == 0 {
        noise::arm(slot);
    }
    // SAFETY: these are what the program gave to pthread_create.
    unsafe { core::mem::transmute::<usize, Run>(run)(argument as *mut c_void) }
}

/// As the C library's; the new thread has noise of its own.
#[unsafe(no_mangle)]
unsafe extern "C" fn pthread_create(
    thread: *mut c_void,
    attributes: *const c_void,
    run: Run,
    argument: *mut c_void,
) -> c_int {
    type Create = unsafe extern "C" fn(*mut c_void, *const c_void, Run, *mut c_void) -> c_int;
    let next = next!(c"pthread_create" as Create);
    let noisy = guard::signal() != 0 && words()[layout::MAIN_ONLY].load(Relaxed) == 0;
    let Some(slot) = noisy.then(take_slot).flatten() else {
        // SAFETY: what the program gives is what the C library's own function gets.
        return unsafe { next(thread, attributes, run, argument) };
    };
    copy_toll(slot);
    slot[layout::RUN].store(run as usize as u64, Relaxed);
    slot[layout::ARGUMENT].store(argument as usize as u64, Relaxed);
    // SAFETY: as above; the slot outlives the thread.
    let result = unsafe { next(thread, attributes, begin_thread, slot.as_ptr().cast_mut().cast()) };
    if result != 0 {
        give_back(slot);
    }
    result
}
