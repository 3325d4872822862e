//! The signal: one that the program does not use, and another one as soon as it does.
//!
//! The program's calls that name signals come by here. As long as it does not name ours it sees what it would see without
//! us: the default action. When it names ours, timers go over to another signal first, and the call then finds the signal as
//! if nobody had ever used it. Blocking all signals names none of them: ours then waits like any other.

use core::ffi::{c_int, c_void};
use core::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, Ordering::Relaxed, Ordering::SeqCst};

use crate::abi::{self, SIG_DFL, SIG_IGN, SigAction, SigInfo, SigSet, TimeSpec, next};
use crate::{layout, noise, threads, words};

/// The signals that programs may use as they like: those before belong to the C library.
const REALTIME: core::ops::RangeInclusive<c_int> = 34..=64;
const ALL_REALTIME: u64 = u64::MAX << (34 - 1);

/// Our signal; zero for none.
static SIGNAL: AtomicI32 = AtomicI32::new(0);
/// Signals that the program has named.
static NAMED: AtomicU64 = AtomicU64::new(0);
/// The process that this memory is of. The child of a vfork, which borrows it, has actions of its own until it executes
/// another program, and no timers.
static OWNER: AtomicI32 = AtomicI32::new(0);
/// Held, with all signals blocked, while the signal changes.
static LOCK: AtomicBool = AtomicBool::new(false);

const fn bit(signal: c_int) -> u64 {
    1 << (signal - 1)
}

/// Our signal.
pub fn signal() -> c_int {
    SIGNAL.load(SeqCst)
}

/// Whether a signal is ours.
pub fn is_ours(signal: c_int) -> bool {
    signal != 0 && signal == SIGNAL.load(SeqCst)
}

fn locked<T>(run: impl FnOnce() -> T) -> T {
    // A handler of the program's that came meanwhile would wait for us in vain.
    let before = abi::mask(abi::SIG_BLOCK, u64::MAX);
    while LOCK.swap(true, SeqCst) {
        core::hint::spin_loop();
    }
    let result = run();
    LOCK.store(false, SeqCst);
    abi::mask(abi::SIG_SETMASK, before);
    result
}

/// In a forked child: a thread that held the lock is not in there.
pub fn follow_fork() {
    LOCK.store(false, SeqCst);
    OWNER.store(abi::pid(), SeqCst);
}

/// Takes the first free signal, the highest number first, which the kernel delivers last; false if there is none.
pub fn choose() -> bool {
    OWNER.store(abi::pid(), SeqCst);
    locked(take_free)
}

fn take_free() -> bool {
    // One that is blocked where we start would come late at best.
    let blocked = abi::mask(abi::SIG_BLOCK, 0);
    let named = NAMED.load(SeqCst);
    for accept_blocked in [false, true] {
        for signal in REALTIME.rev() {
            if named & bit(signal) != 0 || !accept_blocked && blocked & bit(signal) != 0 {
                continue;
            }
            let mut before = SigAction { handler: 0, mask: SigSet::EMPTY, flags: 0, restorer: 0 };
            if abi::sigaction(signal, core::ptr::null(), &raw mut before) != 0 || before.handler != SIG_DFL {
                continue;
            }
            let flags = abi::SA_SIGINFO | abi::SA_RESTART | abi::SA_ONSTACK;
            let handler = noise::on_signal as extern "C" fn(c_int, *const SigInfo, *mut c_void) as usize;
            let ours = SigAction { handler, mask: SigSet::FULL, flags, restorer: 0 };
            if abi::sigaction(signal, &raw const ours, core::ptr::null_mut()) == 0 {
                SIGNAL.store(signal, SeqCst);
                return true;
            }
        }
    }
    SIGNAL.store(0, SeqCst);
    if let Some(given_up) = words().get(layout::GIVEN_UP) {
        given_up.fetch_add(1, Relaxed);
    }
    false
}

fn set_action(signal: c_int, handler: usize) {
    let action = SigAction { handler, mask: SigSet::EMPTY, flags: 0, restorer: 0 };
    abi::sigaction(signal, &raw const action, core::ptr::null_mut());
}

/// The program names these signals: if ours is among them, it is given up.
fn named(signals: u64) {
    let signals = signals & ALL_REALTIME;
    let ours = signal();
    if signals == 0 || ours != 0 && abi::pid() != OWNER.load(SeqCst) {
        return;
    }
    NAMED.fetch_or(signals, SeqCst);
    if ours == 0 || signals & bit(ours) == 0 {
        return;
    }
    locked(|| {
        let ours = signal();
        if ours == 0 || NAMED.load(SeqCst) & bit(ours) == 0 {
            return;
        }
        // No timer may send the old signal once its action is another: first they go, ...
        each_slot(|slot| abi::timer_delete(slot[layout::TIMER].load(Relaxed) as c_int));
        // ... then what they have sent already, which being ignored once takes away from all threads.
        set_action(ours, SIG_IGN);
        set_action(ours, SIG_DFL);
        if let Some(moves) = words().get(layout::MOVES) {
            moves.fetch_add(1, Relaxed);
        }
        if take_free() {
            each_slot(|slot| {
                let tid = slot[layout::TID].load(Relaxed) as c_int;
                if let Some(timer) = abi::timer_create(signal(), slot.as_ptr() as usize, tid) {
                    slot[layout::TIMER].store(timer as u64, Relaxed);
                    // A handler that runs right now sets it once more; one that comes too early sets it again.
                    noise::set_timer(slot);
                }
            });
        }
    });
}

/// The slots of this process's threads whose noise has begun.
fn each_slot(run: impl Fn(noise::Slot)) {
    threads::own_slots().filter(|slot| slot[layout::TIMER].load(Relaxed) != layout::NO_TIMER).for_each(run);
}

/// Somebody else has sent our signal, whose action the program never changed: it does what it would do without us.
pub fn foreign(signal: c_int) {
    set_action(signal, SIG_DFL);
    // It is blocked while its handler runs, and comes right after.
    abi::raise(signal);
}

fn bits(set: *const SigSet) -> u64 {
    // SAFETY: the program gives null or a valid set, as for the C library's own function.
    unsafe { set.as_ref() }.map_or(0, |set| set.0[0])
}

/// The signals of a mask, unless it has all that there are.
fn bits_of_mask(how: c_int, set: *const SigSet) -> u64 {
    let bits = bits(set);
    if how == abi::SIG_UNBLOCK || bits & ALL_REALTIME == ALL_REALTIME { 0 } else { bits }
}

/// A set without our signal.
fn without_ours(set: *mut SigSet) {
    let ours = signal();
    // SAFETY: as in `bits`.
    if let Some(set) = unsafe { set.as_mut() }.filter(|_| ours != 0) {
        set.0[0] &= !bit(ours);
    }
}

/// As the C library's. Of our signal the program sees the default action, and giving it that changes nothing.
#[unsafe(no_mangle)]
unsafe extern "C" fn sigaction(signal: c_int, action: *const SigAction, before: *mut SigAction) -> c_int {
    // SAFETY: the program gives null or valid pointers.
    let handler = unsafe { action.as_ref() }.map(|action| action.handler);
    if is_ours(signal) && matches!(handler, None | Some(SIG_DFL)) {
        // SAFETY: as above.
        if let Some(before) = unsafe { before.as_mut() } {
            *before = SigAction { handler: SIG_DFL, mask: SigSet::EMPTY, flags: 0, restorer: 0 };
        }
        return 0;
    }
    if handler.is_some_and(|handler| handler != SIG_DFL) && REALTIME.contains(&signal) {
        named(bit(signal));
    }
    abi::sigaction(signal, action, before)
}

/// Functions that set a handler and give the one before.
macro_rules! handlers {
    ($($name:ident = $text:literal),*) => {$(
        /// As the C library's; see `sigaction`.
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name(signal: c_int, handler: usize) -> usize {
            if is_ours(signal) && handler == SIG_DFL {
                return SIG_DFL;
            }
            if handler != SIG_DFL && REALTIME.contains(&signal) {
                named(bit(signal));
            }
            let next = next!($text as unsafe extern "C" fn(c_int, usize) -> usize);
            // SAFETY: what the program gives is what the C library's own function gets.
            unsafe { next(signal, handler) }
        }
    )*};
}

handlers!(
    bsd_signal = c"bsd_signal", ssignal = c"ssignal", sysv_signal = c"sysv_signal",
    __sysv_signal = c"__sysv_signal", sigset = c"sigset"
);

/// Functions that do something to a signal.
macro_rules! naming {
    ($($name:ident = $text:literal ($($argument:ident: $kind:ty),*)),*) => {$(
        /// As the C library's; naming our signal gives it up.
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name(signal: c_int $(, $argument: $kind)*) -> c_int {
            if REALTIME.contains(&signal) {
                named(bit(signal));
            }
            let next = next!($text as unsafe extern "C" fn(c_int $(, $kind)*) -> c_int);
            // SAFETY: what the program gives is what the C library's own function gets.
            unsafe { next(signal $(, $argument)*) }
        }
    )*};
}

naming!(sigignore = c"sigignore" (), siginterrupt = c"siginterrupt" (flag: c_int), sighold = c"sighold" ());

/// Functions that change a thread's mask.
macro_rules! masks {
    ($($name:ident = $text:literal),*) => {$(
        /// As the C library's; blocking our signal and not all others gives it up.
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name(how: c_int, set: *const SigSet, before: *mut SigSet) -> c_int {
            named(bits_of_mask(how, set));
            let next = next!($text as unsafe extern "C" fn(c_int, *const SigSet, *mut SigSet) -> c_int);
            // SAFETY: what the program gives is what the C library's own function gets.
            unsafe { next(how, set, before) }
        }
    )*};
}

masks!(sigprocmask = c"sigprocmask", pthread_sigmask = c"pthread_sigmask");

/// Functions that take signals instead of handlers.
macro_rules! takers {
    ($($name:ident = $text:literal ($($argument:ident: $kind:ty),*)),*) => {$(
        /// As the C library's; waiting for our signal gives it up.
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name(set: *const SigSet $(, $argument: $kind)*) -> c_int {
            named(bits(set));
            let next = next!($text as unsafe extern "C" fn(*const SigSet $(, $kind)*) -> c_int);
            // SAFETY: what the program gives is what the C library's own function gets.
            crate::waits::undisturbed(|| unsafe { next(set $(, $argument)*) })
        }
    )*};
}

takers!(
    sigwait = c"sigwait" (taken: *mut c_int),
    sigwaitinfo = c"sigwaitinfo" (info: *mut SigInfo),
    sigtimedwait = c"sigtimedwait" (info: *mut SigInfo, patience: *const TimeSpec)
);

/// As the C library's; asking for our signal gives it up.
#[unsafe(no_mangle)]
unsafe extern "C" fn signalfd(fd: c_int, set: *const SigSet, flags: c_int) -> c_int {
    named(bits(set));
    let next = next!(c"signalfd" as unsafe extern "C" fn(c_int, *const SigSet, c_int) -> c_int);
    // SAFETY: what the program gives is what the C library's own function gets.
    unsafe { next(fd, set, flags) }
}

/// As the C library's, without our signal.
#[unsafe(no_mangle)]
unsafe extern "C" fn sigpending(set: *mut SigSet) -> c_int {
    let next = next!(c"sigpending" as unsafe extern "C" fn(*mut SigSet) -> c_int);
    // SAFETY: what the program gives is what the C library's own function gets.
    let result = unsafe { next(set) };
    if result == 0 {
        without_ours(set);
    }
    result
}

/// `signal` has the name of a function here, so that it stands in a module of its own.
mod named_signal {
    use super::{REALTIME, SIG_DFL, bit, c_int, is_ours, named, next};

    handlers!(signal = c"signal");
}
