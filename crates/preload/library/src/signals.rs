//! Which signal the library takes, and which calls of the program make the library give it up.
//!
//! As long as the program does not name our signal, it sees what it would see without us: the default action. Blocking or awaiting all signals at
//! once names none of them.

use core::ffi::c_int;
use core::ops::RangeInclusive;

/// The signals for free use by programs: the C library reserves the real-time signals before them.
pub const REALTIME: RangeInclusive<c_int> = 34..=64;

/// A signal's bit in a set.
pub const fn bit(signal: c_int) -> u64 {
    1 << (signal - 1)
}

/// The set of all signals of [`REALTIME`].
pub const ALL_REALTIME: u64 = u64::MAX << 33;

/// The signals that may be taken, in the order to try them: the highest number first, because the kernel delivers it last; none that the program has
/// named; blocked ones last, because they would arrive late at best.
pub fn candidates(named: u64, blocked: u64) -> impl Iterator<Item = c_int> {
    let free = move |signal: &c_int| named & bit(*signal) == 0;
    let has_state = move |is_blocked: bool| move |signal: &c_int| (blocked & bit(*signal) != 0) == is_blocked;
    [false, true].into_iter().flat_map(move |is_blocked| REALTIME.rev().filter(free).filter(has_state(is_blocked)))
}

/// The signals named by a change of a thread's mask: none if it unblocks signals, or has all of them.
pub const fn named_by_mask(unblocks: bool, set: u64) -> u64 {
    if unblocks || set & ALL_REALTIME == ALL_REALTIME { 0 } else { set }
}

/// The action that a call requests for a signal.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RequestedAction {
    /// None: the call only reads the current one.
    Look,
    /// The default action, `SIG_DFL`.
    Default,
    /// A function of the program, or `SIG_IGN`.
    Other,
}

/// How to handle a call that reads or changes a signal's action.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Course {
    /// Answer as if the signal had its default action, and change nothing: the signal is ours.
    Conceal,
    /// The program uses the signal from now on; then pass the call to the C library.
    Use,
    /// Pass it to the C library.
    Pass,
}

/// How to handle a call for a signal if ours is the signal `ours`; zero if we have none.
pub fn course(ours: c_int, signal: c_int, asked: RequestedAction) -> Course {
    match asked {
        RequestedAction::Look | RequestedAction::Default if signal != 0 && signal == ours => Course::Conceal,
        RequestedAction::Other if REALTIME.contains(&signal) => Course::Use,
        _ => Course::Pass,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_realtime_signals_are_in_the_set_of_all() {
        assert_eq!(REALTIME.map(bit).fold(0, |set, bit| set | bit), ALL_REALTIME);
    }

    #[test]
    fn the_highest_free_signal_comes_first_and_blocked_ones_last() {
        let all: Vec<c_int> = candidates(0, 0).collect();
        assert_eq!(all, REALTIME.rev().collect::<Vec<_>>());
        let some: Vec<c_int> = candidates(bit(64) | bit(40), bit(63) | bit(40) | bit(35)).collect();
        assert_eq!((some[0], some.len()), (62, 29));
        assert_eq!(some[27..], [63, 35]);
        assert_eq!(candidates(ALL_REALTIME, 0).count(), 0);
        assert_eq!(candidates(0, u64::MAX).next(), Some(64));
    }

    #[test]
    fn blocking_everything_names_nothing() {
        assert_eq!(named_by_mask(false, u64::MAX), 0);
        assert_eq!(named_by_mask(false, ALL_REALTIME), 0);
        assert_eq!(named_by_mask(true, bit(64)), 0);
        assert_eq!(named_by_mask(false, bit(64) | bit(2)), bit(64) | bit(2));
    }

    #[test]
    fn our_signal_looks_unused_until_the_program_uses_it() {
        for asked in [RequestedAction::Look, RequestedAction::Default] {
            assert_eq!(course(64, 64, asked), Course::Conceal);
            assert_eq!(course(64, 63, asked), Course::Pass);
            // There is no signal of this number, and none is ours.
            assert_eq!(course(0, 0, asked), Course::Pass);
        }
        assert_eq!(course(64, 64, RequestedAction::Other), Course::Use);
        // Another one may be ours later.
        assert_eq!(course(64, 63, RequestedAction::Other), Course::Use);
        assert_eq!(course(64, 10, RequestedAction::Other), Course::Pass);
    }
}
