//! The library's actions in the process that it is loaded into.
//!
//! - [`calls`], [`next`], [`actions`]: calls into the kernel and the C library.
//! - [`state`]: the library's knowledge of the process.
//! - [`handler`], [`timer`], [`noise`]: how detours are made.
//! - [`slots`]: which thread has which words of the shared memory.
//! - [`guard`]: our signal, and how it is given up.
//! - [`threads`]: threads and forked processes, which have their own noise.

pub mod actions;
pub mod calls;
pub mod guard;
pub mod handler;
pub mod next;
pub mod noise;
pub mod slots;
pub mod state;
pub mod threads;
pub mod timer;

use crate::{layout, preloads, schedule};
use calls::Unfit;

/// Called before the program's own code: starts the noise of the first thread, and of all later ones.
///
/// Without the environment variable [`layout::VARIABLE`] there is no noise. If the noise cannot be made, the first process ends before its program
/// starts, and the maker of the noise reports the reason.
pub extern "C" fn attach() {
    next::find_all();
    // SAFETY: the program and its threads have not started, so nothing changes the environment.
    let Some(path) = (unsafe { calls::environment(layout::VARIABLE) }) else { return };
    let words = match calls::map_shared(path) {
        Ok(words) => words,
        Err(Unfit::Abandoned) => return leave_environment(),
        Err(Unfit::Refused) => return,
    };
    let Some(shared) = state::keep(words) else { return };
    let order = shared.count(layout::PROCESSES);
    slots::end_former_program(shared);
    threads::follow();
    if !guard::choose(shared) {
        return;
    }
    if let Some(slot) = slots::take(shared) {
        noise::measure_toll(slot);
        if order == 0 && !schedule::is_possible(shared, slot) {
            calls::exit_now(2);
        }
        noise::start(shared, slot);
    }
}

/// Removes this library, whose noise is over, from the environment of programs that the program starts.
fn leave_environment() {
    // SAFETY: the program and its threads have not started, so nothing else uses the environment; the value read from it above is no longer used.
    unsafe {
        calls::shorten_environment(c"LD_PRELOAD", preloads::without_this);
        calls::shorten_environment(layout::VARIABLE, |_| 0);
    }
}

/// Called when the program ends: ends the noise of all its threads.
pub extern "C" fn detach() {
    if let Some(shared) = state::shared() {
        slots::own(shared).for_each(slots::give_back);
    }
}
