//! The noise of one thread: when its detours are due, and the handler that makes them.
//!
//! The handler reads the clock, writes words of the thread's slot, and sets the timer; nothing else. It runs with all signals
//! blocked, as a thread that lost its CPU takes none either.

use core::ffi::{c_int, c_void};
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::abi::{self, CLOCK_MONOTONIC, CLOCK_REALTIME, SigInfo};
use crate::layout::{self, SLOT_WORDS, SLOTS, first_slot};
use crate::{guard, words};

/// Trial signals when the cost of one is measured, how far ahead each is set, and how long one is waited for.
const TRIALS: usize = 48;
const AHEAD_NS: u64 = 40_000;
const PATIENCE_NS: u64 = 5_000_000;
/// How often it is looked whether the maker is there still.
const LOOK_NS: u64 = 100_000_000;
/// By so much earlier than it is due a timer never comes by itself.
const EARLY_NS: u64 = 5_000;

/// The words of one thread.
pub type Slot = &'static [AtomicU64; SLOT_WORDS];

/// The slot of a number.
pub fn slot(number: usize) -> Option<Slot> {
    let words = words();
    let circles = words.get(layout::CIRCLES)?.load(Relaxed) as usize;
    let at = first_slot(circles) + number * SLOT_WORDS;
    if number < SLOTS { words.get(at..at + SLOT_WORDS)?.try_into().ok() } else { None }
}

/// The slot at an address, if it is one.
pub fn slot_at(address: usize) -> Option<Slot> {
    let offset = address.checked_sub(slot(0)?.as_ptr() as usize)?;
    let bytes = SLOT_WORDS * size_of::<u64>();
    if offset % bytes == 0 { slot(offset / bytes) } else { None }
}

/// The slot that a signal is for, if it is from one of our timers.
fn slot_of(info: &SigInfo) -> Option<Slot> {
    if info.code == abi::SI_TIMER { slot_at(info.value) } else { None }
}

/// The handler of our signal.
pub extern "C" fn on_signal(signal: c_int, info: *const SigInfo, _: *mut c_void) {
    let errno = abi::errno();
    // SAFETY: the kernel gives a valid one to handlers with SA_SIGINFO.
    match slot_of(unsafe { &*info }) {
        Some(slot) => detours(slot),
        None => guard::foreign(signal),
    }
    abi::set_errno(errno);
}

fn get(slot: Slot, word: usize) -> u64 {
    slot[word].load(Relaxed)
}

fn set(slot: Slot, word: usize, value: u64) {
    slot[word].store(value, Relaxed);
}

/// Makes the detours that are due, and sets the timer for the next one.
fn detours(slot: Slot) {
    let mut now = abi::clock_ns(CLOCK_MONOTONIC);
    if get(slot, layout::TRIAL) != 0 {
        set(slot, layout::TRIAL_READINGS, now);
        set(slot, layout::TRIAL_READINGS + 1, abi::clock_ns(CLOCK_MONOTONIC));
        set(slot, layout::TRIAL, 2);
        return;
    }
    let (lag, toll) = (get(slot, layout::LAG), get(slot, layout::ENTRY) + get(slot, layout::EXIT));
    let mut joined = false;
    // The first one is due; of those after it, each whose time has come meanwhile.
    let mut slack = lag + EARLY_NS;
    loop {
        if is_over(slot, now) {
            return;
        }
        let (due, length) = (get(slot, layout::DUE_AT), get(slot, layout::DUE_LENGTH));
        if now + slack < due {
            break;
        }
        book_due(slot, due, length);
        if now >= due + length {
            set(slot, layout::MISSED, get(slot, layout::MISSED) + 1);
        } else {
            // One that begins right after another has no way in of its own, and its way out is that of both.
            let (entry, cost) = if joined { (0, 0) } else { (get(slot, layout::ENTRY), toll) };
            let (first, burn) = (now, length.saturating_sub(cost));
            while now - first < burn {
                now = abi::clock_ns(CLOCK_MONOTONIC);
            }
            set(slot, layout::JOINED, get(slot, layout::JOINED) + u64::from(joined));
            book_delivered(slot, first - entry, now - first + cost, due);
            joined = true;
        }
        next_due(slot);
        // The next one's signal would come before the program goes on.
        slack = lag + toll;
    }
    set(slot, layout::SEEN_AT, now);
    set_timer(slot);
}

/// Whether there are to be no more detours: they were stopped, or who had them made is gone.
fn is_over(slot: Slot, now: u64) -> bool {
    let words = words();
    if now.saturating_sub(get(slot, layout::LOOKED_AT)) > LOOK_NS {
        set(slot, layout::LOOKED_AT, now);
        if !abi::is_alive(words[layout::MAKER].load(Relaxed) as c_int) {
            words[layout::STOP].store(1, Relaxed);
        }
    }
    words[layout::STOP].load(Relaxed) != 0
}

/// Sets the thread's timer for the detour that is due next.
pub fn set_timer(slot: Slot) {
    abi::timer_set(get(slot, layout::TIMER) as c_int, get(slot, layout::DUE_AT).saturating_sub(get(slot, layout::LAG)));
}

/// Goes on to the next detour that a signal can make.
fn next_due(slot: Slot) {
    let shortest = get(slot, layout::ENTRY) + get(slot, layout::EXIT);
    let Some((length, detours)) = circle(get(slot, layout::CIRCLE) as usize) else { return };
    loop {
        let mut next = get(slot, layout::NEXT) as usize + 1;
        if next * 2 >= detours.len() {
            next = 0;
            set(slot, layout::LAP_AT, get(slot, layout::LAP_AT).wrapping_add(length));
        }
        set(slot, layout::NEXT, next as u64);
        if place(slot, detours, next, shortest) {
            return;
        }
    }
}

/// Has a detour of the circle be the one that is due, if it can be made.
fn place(slot: Slot, detours: &[AtomicU64], index: usize, shortest: u64) -> bool {
    let (start, length) = (detours[2 * index].load(Relaxed), detours[2 * index + 1].load(Relaxed));
    if length < shortest {
        set(slot, layout::LEFT_OUT, get(slot, layout::LEFT_OUT) + 1);
        set(slot, layout::LEFT_OUT_NS, get(slot, layout::LEFT_OUT_NS) + length);
        return false;
    }
    set(slot, layout::DUE_AT, get(slot, layout::LAP_AT).wrapping_add(start));
    set(slot, layout::DUE_LENGTH, length);
    true
}

/// A circle's length and its detours, a start and a length each; nothing where there is none.
fn circle(number: usize) -> Option<(u64, &'static [AtomicU64])> {
    let at = layout::HEADER_WORDS + number * layout::CIRCLE_WORDS;
    let [length, count, first] = words().get(at..at + layout::CIRCLE_WORDS)? else { return None };
    let (length, count, first) = (length.load(Relaxed), count.load(Relaxed) as usize, first.load(Relaxed) as usize);
    let detours = words().get(first..first + 2 * count)?;
    (length > 0 && count > 0).then_some((length, detours))
}

/// Starts the noise of the calling thread, which has a slot with the cost of a signal.
pub fn arm(slot: Slot) {
    let words = words();
    let order = words[layout::THREADS].fetch_add(1, Relaxed);
    let number = order % words[layout::CIRCLES].load(Relaxed).max(1);
    set(slot, layout::CIRCLE, number);
    let (now, wall) = (abi::clock_ns(CLOCK_MONOTONIC), abi::clock_ns(CLOCK_REALTIME));
    set(slot, layout::BEGAN_AT, now);
    set(slot, layout::SEEN_AT, now);
    set(slot, layout::LAST_DUE, 0);
    set(slot, layout::LAST_START, 0);
    let Some((length, detours)) = circle(number as usize) else { return };
    let shortest = get(slot, layout::ENTRY) + get(slot, layout::EXIT);
    // Where all are too short there is none to look for.
    if !detours.chunks_exact(2).any(|detour| detour[1].load(Relaxed) >= shortest) {
        return;
    }
    let offset = match words[layout::SYNCHRONIZED].load(Relaxed) {
        0 => random_below(words[layout::SEED].load(Relaxed), words[layout::NODE].load(Relaxed), order, length),
        _ => wall % length,
    };
    set(slot, layout::LAP_AT, now.wrapping_sub(offset));
    // The first that starts at that place or after it; past the last one, the first of the next lap.
    let (mut low, mut high) = (0, detours.len() / 2);
    while low < high {
        let middle = (low + high) / 2;
        if detours[2 * middle].load(Relaxed) < offset {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    if low * 2 == detours.len() {
        low = 0;
        set(slot, layout::LAP_AT, now.wrapping_sub(offset).wrapping_add(length));
    }
    set(slot, layout::NEXT, low as u64);
    if !place(slot, detours, low, shortest) {
        next_due(slot);
    }
    let made = abi::timer_create(guard::signal(), slot.as_ptr() as usize, abi::tid());
    let Some(timer) = made else {
        words[layout::UNATTENDED].fetch_add(1, Relaxed);
        return;
    };
    set(slot, layout::TIMER, timer as u64);
    set_timer(slot);
}

/// A number below a limit from a seed and two more (SplitMix64: Steele et al. 2014).
fn random_below(seed: u64, node: u64, order: u64, limit: u64) -> u64 {
    let mut state = seed;
    for part in [node, order] {
        state = mixed(state.wrapping_add(0x9e37_79b9_7f4a_7c15)) ^ part;
    }
    let random = mixed(state.wrapping_add(0x9e37_79b9_7f4a_7c15));
    ((u128::from(random) * u128::from(limit)) >> 64) as u64
}

fn mixed(mut state: u64) -> u64 {
    state = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    state = (state ^ (state >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    state ^ (state >> 31)
}

/// Measures what a signal costs the calling thread, by trials with its own timer.
pub fn measure_toll(slot: Slot) {
    let Some(timer) = abi::timer_create(guard::signal(), slot.as_ptr() as usize, abi::tid()) else { return };
    let (mut lags, mut entries, mut exits) = ([0_u64; TRIALS], [0_u64; TRIALS], [0_u64; TRIALS]);
    let mut seen = 0;
    for _ in 0..TRIALS {
        set(slot, layout::TRIAL, 1);
        let begin = abi::clock_ns(CLOCK_MONOTONIC);
        let at = begin + AHEAD_NS;
        abi::timer_set(timer, at);
        let (mut before, mut after) = (begin, begin);
        while get(slot, layout::TRIAL) == 1 && after - begin < PATIENCE_NS {
            before = after;
            after = abi::clock_ns(CLOCK_MONOTONIC);
        }
        let (first, last) = (get(slot, layout::TRIAL_READINGS), get(slot, layout::TRIAL_READINGS + 1));
        if get(slot, layout::TRIAL) != 2 {
            break;
        }
        // The signal may have come right after the word was looked at: then the last reading was before it.
        if after < first {
            before = after;
            after = abi::clock_ns(CLOCK_MONOTONIC);
        }
        if before <= first && last <= after {
            lags[seen] = before.saturating_sub(at);
            entries[seen] = first - before;
            exits[seen] = after - last;
            seen += 1;
        }
    }
    abi::timer_delete(timer);
    set(slot, layout::TRIAL, 0);
    if seen < TRIALS / 2 {
        return;
    }
    for (word, values) in
        [(layout::LAG, &mut lags), (layout::ENTRY, &mut entries), (layout::EXIT, &mut exits)]
    {
        // The lowest fifth's end: what others take of the CPU meanwhile is none of the signal's cost.
        values[..seen].sort_unstable();
        set(slot, word, values[seen / 5]);
    }
}

/// Whether the noise can be made exactly, where that is asked for; else says why not.
pub fn is_possible(slot: Slot) -> bool {
    let words = words();
    let word = |at: usize| words[at].load(Relaxed);
    let shortest = get(slot, layout::ENTRY) + get(slot, layout::EXIT);
    let room = shortest + get(slot, layout::LAG);
    let exact = word(layout::EXACT) != 0;
    let (status, limit) = if word(layout::SHORTEST) < shortest {
        (layout::STATUS_SHORT, shortest)
    } else if exact && word(layout::NARROWEST) < room {
        (layout::STATUS_CLOSE, room)
    } else {
        return true;
    };
    words[layout::LIMIT].store(limit, Relaxed);
    words[layout::STATUS].store(status, Relaxed);
    false
}

fn book_due(slot: Slot, due: u64, length: u64) {
    add(slot, layout::DUE, length);
    let last = get(slot, layout::LAST_DUE);
    if last != 0 {
        add(slot, layout::DUE_INTERVALS, due - last);
    }
    set(slot, layout::LAST_DUE, due);
}

fn book_delivered(slot: Slot, start: u64, length: u64, due: u64) {
    add(slot, layout::DELIVERED, length);
    let last = get(slot, layout::LAST_START);
    if last != 0 {
        add(slot, layout::INTERVALS, start.saturating_sub(last));
    }
    set(slot, layout::LAST_START, start);
    let bin = layout::LATE + layout::late_bin(start.saturating_sub(due));
    set(slot, bin, get(slot, bin) + 1);
}

/// Adds to moments (Welford 1962).
fn add(slot: Slot, at: usize, value: u64) {
    let count = get(slot, at) + 1;
    let (mean, squares) = (f64::from_bits(get(slot, at + 1)), f64::from_bits(get(slot, at + 2)));
    let off = value as f64 - mean;
    let mean = mean + off / count as f64;
    let squares = squares + off * (value as f64 - mean);
    let (least, most) = (get(slot, at + 3), get(slot, at + 4));
    set(slot, at, count);
    set(slot, at + 1, mean.to_bits());
    set(slot, at + 2, squares.to_bits());
    set(slot, at + 3, if count == 1 { value } else { least.min(value) });
    set(slot, at + 4, if count == 1 { value } else { most.max(value) });
}
