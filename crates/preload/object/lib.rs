//! Loaded into a program before its own libraries (`LD_PRELOAD`): noise in its threads by a timer of each, whose signal's
//! handler burns the time.
//!
//! A program is to notice nothing but the time that it loses:
//! - [`guard`]: the signal is one that the program does not use; where it begins to, another is taken, or none.
//! - [`waits`]: calls that a signal's handler ends for good are not interrupted.
//! - [`threads`]: threads and forked processes get timers of their own.
//! - [`noise`]: the handler, which calls nothing but the clock and the timer.
//! - [`abi`]: what the C library and the kernel look like.
//!
//! There is no standard library of Rust's and no memory is allocated. Without the environment variable
//! [`layout::VARIABLE`] nothing happens at all.

#![no_std]

mod abi;
mod guard;
#[path = "../src/layout.rs"]
#[allow(dead_code)]
mod layout;
mod noise;
mod threads;
mod waits;

use core::sync::atomic::{AtomicPtr, AtomicU64, AtomicUsize, Ordering::Relaxed};

/// The shared words; null while not attached.
static WORDS: AtomicPtr<AtomicU64> = AtomicPtr::new(core::ptr::null_mut());
/// How many of them.
static COUNT: AtomicUsize = AtomicUsize::new(0);

/// The shared words, none of them while not attached.
fn words() -> &'static [AtomicU64] {
    let words = WORDS.load(Relaxed);
    if words.is_null() {
        return &[];
    }
    // SAFETY: the mapping is this long, is never taken back, and is only accessed atomically.
    unsafe { core::slice::from_raw_parts(words, COUNT.load(Relaxed)) }
}

/// Called by the dynamic linker before the program's own code.
extern "C" fn attach() {
    // SAFETY: the name ends with a zero.
    let path = unsafe { abi::getenv(c"BECALM_INJECT".as_ptr()) };
    if path.is_null() {
        return;
    }
    // SAFETY: the path is a string of the environment.
    let Some((words, count)) = (unsafe { abi::map_shared(path) }) else { return };
    // SAFETY: as in `words`.
    let mapped = unsafe { core::slice::from_raw_parts(words.cast_const(), count) };
    let expected = |at: usize, value: u64| mapped.get(at).is_some_and(|word| word.load(Relaxed) == value);
    if !expected(layout::KIND, layout::MAGIC) || !expected(layout::WORDS, count as u64) {
        return;
    }
    COUNT.store(count, Relaxed);
    WORDS.store(words, Relaxed);
    let order = mapped[layout::PROCESSES].fetch_add(1, Relaxed);
    threads::end_former_program();
    threads::follow();
    if !guard::choose() {
        return;
    }
    let main = threads::take_slot();
    if let Some(slot) = main {
        noise::measure_toll(slot);
        if order == 0 && !noise::is_possible(slot) {
            // The program has not begun: its maker says why, and it never does.
            abi::exit_now(2);
        }
        noise::arm(slot);
    }
}

#[used]
#[unsafe(link_section = ".init_array")]
static ATTACH: extern "C" fn() = attach;

#[used]
#[unsafe(link_section = ".fini_array")]
static DETACH: extern "C" fn() = threads::end_program;

#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    abi::exit_now(127)
}
