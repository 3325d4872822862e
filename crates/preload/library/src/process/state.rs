//! The library's knowledge of the process that it is in. Signal handlers and functions that the program calls at any time need it, and get no
//! argument with it: so it is static, and atomic.

use core::ffi::c_int;
use core::sync::atomic::{AtomicI32, AtomicPtr, AtomicU64, AtomicUsize, Ordering::Relaxed, Ordering::SeqCst};

use crate::memory::Shared;

/// The shared words; null while there are none.
static WORDS: AtomicPtr<AtomicU64> = AtomicPtr::new(core::ptr::null_mut());
/// The number of shared words.
static COUNT: AtomicUsize = AtomicUsize::new(0);
/// Our signal; zero for none.
static SIGNAL: AtomicI32 = AtomicI32::new(0);

/// Stores the memory prepared by the maker of the noise; `None` if it is not such memory. Called once, before the program has threads and before any
/// of our signals can arrive.
pub fn keep(words: &'static [AtomicU64]) -> Option<Shared<'static>> {
    let shared = Shared::new(words)?;
    COUNT.store(words.len(), Relaxed);
    WORDS.store(words.as_ptr().cast_mut(), Relaxed);
    Some(shared)
}

/// The shared memory; `None` while there is none.
pub fn shared() -> Option<Shared<'static>> {
    let words = WORDS.load(Relaxed);
    if words.is_null() {
        return None;
    }
    // SAFETY: pointer and count are those of one slice with a static lifetime, and never change once the pointer is set: they are stored in `keep`,
    // before there is a second thread or a signal that could see one of them without the other.
    Shared::new(unsafe { core::slice::from_raw_parts(words, COUNT.load(Relaxed)) })
}

/// Our signal; zero while we have none.
pub fn signal() -> c_int {
    SIGNAL.load(SeqCst)
}

/// Sets our signal; zero for none.
pub fn set_signal(signal: c_int) {
    SIGNAL.store(signal, SeqCst);
}
