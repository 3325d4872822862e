//! `pthread_create`, which gives each new thread of the program its own noise.

use core::ffi::{c_int, c_void};

use crate::process::next::next;
use crate::process::threads::{self, Run, begin, prepare};

/// Gives the new thread its own noise.
///
/// # Safety
/// As for the C library's function.
#[cfg_attr(preloaded, unsafe(no_mangle))]
pub unsafe extern "C" fn pthread_create(
    thread: *mut c_void,
    attributes: *const c_void,
    run: Run,
    argument: *mut c_void,
) -> c_int {
    type Create = unsafe extern "C" fn(*mut c_void, *const c_void, Run, *mut c_void) -> c_int;
    let next = next!(pthread_create as Create);
    let Some(number) = prepare(run, argument) else {
        // SAFETY: the C library's own function gets what the program gave.
        return unsafe { next(thread, attributes, run, argument) };
    };
    // SAFETY: thread and attributes are what the program gave. The start function gets the number that was just prepared, which is used nowhere else.
    let result = unsafe { next(thread, attributes, begin, core::ptr::without_provenance_mut(number)) };
    if result != 0 {
        threads::cancel(number);
    }
    result
}
