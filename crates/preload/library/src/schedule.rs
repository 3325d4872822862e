//! The next due detour of a thread, and the actions of its timer's signal handler.

use crate::books;
use crate::circle::Circle;
use crate::layout;
use crate::memory::{Shared, Slot};
use crate::random;

/// How often a thread checks that the maker of the noise still exists.
const LOOK_NS: u64 = 100_000_000;
/// How often within a detour: a check takes some tenths of a microsecond.
const LOOK_WITHIN_NS: u64 = 1_000_000;
/// A timer fires at most this much earlier than set: the kernel adjusts the clock, not the timer.
const EARLY_NS: u64 = 5_000;

/// The start of a thread's noise.
#[derive(Clone, Copy, Debug)]
pub struct Begin {
    /// The number of threads whose noise started before.
    pub order: u64,
    /// The instant in nanoseconds, on the clock of the detours.
    pub now: u64,
    /// The same instant in nanoseconds, on the wall clock.
    pub wall: u64,
}

/// Starts the noise of a thread, whose slot contains the cost of a signal there. Its place on the circle is that of the wall clock, or a random one;
/// the first possible detour from there on is due next. Returns whether there is one; if all are too short, nothing is ever due.
#[must_use]
pub fn begin(shared: Shared<'_>, slot: Slot<'_>, begin: Begin) -> bool {
    let Begin { order, now, wall } = begin;
    let number = order % shared.get(layout::CIRCLES).max(1);
    slot.set(layout::CIRCLE, number);
    slot.set(layout::BEGAN_AT, now);
    slot.set(layout::SEEN_AT, now);
    slot.set(layout::LAST_DUE, 0);
    slot.set(layout::LAST_START, 0);
    let Some(circle) = shared.circle(number).filter(|circle| circle.has(slot.shortest())) else { return false };
    let place = match shared.get(layout::SYNCHRONIZED) {
        0 => random::below(circle.length(), shared.get(layout::SEED), shared.get(layout::NODE), order),
        _ => wall % circle.length(),
    };
    slot.set(layout::LAP_AT, now.wrapping_sub(place));
    let mut first = circle.first_from(place);
    if first == circle.count() {
        // The first one of the next lap.
        first = 0;
        slot.set(layout::LAP_AT, now.wrapping_sub(place).wrapping_add(circle.length()));
    }
    slot.set(layout::NEXT, first as u64);
    if !set_due(slot, circle, first) {
        advance(slot, circle);
    }
    true
}

/// Advances to the next possible detour. There is one: otherwise the noise would not have started.
fn advance(slot: Slot<'_>, circle: Circle<'_>) {
    loop {
        let mut next = slot.get(layout::NEXT) as usize + 1;
        if next >= circle.count() {
            next = 0;
            slot.set(layout::LAP_AT, slot.get(layout::LAP_AT).wrapping_add(circle.length()));
        }
        slot.set(layout::NEXT, next as u64);
        if set_due(slot, circle, next) {
            return;
        }
    }
}

/// Makes a detour of the circle the due one. Returns whether it is possible; if not, counts it.
fn set_due(slot: Slot<'_>, circle: Circle<'_>, index: usize) -> bool {
    let (start, length) = circle.detour(index);
    if length < slot.shortest() {
        slot.add(layout::LEFT_OUT, 1);
        slot.add(layout::LEFT_OUT_NS, length);
        return false;
    }
    slot.set(layout::DUE_AT, slot.get(layout::LAP_AT).wrapping_add(start));
    slot.set(layout::DUE_LENGTH, length);
    true
}

/// The instant to set a thread's timer for, such that its signal arrives when the next detour is due.
pub fn timer_at(slot: Slot<'_>) -> u64 {
    slot.get(layout::DUE_AT).saturating_sub(slot.get(layout::LAG))
}

/// The handler's interface to the machine.
pub trait Machine {
    /// The current time in nanoseconds, on the clock of the detours; never decreases.
    fn now(&mut self) -> u64;
    /// Whether the process with this number exists.
    fn is_alive(&mut self, pid: u64) -> bool;
}

/// Handles the signal of a thread's timer: makes the due detours. Returns whether the timer must be set again, for [`timer_at`].
#[must_use]
pub fn on_signal(shared: Shared<'_>, slot: Slot<'_>, machine: &mut impl Machine) -> bool {
    let mut now = machine.now();
    if slot.get(layout::TRIAL) != 0 {
        slot.set(layout::TRIAL_READINGS, now);
        slot.set(layout::TRIAL_READINGS + 1, machine.now());
        slot.set(layout::TRIAL, 2);
        return false;
    }
    let Some(circle) = shared.circle(slot.get(layout::CIRCLE)) else { return false };
    let (lag, shortest) = (slot.get(layout::LAG), slot.shortest());
    let mut joined = false;
    // The first one is due; of the later ones, each whose time has come meanwhile.
    let mut slack = lag + EARLY_NS;
    loop {
        if is_over(shared, slot, now, machine) {
            return false;
        }
        let (due, length) = (slot.get(layout::DUE_AT), slot.get(layout::DUE_LENGTH));
        if now + slack < due {
            break;
        }
        books::due(slot, due, length);
        if now >= due + length {
            slot.add(layout::MISSED, 1);
        } else {
            // One that starts right after another has no entry of its own, and they share the exit.
            let (entry, cost) = if joined { (0, 0) } else { (slot.get(layout::ENTRY), shortest) };
            let (first, burn) = (now, length.saturating_sub(cost));
            let mut looked = now;
            while now - first < burn {
                now = machine.now();
                if now - looked >= LOOK_WITHIN_NS {
                    looked = now;
                    if look(shared, machine) {
                        break;
                    }
                }
            }
            slot.add(layout::JOINED, u64::from(joined));
            books::delivered(slot, due, first - entry, now - first + cost);
            joined = true;
        }
        advance(slot, circle);
        // The next one's signal would arrive before the program continues.
        slack = lag + shortest;
    }
    slot.set(layout::SEEN_AT, now);
    true
}

/// Whether there must be no more detours, because they were stopped or their maker has ended.
fn is_over(shared: Shared<'_>, slot: Slot<'_>, now: u64, machine: &mut impl Machine) -> bool {
    if now.saturating_sub(slot.get(layout::LOOKED_AT)) > LOOK_NS {
        slot.set(layout::LOOKED_AT, now);
        return look(shared, machine);
    }
    shared.get(layout::STOP) != 0
}

/// Checks that the maker exists, because there must be no detours without it; returns whether they are over.
fn look(shared: Shared<'_>, machine: &mut impl Machine) -> bool {
    if !machine.is_alive(shared.get(layout::MAKER)) {
        shared.set(layout::STOP, 1);
    }
    shared.get(layout::STOP) != 0
}

/// Whether the noise can be made as requested, with the cost of a signal from the slot. If not, stores the reason in the header.
pub fn is_possible(shared: Shared<'_>, slot: Slot<'_>) -> bool {
    let shortest = slot.shortest();
    let room = shortest + slot.get(layout::LAG);
    let (status, limit) = if shared.get(layout::SHORTEST) < shortest {
        (layout::STATUS_SHORT, shortest)
    } else if shared.get(layout::EXACT) != 0 && shared.get(layout::NARROWEST) < room {
        (layout::STATUS_CLOSE, room)
    } else {
        return true;
    };
    shared.set(layout::LIMIT, limit);
    shared.set(layout::STATUS, status);
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::tests::prepared;

    /// A machine whose clock takes one step with every reading.
    struct Simulated {
        now: u64,
        step: u64,
        maker_ends_at: u64,
        looks: u64,
    }

    impl Simulated {
        fn new(now: u64, step: u64) -> Self {
            Self { now, step, maker_ends_at: u64::MAX, looks: 0 }
        }
    }

    impl Machine for Simulated {
        fn now(&mut self) -> u64 {
            self.now += self.step;
            self.now
        }

        fn is_alive(&mut self, pid: u64) -> bool {
            assert_eq!(pid, 4_711);
            self.looks += 1;
            self.now < self.maker_ends_at
        }
    }

    /// Memory whose circle starts at the wall clock's place.
    fn shared(words: &[core::sync::atomic::AtomicU64]) -> Shared<'_> {
        let shared = Shared::new(words).unwrap();
        shared.set(layout::MAKER, 4_711);
        shared.set(layout::SYNCHRONIZED, 1);
        shared
    }

    fn at(now: u64, wall: u64) -> Begin {
        Begin { order: 0, now, wall }
    }

    fn toll(slot: Slot<'_>, lag: u64, entry: u64, exit: u64) {
        for (word, value) in [(layout::LAG, lag), (layout::ENTRY, entry), (layout::EXIT, exit)] {
            slot.set(word, value);
        }
    }

    /// The signals of a thread until an instant: each arrives at the set time, and takes effect after the lag and the entry. Returns the start and
    /// the length of what each took from the thread.
    fn played(shared: Shared<'_>, slot: Slot<'_>, machine: &mut Simulated, until: u64) -> Vec<(u64, u64)> {
        let [lag, entry, exit] = [layout::LAG, layout::ENTRY, layout::EXIT].map(|word| slot.get(word));
        let mut lost = Vec::new();
        while timer_at(slot) < until {
            let start = machine.now.max(timer_at(slot) + lag);
            machine.now = start + entry - machine.step;
            let goes_on = on_signal(shared, slot, machine);
            machine.now += exit;
            lost.push((start, machine.now - start));
            if !goes_on {
                break;
            }
        }
        lost
    }

    #[test]
    fn a_program_loses_the_detours_of_its_circle_lap_by_lap() {
        let words = prepared(&[(100_000, &[(10_000, 5_000), (60_000, 7_000)])]);
        let shared = shared(&words);
        let slot = shared.slot(2).unwrap();
        toll(slot, 900, 300, 200);
        assert!(begin(shared, slot, at(1_000_000, 361_000)));
        let lost = played(shared, slot, &mut Simulated::new(1_000_000, 1), 1_200_000);
        assert_eq!(lost, [(1_049_000, 5_000), (1_099_000, 7_000), (1_149_000, 5_000), (1_199_000, 7_000)]);
        assert_eq!((slot.get(layout::DUE), slot.get(layout::DELIVERED)), (4, 4));
        assert_eq!((slot.get(layout::MISSED), slot.get(layout::JOINED), slot.get(layout::LATE)), (0, 0, 4));
    }

    #[test]
    fn what_is_too_short_is_left_out_and_counted() {
        let words = prepared(&[(100_000, &[(10_000, 400), (60_000, 7_000), (80_000, 499)])]);
        let shared = shared(&words);
        let slot = shared.slot(0).unwrap();
        toll(slot, 0, 300, 200);
        assert!(begin(shared, slot, at(0, 0)));
        let lost = played(shared, slot, &mut Simulated::new(0, 1), 200_000);
        assert_eq!(lost, [(60_000, 7_000), (160_000, 7_000)]);
        // Before each of them, and before the one that is due then.
        assert_eq!((slot.get(layout::LEFT_OUT), slot.get(layout::LEFT_OUT_NS)), (5, 3 * 400 + 2 * 499));
        toll(slot, 0, 300, 7_000);
        assert!(!begin(shared, slot, at(0, 0)));
    }

    #[test]
    fn detours_without_room_between_them_are_one_signal() {
        let words = prepared(&[(100_000, &[(10_000, 5_000), (15_100, 2_000), (17_000, 1_000)])]);
        let shared = shared(&words);
        let slot = shared.slot(0).unwrap();
        toll(slot, 100, 300, 200);
        assert!(begin(shared, slot, at(0, 0)));
        let lost = played(shared, slot, &mut Simulated::new(0, 1), 100_000);
        // The time is that of all of them.
        assert_eq!(lost, [(10_000, 8_000)]);
        assert_eq!((slot.get(layout::DELIVERED), slot.get(layout::JOINED), slot.get(layout::MISSED)), (3, 2, 0));
    }

    #[test]
    fn detours_whose_time_is_over_are_missed() {
        let words = prepared(&[(10_000, &[(1_000, 500)])]);
        let shared = shared(&words);
        let slot = shared.slot(0).unwrap();
        assert!(begin(shared, slot, at(0, 0)));
        // Another thread had the CPU for four and a half laps.
        assert!(on_signal(shared, slot, &mut Simulated::new(46_000, 1)));
        assert_eq!((slot.get(layout::DUE), slot.get(layout::DELIVERED), slot.get(layout::MISSED)), (5, 0, 5));
        assert_eq!(timer_at(slot), 51_000);
    }

    #[test]
    fn noise_ends_when_it_is_stopped_or_its_maker_is_gone() {
        let words = prepared(&[(10_000_000, &[(1_000, 500)])]);
        let shared = shared(&words);
        let slot = shared.slot(0).unwrap();
        assert!(begin(shared, slot, at(0, 0)));
        let mut machine = Simulated::new(0, 10);
        assert_eq!(played(shared, slot, &mut machine, 10 * LOOK_NS).len(), 100);
        assert_eq!(machine.looks, 9);
        machine.maker_ends_at = 0;
        assert!(played(shared, slot, &mut machine, u64::MAX).len() <= LOOK_NS as usize / 10_000_000 + 1);
        assert_eq!(shared.get(layout::STOP), 1);
        assert!(!on_signal(shared, slot, &mut machine));
    }

    #[test]
    fn a_detour_ends_when_it_is_stopped_or_its_maker_is_gone() {
        const SECOND: u64 = 1_000_000_000;
        let words = prepared(&[(10 * SECOND, &[(1_000_000, 5 * SECOND)])]);
        let shared = shared(&words);
        let slot = shared.slot(0).unwrap();
        assert!(begin(shared, slot, at(0, 0)));
        let mut machine = Simulated { maker_ends_at: 2 * SECOND, ..Simulated::new(0, 100_000) };
        let lost = played(shared, slot, &mut machine, u64::MAX);
        assert_eq!(lost.len(), 1);
        assert!((2 * SECOND..2 * SECOND + 3_000_000).contains(&(lost[0].0 + lost[0].1)), "{lost:?}");
        // The delivered time is what the thread lost, not what was due.
        assert!(slot.get(layout::DELIVERED + 1) <= lost[0].1 && slot.get(layout::DUE + 1) == 5 * SECOND);
        assert_eq!(shared.get(layout::STOP), 1);
        // The maker is there, and wants no more.
        assert!(begin(shared, slot, at(0, 0)));
        shared.set(layout::STOP, 0);
        struct Stopped<'a>(Simulated, Shared<'a>);
        impl Machine for Stopped<'_> {
            fn now(&mut self) -> u64 {
                let now = self.0.now();
                self.1.set(layout::STOP, u64::from(now > SECOND));
                now
            }

            fn is_alive(&mut self, pid: u64) -> bool {
                self.0.is_alive(pid)
            }
        }
        let mut machine = Stopped(Simulated::new(1_000_000, 100_000), shared);
        assert!(!on_signal(shared, slot, &mut machine));
        assert!((SECOND..SECOND + 3_000_000).contains(&machine.0.now), "{}", machine.0.now);
    }

    #[test]
    fn threads_take_the_circles_in_turn_and_places_of_their_own() {
        let words = prepared(&[(1_000_000, &[(1_000, 500)]), (2_000_000, &[(1_000, 500)])]);
        let shared = shared(&words);
        shared.set(layout::SYNCHRONIZED, 0);
        let mut due: Vec<u64> = (0..8)
            .map(|order| {
                let slot = shared.slot(order as usize).unwrap();
                assert!(begin(shared, slot, Begin { order, now: 5_000_000, wall: 0 }));
                assert_eq!(slot.get(layout::CIRCLE), order % 2);
                let length = 1_000_000 * (1 + order % 2);
                assert!((5_000_000..5_000_000 + length).contains(&slot.get(layout::DUE_AT)));
                slot.get(layout::DUE_AT)
            })
            .collect();
        due.sort_unstable();
        due.dedup();
        assert_eq!(due.len(), 8);
    }

    #[test]
    fn a_trial_is_only_read() {
        let words = prepared(&[(10_000, &[(1_000, 500)])]);
        let shared = Shared::new(&words).unwrap();
        let slot = shared.slot(0).unwrap();
        slot.set(layout::TRIAL, 1);
        assert!(!on_signal(shared, slot, &mut Simulated::new(0, 7)));
        let readings = [layout::TRIAL_READINGS, layout::TRIAL_READINGS + 1].map(|word| slot.get(word));
        assert_eq!((slot.get(layout::TRIAL), readings), (2, [7, 14]));
        assert_eq!(slot.get(layout::DUE), 0);
    }

    #[test]
    fn noise_that_cannot_be_made_exactly_is_refused_where_that_is_asked_for() {
        let words = prepared(&[]);
        let shared = Shared::new(&words).unwrap();
        let slot = shared.slot(0).unwrap();
        toll(slot, 900, 300, 200);
        let asked = |shortest, narrowest, exact| {
            for (word, value) in [
                (layout::SHORTEST, shortest),
                (layout::NARROWEST, narrowest),
                (layout::EXACT, exact),
                (layout::LIMIT, 0),
            ] {
                shared.set(word, value);
            }
            shared.set(layout::STATUS, layout::STATUS_FINE);
            (is_possible(shared, slot), shared.get(layout::STATUS), shared.get(layout::LIMIT))
        };
        assert_eq!(asked(500, 1_400, 1), (true, layout::STATUS_FINE, 0));
        assert_eq!(asked(499, 9_999, 1), (false, layout::STATUS_SHORT, 500));
        assert_eq!(asked(500, 1_399, 1), (false, layout::STATUS_CLOSE, 1_400));
        assert_eq!(asked(500, 1_399, 0), (true, layout::STATUS_FINE, 0));
        assert_eq!(asked(499, 9_999, 0), (false, layout::STATUS_SHORT, 500));
    }
}
