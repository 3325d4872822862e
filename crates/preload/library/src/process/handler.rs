//! The handler of our signal.
//!
//! It interrupts the program anywhere: in `malloc`, in the dynamic linker, in a handler of the program. So it only reads the clock, reads and writes
//! atomic words, and makes system calls; it takes no lock, allocates nothing, and preserves `errno`. It runs with all signals blocked, because a
//! thread without a CPU takes none either, and so never interrupts itself.

use core::ffi::{c_int, c_void};

use crate::abi::{CLOCK_MONOTONIC, SI_TIMER, SigInfo};
use crate::memory::{Shared, Slot};
use crate::process::{actions, calls, state, timer};
use crate::schedule::{self, Machine};

struct Here;

impl Machine for Here {
    #[inline]
    fn now(&mut self) -> u64 {
        calls::clock_ns(CLOCK_MONOTONIC)
    }

    fn is_alive(&mut self, pid: u64) -> bool {
        calls::is_alive(pid as c_int)
    }
}

/// The handler.
///
/// # Safety
/// The kernel calls it, for a signal with `SA_SIGINFO`.
pub unsafe extern "C" fn on_signal(signal: c_int, info: *const SigInfo, _: *mut c_void) {
    let errno = calls::errno();
    // SAFETY: the kernel passes a valid one to every handler with SA_SIGINFO, on the stack of the interrupted thread, which runs nothing else before
    // the handler returns.
    match slot_of_timer(unsafe { &*info }) {
        Some((shared, slot)) => {
            if schedule::on_signal(shared, slot, &mut Here) {
                timer::set(slot);
            }
        }
        None => do_without_us(signal),
    }
    calls::set_errno(errno);
}

/// The slot that a signal is for, if one of our timers sent it.
fn slot_of_timer(info: &SigInfo) -> Option<(Shared<'static>, Slot<'static>)> {
    let shared = state::shared()?;
    if info.code == SI_TIMER { shared.slot_at(info.value).map(|slot| (shared, slot)) } else { None }
}

/// Our signal was sent from elsewhere, and the program never changed its action: the default action applies.
fn do_without_us(signal: c_int) {
    actions::reset(signal);
    // It is blocked while its handler runs, and arrives right after.
    calls::raise(signal);
}
