//! The noise of the calling thread: its start, and the cost of a signal.

use crate::abi::{CLOCK_MONOTONIC, CLOCK_REALTIME};
use crate::layout;
use crate::memory::{Shared, Slot};
use crate::process::{calls, timer};
use crate::schedule::{self, Begin};
use crate::toll::{self, Toll, Trial};

/// The number of trial signals to measure the cost of one, how far ahead each is set, and how long to wait for one.
const TRIALS: usize = 48;
const AHEAD_NS: u64 = 40_000;
const PATIENCE_NS: u64 = 5_000_000;

/// Starts the noise of the calling thread, whose slot contains the cost of a signal.
pub fn start(shared: Shared<'_>, slot: Slot<'_>) {
    let order = shared.count(layout::THREADS);
    let (now, wall) = (calls::clock_ns(CLOCK_MONOTONIC), calls::clock_ns(CLOCK_REALTIME));
    if !schedule::begin(shared, slot, Begin { order, now, wall }) {
        return;
    }
    match timer::create(slot, calls::tid()) {
        Some(timer) => {
            timer::keep(slot, timer);
            timer::set(slot);
        }
        None => {
            shared.count(layout::UNATTENDED);
        }
    }
}

/// Measures the cost of a signal for the calling thread, by trials with a separate timer. The cost stays zero if too few of the signals arrive in
/// time.
pub fn measure_toll(slot: Slot<'_>) {
    let Some(timer) = timer::create(slot, calls::tid()) else { return };
    let mut tolls = [Toll::default(); TRIALS];
    let mut seen = 0;
    for _ in 0..TRIALS {
        let Some(trial) = one_trial(slot, |at| calls::timer_set(timer, at)) else { break };
        if let Some(toll) = trial.toll() {
            tolls[seen] = toll;
            seen += 1;
        }
    }
    calls::timer_delete(timer);
    slot.set(layout::TRIAL, 0);
    if seen >= TRIALS / 2 {
        let Toll { lag, entry, exit } = toll::usual(&mut tolls[..seen]);
        for (word, value) in [(layout::LAG, lag), (layout::ENTRY, entry), (layout::EXIT, exit)] {
            slot.set(word, value);
        }
    }
}

/// Waits for a signal of the timer that `set_timer` sets for an instant; `None` if it does not arrive.
fn one_trial(slot: Slot<'_>, set_timer: impl FnOnce(u64)) -> Option<Trial> {
    slot.set(layout::TRIAL, 1);
    let begin = calls::clock_ns(CLOCK_MONOTONIC);
    let at = begin + AHEAD_NS;
    set_timer(at);
    let (mut before, mut after) = (begin, begin);
    while slot.get(layout::TRIAL) == 1 && after - begin < PATIENCE_NS {
        before = after;
        after = calls::clock_ns(CLOCK_MONOTONIC);
    }
    if slot.get(layout::TRIAL) != 2 {
        return None;
    }
    let [first, last] = [layout::TRIAL_READINGS, layout::TRIAL_READINGS + 1].map(|word| slot.get(word));
    // The signal may have arrived right after the word was read: then the last reading was before it.
    if after < first {
        before = after;
        after = calls::clock_ns(CLOCK_MONOTONIC);
    }
    Some(Trial { at, before, first, last, after })
}

/// Copies the cost of a signal from the first slot: measuring it would delay every thread.
pub fn copy_toll(shared: Shared<'_>, slot: Slot<'_>) {
    if let Some(first) = shared.slot(0) {
        for word in [layout::LAG, layout::ENTRY, layout::EXIT] {
            slot.set(word, first.get(word));
        }
    }
}
