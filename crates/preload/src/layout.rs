//! The memory that the preloaded library shares with the one who had it loaded, in 64-bit words, version 1.
//!
//! ```text
//! 0          HEADER_WORDS     first_slot(circles)       first_detour(circles)
//! | header   | circles x 3    | SLOTS x SLOT_WORDS      | pairs: start, length |
//! ```
//!
//! Words before the slots are written once, before anybody attaches, except those from [`STATUS`] on. A slot is written by
//! its thread alone. Times are nanoseconds of `CLOCK_MONOTONIC`.

/// What the first word holds: "becalm" and the version.
pub const MAGIC: u64 = 0x6265_6361_6c6d_0001;
/// The name of the environment variable with the path of this memory.
pub const VARIABLE: &str = "BECALM_INJECT";

/// [`MAGIC`].
pub const KIND: usize = 0;
/// How many words in all.
pub const WORDS: usize = 1;
/// Not zero: no more detours.
pub const STOP: usize = 2;
/// Not zero: the place on the circle is that of the wall clock.
pub const SYNCHRONIZED: usize = 3;
/// Of the random places.
pub const SEED: usize = 4;
/// Which of several that inject with one seed.
pub const NODE: usize = 5;
/// Not zero: only the first thread of each process.
pub const MAIN_ONLY: usize = 6;
/// Not zero: noise that cannot be made exactly is refused.
pub const EXACT: usize = 7;
/// A detour so long must be possible, or the noise is refused.
pub const SHORTEST: usize = 8;
/// The shortest time from a detour's end to the next one's start.
pub const NARROWEST: usize = 9;
/// How many circles.
pub const CIRCLES: usize = 10;
/// The process that made this memory; when it is gone, there are no more detours.
pub const MAKER: usize = 11;
/// One of the `STATUS_` values: how the first process that attached found the noise.
pub const STATUS: usize = 16;
/// The shortest detour or gap that could have been made, where it was refused.
pub const LIMIT: usize = 17;
/// Processes that attached.
pub const PROCESSES: usize = 18;
/// Threads that attached.
pub const THREADS: usize = 19;
/// Threads that did not, as all slots were taken or the kernel gave no timer.
pub const UNATTENDED: usize = 20;
/// Signals that were given up as the program uses them.
pub const MOVES: usize = 21;
/// Processes that gave up, as no signal was left.
pub const GIVEN_UP: usize = 22;
/// Where the table of circles begins.
pub const HEADER_WORDS: usize = 32;

/// Nothing is wrong.
pub const STATUS_FINE: u64 = 0;
/// A detour is shorter than a signal takes.
pub const STATUS_SHORT: u64 = 1;
/// Two are closer than a signal takes.
pub const STATUS_CLOSE: u64 = 2;

/// Words of a circle: its length, how many detours, and the word at which they begin.
pub const CIRCLE_WORDS: usize = 3;

/// How many threads at a time.
pub const SLOTS: usize = 1024;
/// Words of a slot.
pub const SLOT_WORDS: usize = 256;

/// One of the `SLOT_` values.
pub const STATE: usize = 0;
/// The process.
pub const PID: usize = 1;
/// The thread.
pub const TID: usize = 2;
/// The kernel's number of its timer, or [`NO_TIMER`].
pub const TIMER: usize = 3;
/// The number of its circle.
pub const CIRCLE: usize = 4;
/// The next detour's number on the circle.
pub const NEXT: usize = 5;
/// When the present lap began.
pub const LAP_AT: usize = 6;
/// When the next detour is due.
pub const DUE_AT: usize = 7;
/// How long it is.
pub const DUE_LENGTH: usize = 8;
/// What a detour costs beyond its loop: from the timer's instant to when the program is interrupted.
pub const LAG: usize = 9;
/// From then to the handler's first reading of the clock.
pub const ENTRY: usize = 10;
/// From its last reading to when the program goes on.
pub const EXIT: usize = 11;
/// What a new thread is to run, and its argument.
pub const RUN: usize = 12;
/// See [`RUN`].
pub const ARGUMENT: usize = 13;
/// When it attached.
pub const BEGAN_AT: usize = 14;
/// When it was last looked for the maker.
pub const LOOKED_AT: usize = 26;
/// For how long threads that had the slot before were seen.
pub const OBSERVED_BEFORE: usize = 15;
/// The last instant at which it was seen alive.
pub const SEEN_AT: usize = 16;
/// Detours not delivered, as their time was over when the handler ran.
pub const MISSED: usize = 17;
/// Detours that began right where the one before ended.
pub const JOINED: usize = 18;
/// Detours shorter than a signal takes, which were left out.
pub const LEFT_OUT: usize = 19;
/// The time that they take.
pub const LEFT_OUT_NS: usize = 20;
/// When the last detour was due; zero for none.
pub const LAST_DUE: usize = 21;
/// When the last delivered one began; zero for none.
pub const LAST_START: usize = 22;
/// Where a trial stands: not zero while the cost of a signal is measured, 2 when it came.
pub const TRIAL: usize = 23;
/// The handler's readings of the clock in a trial: the first, and the last right after.
pub const TRIAL_READINGS: usize = 24;

/// Lengths that were due, as moments.
pub const DUE: usize = 32;
/// From one that was due to the next.
pub const DUE_INTERVALS: usize = DUE + MOMENTS_WORDS;
/// Lengths that were delivered.
pub const DELIVERED: usize = DUE_INTERVALS + MOMENTS_WORDS;
/// From one delivered to the next.
pub const INTERVALS: usize = DELIVERED + MOMENTS_WORDS;
/// Words of moments: count, mean and sum of squared differences (both as the bits of an `f64`), least, most.
pub const MOMENTS_WORDS: usize = 5;

/// How late detours began: counts by [`late_bin`].
pub const LATE: usize = 64;
/// How many such counts.
pub const LATE_BINS: usize = 160;

/// Instead of a timer's number.
pub const NO_TIMER: u64 = u64::MAX;

/// A slot that nobody has had.
pub const SLOT_FREE: u64 = 0;
/// A slot of a thread that runs.
pub const SLOT_TAKEN: u64 = 1;
/// A slot whose thread has ended; its figures stay.
pub const SLOT_ENDED: u64 = 2;

/// The first word of the slots.
#[must_use]
pub const fn first_slot(circles: usize) -> usize {
    HEADER_WORDS + circles * CIRCLE_WORDS
}

/// The first word of the detours.
#[must_use]
pub const fn first_detour(circles: usize) -> usize {
    first_slot(circles) + SLOTS * SLOT_WORDS
}

/// The count that a lateness belongs to: four to each power of two.
#[must_use]
pub const fn late_bin(late_ns: u64) -> usize {
    if late_ns < 4 {
        return late_ns as usize;
    }
    let power = late_ns.ilog2();
    let bin = (power as usize - 1) * 4 + (late_ns >> (power - 2)) as usize % 4;
    if bin < LATE_BINS { bin } else { LATE_BINS - 1 }
}

/// The least lateness of a bin.
#[must_use]
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
        // The last one begins beyond nine minutes.
        assert!(late_of_bin(LATE_BINS - 1) > 540_000_000_000);
    }

    #[test]
    fn the_words_of_a_slot_fit() {
        const { assert!(LOOKED_AT < DUE && INTERVALS + MOMENTS_WORDS <= LATE) };
        const { assert!(LATE + LATE_BINS <= SLOT_WORDS) };
    }
}
