//! Repairs switches that the kernel's trace of a CPU lacks.
//!
//! An event written by another thread than the last switch brought shows that a switch is missing between the event before and this one. The next
//! account of that thread's run time tells when it came: its time less the run time. If the idle thread came, the thread before left right after its
//! last account.

use std::collections::VecDeque;

use becalm_model::{Event, Happening, Life, Pid, ThreadState};
use becalm_units::Nanos;

/// No thread: the one on the CPU is not known.
pub(super) const UNKNOWN_THREAD: Pid = Pid(-1);

/// An account that comes later than this is not awaited: the tick accounts at least every 10 ms.
const PATIENCE: Nanos = Nanos::from_millis(20);
/// Nor after this many events.
const MOST_HELD: usize = 4_096;

/// Missing switches of one CPU.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct MissingSwitches {
    /// Those whose instant was found.
    pub repaired: u64,
    /// The others.
    pub unknown: u64,
    /// The time around the others: the thread on the CPU is unknown.
    pub unknown_time: Nanos,
}

/// Passes on the events of one CPU, in order of time, with a switch where one is missing: from a thread that left in
/// [`ThreadState::UNKNOWN`]. If the instant is not found, the CPU has no thread between the two events.
#[derive(Clone, Debug, Default)]
pub struct SwitchRepair {
    /// The thread on the CPU; `None` if unknown.
    current: Option<Pid>,
    last: Option<Event>,
    /// The thread that is there without a switch; its events are held.
    found: Option<Pid>,
    held: VecDeque<Event>,
    tally: MissingSwitches,
}

impl SwitchRepair {
    /// Takes an event, and passes those that are complete.
    pub fn take(&mut self, event: Event, pass: &mut impl FnMut(Event)) {
        self.held.push_back(event);
        self.go_on(false, pass);
    }

    /// Passes all events that are held.
    pub fn finish(&mut self, pass: &mut impl FnMut(Event)) {
        self.go_on(true, pass);
    }

    /// The last event before those that are held; `None` if none is held.
    pub fn held_since(&self) -> Option<Nanos> {
        self.held.front().map(|first| self.last.map_or(first.time, |last| last.time))
    }

    /// The missing switches so far.
    pub const fn tally(&self) -> MissingSwitches {
        self.tally
    }

    fn go_on(&mut self, is_end: bool, pass: &mut impl FnMut(Event)) {
        loop {
            if self.found.is_some() {
                let Some(came) = self.came(is_end) else { return };
                self.bring(came, pass);
            }
            let Some(event) = self.held.pop_front() else { return };
            if matches!(event.what, Happening::Lost { .. }) {
                self.current = None;
            } else if self.current.is_some_and(|current| current != event.thread) {
                self.found = Some(event.thread);
                self.held.push_front(event);
                continue;
            } else {
                self.current = Some(event.thread);
            }
            if let Happening::Switch { next, .. } = event.what {
                self.current = Some(next);
            }
            self.last = Some(event);
            pass(event);
        }
    }

    /// When the found thread came: `Some(None)` if that stays unknown, `None` if a later event may show it.
    fn came(&self, is_end: bool) -> Option<Option<Nanos>> {
        let (Some(found), Some(last), Some(first)) = (self.found, self.last, self.held.front()) else {
            return Some(None);
        };
        if found == Pid::IDLE {
            let left = matches!(last.what, Happening::Life(Life::Accounted { thread, .. }) if thread == last.thread);
            return Some(left.then_some(last.time));
        }
        for event in &self.held {
            match event.what {
                Happening::Life(Life::Accounted { thread, ran }) if thread == found && event.thread == found => {
                    let came = event.time.checked_sub(ran).unwrap_or(last.time);
                    return Some(Some(came.max(last.time).min(first.time)));
                }
                Happening::Switch { .. } | Happening::Lost { .. } => return Some(None),
                _ if event.thread != found || event.time - first.time > PATIENCE => return Some(None),
                _ => {}
            }
        }
        (is_end || self.held.len() >= MOST_HELD).then_some(None)
    }

    /// Passes the missing switch.
    fn bring(&mut self, came: Option<Nanos>, pass: &mut impl FnMut(Event)) {
        let (Some(next), Some(last), Some(prev)) = (self.found.take(), self.last, self.current) else { return };
        let prev_state = ThreadState::UNKNOWN;
        let switch = |time, prev, next| Event {
            time,
            thread: prev,
            in_interrupt: false,
            what: Happening::Switch { prev, prev_state, next },
        };
        match came {
            Some(came) => {
                self.tally.repaired += 1;
                pass(switch(came, prev, next));
            }
            None => {
                let until = self.held.front().map_or(last.time, |event| event.time);
                self.tally.unknown += 1;
                self.tally.unknown_time += until - last.time;
                pass(switch(last.time, prev, UNKNOWN_THREAD));
                pass(switch(until, UNKNOWN_THREAD, next));
            }
        }
        self.current = Some(next);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOOP: Pid = Pid(7);
    const OTHER: Pid = Pid(9);

    fn at(time: i64, thread: Pid, what: Happening) -> Event {
        Event { time: Nanos::new(time), thread, in_interrupt: false, what }
    }

    fn accounted(time: i64, thread: Pid, ran: i64) -> Event {
        at(time, thread, Happening::Life(Life::Accounted { thread, ran: Nanos::new(ran) }))
    }

    fn waking(time: i64, thread: Pid) -> Event {
        at(time, thread, Happening::Waking { thread: Pid(1) })
    }

    fn switch(time: i64, prev: Pid, prev_state: ThreadState, next: Pid) -> Event {
        at(time, prev, Happening::Switch { prev, prev_state, next })
    }

    fn repaired(events: &[Event]) -> (Vec<Event>, MissingSwitches) {
        let (mut repair, mut passed) = (SwitchRepair::default(), Vec::new());
        events.iter().for_each(|event| repair.take(*event, &mut |event| passed.push(event)));
        repair.finish(&mut |event| passed.push(event));
        (passed, repair.tally())
    }

    #[test]
    fn a_complete_trace_passes_unchanged() {
        let events = [
            switch(10, LOOP, ThreadState::RUNNABLE, OTHER),
            waking(20, OTHER),
            switch(30, OTHER, ThreadState::SLEEPING, Pid::IDLE),
            switch(40, Pid::IDLE, ThreadState::RUNNABLE, LOOP),
        ];
        assert_eq!(repaired(&events), (events.to_vec(), MissingSwitches::default()));
    }

    #[test]
    fn the_next_account_tells_when_a_thread_came() {
        let events = [waking(100, LOOP), waking(900, OTHER), accounted(1_000, OTHER, 700), waking(1_100, OTHER)];
        let (passed, tally) = repaired(&events);
        assert_eq!(passed[1], switch(300, LOOP, ThreadState::UNKNOWN, OTHER));
        assert_eq!((passed.len(), tally), (5, MissingSwitches { repaired: 1, ..MissingSwitches::default() }));
        // It cannot have come before the event that another thread wrote, nor after its own first one.
        for (ran, came) in [(5_000, 100), (10, 900)] {
            let (passed, _) = repaired(&[waking(100, LOOP), waking(900, OTHER), accounted(1_000, OTHER, ran)]);
            assert_eq!(passed[1].time.get(), came);
        }
    }

    #[test]
    fn a_thread_leaves_for_idle_right_after_its_last_account() {
        let events = [accounted(500, LOOP, 100), waking(900, Pid::IDLE)];
        let (passed, tally) = repaired(&events);
        assert_eq!(passed[1], switch(500, LOOP, ThreadState::UNKNOWN, Pid::IDLE));
        assert_eq!(tally.repaired, 1);
    }

    #[test]
    fn without_an_account_the_thread_on_the_cpu_is_unknown() {
        let events = [waking(100, LOOP), waking(900, OTHER), switch(950, OTHER, ThreadState::SLEEPING, LOOP)];
        let (passed, tally) = repaired(&events);
        assert_eq!(
            passed[1..3],
            [
                switch(100, LOOP, ThreadState::UNKNOWN, UNKNOWN_THREAD),
                switch(900, UNKNOWN_THREAD, ThreadState::UNKNOWN, OTHER)
            ]
        );
        assert_eq!((tally.unknown, tally.unknown_time.get()), (1, 800));
    }
}
