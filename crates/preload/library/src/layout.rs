//! The memory that the library shares with the maker of the noise, in 64-bit words, version 3.
//!
//! ```text
//! 0          HEADER_WORDS     first_slot(circles)       first_detour(circles)
//! | header   | circles x 3    | SLOTS x SLOT_WORDS      | pairs: start, length |
//! ```
//!
//! The maker writes the words before the slots once, before any process attaches, except those from [`STATUS`] on, and [`STOP`]. Only its thread
//! writes a slot. Times are in nanoseconds, instants on `CLOCK_MONOTONIC`. Each constant is the number of a word, unless stated otherwise.

use core::ffi::CStr;

/// The value of the first word: "becalm" and the version.
pub const MAGIC: u64 = 0x6265_6361_6c6d_0003;
/// The name of the environment variable that holds the path of this memory.
pub const VARIABLE: &CStr = c"BECALM_INJECT";
/// The prefix of the library's file name, in any directory.
pub const LIBRARY: &str = "becalm-preload";

/// Header: the type of this memory, [`MAGIC`].
pub const KIND: usize = 0;
/// Header: the total number of words.
pub const WORDS: usize = 1;
/// Header: not zero if there must be no more detours.
pub const STOP: usize = 2;
/// Header: not zero if threads start at the place on their circle that the wall clock gives, zero for random places.
pub const SYNCHRONIZED: usize = 3;
/// Header: the seed from which random places are drawn.
pub const SEED: usize = 4;
/// Header: a number that makes injectors with the same seed start at different places.
pub const NODE: usize = 5;
/// Header: not zero if only the first thread of each process has noise.
pub const MAIN_ONLY: usize = 6;
/// Header: not zero if noise that cannot be made exactly is refused.
pub const EXACT: usize = 7;
/// Header: the length of the shortest detour that must be possible; if it is not, the noise is refused.
pub const SHORTEST: usize = 8;
/// Header: the shortest time from a detour's end to the next one's start.
pub const NARROWEST: usize = 9;
/// Header: the number of circles.
pub const CIRCLES: usize = 10;
/// Header: the process that made this memory; there are no more detours after it has ended.
pub const MAKER: usize = 11;
/// Header: one of the `STATUS_` values, set by the first process that attached.
pub const STATUS: usize = 16;
/// Header: the length of the shortest possible detour or gap, if the noise was refused.
pub const LIMIT: usize = 17;
/// Header: the number of processes that attached.
pub const PROCESSES: usize = 18;
/// Header: the number of threads that attached.
pub const THREADS: usize = 19;
/// Header: the number of threads that did not attach, because all slots were taken or the kernel gave no timer.
pub const UNATTENDED: usize = 20;
/// Header: how often a signal was given up because the program uses it.
pub const MOVES: usize = 21;
/// Header: the number of processes whose noise ended because no signal was left.
pub const GIVEN_UP: usize = 22;
/// The number of words before the table of circles.
pub const HEADER_WORDS: usize = 32;

/// Value of [`STATUS`]: the noise can be made.
pub const STATUS_FINE: u64 = 0;
/// Value of [`STATUS`]: a detour is shorter than a signal takes.
pub const STATUS_SHORT: u64 = 1;
/// Value of [`STATUS`]: two detours are closer to each other than a signal takes.
pub const STATUS_CLOSE: u64 = 2;

/// The number of words of a circle: its length, its number of detours, and the word where they start.
pub const CIRCLE_WORDS: usize = 3;

/// The number of slots, which limits the number of concurrent threads. Small for Miri, which checks every word.
pub const SLOTS: usize = if cfg!(miri) { 16 } else { 1024 };
/// The number of words of a slot.
pub const SLOT_WORDS: usize = 256;

/// Slot: one of the `SLOT_` values.
pub const STATE: usize = 0;
/// Slot: the number of the process.
pub const PID: usize = 1;
/// Slot: the number of the thread.
pub const TID: usize = 2;
/// Slot: the number of the thread's circle.
pub const CIRCLE: usize = 4;
/// Slot: the number on the circle of the next due detour.
pub const NEXT: usize = 5;
/// Slot: the instant at which the current lap started.
pub const LAP_AT: usize = 6;
/// Slot: the instant at which the next detour is due.
pub const DUE_AT: usize = 7;
/// Slot: the length of the next detour.
pub const DUE_LENGTH: usize = 8;
/// Slot: the time from the instant that the timer was set for until the program is interrupted.
pub const LAG: usize = 9;
/// Slot: the time from the interruption to the handler's first reading of the clock.
pub const ENTRY: usize = 10;
/// Slot: the time from the handler's last reading of the clock until the program continues.
pub const EXIT: usize = 11;
/// Slot: the instant at which the thread attached.
pub const BEGAN_AT: usize = 14;
/// Slot: the observed time of threads that had the slot before.
pub const OBSERVED_BEFORE: usize = 15;
/// Slot: the last instant at which the thread was seen alive.
pub const SEEN_AT: usize = 16;
/// Slot: the number of detours that were not delivered because their time was over when the handler ran.
pub const MISSED: usize = 17;
/// Slot: the number of detours that started right where the previous one ended.
pub const JOINED: usize = 18;
/// Slot: the number of detours left out because they are shorter than a signal takes.
pub const LEFT_OUT: usize = 19;
/// Slot: the time that the detours of [`LEFT_OUT`] would have taken.
pub const LEFT_OUT_NS: usize = 20;
/// Slot: the instant at which the last detour was due; zero if there was none.
pub const LAST_DUE: usize = 21;
/// Slot: the instant at which the last delivered detour started; zero if there was none.
pub const LAST_START: usize = 22;
/// Slot: 1 while a trial signal is awaited, 2 when it has come, zero when the cost of a signal is not being measured.
pub const TRIAL: usize = 23;
/// Slot: the handler's readings of the clock in a trial, in two words: the first, and the last right after it.
pub const TRIAL_READINGS: usize = 24;
/// Slot: the instant at which the thread last checked whether the maker exists.
pub const LOOKED_AT: usize = 26;

/// Slot: moments of the lengths of due detours.
pub const DUE: usize = 32;
/// Slot: moments of the intervals from one due detour to the next.
pub const DUE_INTERVALS: usize = DUE + MOMENTS_WORDS;
/// Slot: moments of the lengths of delivered detours.
pub const DELIVERED: usize = DUE_INTERVALS + MOMENTS_WORDS;
/// Slot: moments of the intervals from one delivered detour to the next.
pub const INTERVALS: usize = DELIVERED + MOMENTS_WORDS;
/// The number of words of moments: the number of values, their sum, the sum of their squares (its low word, then its high one), the minimum and the
/// maximum.
pub const MOMENTS_WORDS: usize = 6;

/// Slot: how late detours started, [`LATE_BINS`] counts indexed by [`late_bin`].
pub const LATE: usize = 64;
/// The number of counts of lateness.
pub const LATE_BINS: usize = 160;

/// Value of [`STATE`]: the slot has never been used.
pub const SLOT_FREE: u64 = 0;
/// Value of [`STATE`]: the slot's thread runs.
pub const SLOT_TAKEN: u64 = 1;
/// Value of [`STATE`]: the slot's thread has ended; its figures stay.
pub const SLOT_ENDED: u64 = 2;

/// The first word of the slots.
pub const fn first_slot(circles: usize) -> usize {
    HEADER_WORDS + circles * CIRCLE_WORDS
}

/// The first word of the detours.
pub const fn first_detour(circles: usize) -> usize {
    first_slot(circles) + SLOTS * SLOT_WORDS
}

/// The index of the count for a lateness; there are four counts per power of two.
pub const fn late_bin(late_ns: u64) -> usize {
    if late_ns < 4 {
        return late_ns as usize;
    }
    let power = late_ns.ilog2();
    let bin = (power as usize - 1) * 4 + (late_ns >> (power - 2)) as usize % 4;
    if bin < LATE_BINS { bin } else { LATE_BINS - 1 }
}

/// The lowest lateness of a count, in nanoseconds.
pub const fn late_of_bin(bin: usize) -> u64 {
    if bin < 4 { bin as u64 } else { (4 + bin as u64 % 4) << (bin / 4 - 1) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bins_are_in_order_and_hold_what_they_say() {
        for bin in 0..LATE_BINS {
            assert_eq!(late_bin(late_of_bin(bin)), bin);
            if bin > 0 {
                assert_eq!(late_bin(late_of_bin(bin) - 1), bin - 1);
            }
        }
        assert_eq!(late_bin(u64::MAX), LATE_BINS - 1);
        // The last one starts beyond nine minutes.
        assert!(late_of_bin(LATE_BINS - 1) > 540_000_000_000);
    }

    #[test]
    fn the_words_of_a_slot_fit() {
        const { assert!(LOOKED_AT < DUE && INTERVALS + MOMENTS_WORDS <= LATE) };
        const { assert!(LATE + LATE_BINS <= SLOT_WORDS) };
    }
}
