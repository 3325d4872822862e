//! Decides when the next window may run: once the process's total CPU time, plus the expected cost of a window, is within the budget.
//!
//! The kernel counts everything since the start of the process: setup, windows, alerts. Responses to requests have an allowance of their own, so no
//! request keeps the watch from observing. The budget is earned before it is spent: the trace is set up once that is affordable, and then the first
//! window runs, with an assumed cost. The only exceptions are the start of the process itself, and a window that costs more than expected.

use std::time::{Duration, Instant};

use becalm_units::{Nanos, Share};

/// The budget and its use.
#[derive(Clone, Copy, Debug)]
pub struct Schedule {
    budget: Share,
    /// The cost of the most expensive recent window; decays by a sixteenth with each cheaper one.
    expected: Nanos,
    /// The cost of recordings after alerts since the start: windows wait for them, the trace does not.
    alerts: Nanos,
    /// Whether something was recorded out of turn since the last window.
    is_owed: bool,
}

/// The assumed cost of a window's setup, reading the kernel's names and storing, until one was measured.
const SET_UP: Nanos = Nanos::from_millis(60);

impl Schedule {
    /// A budget of this share of one CPU, not used yet, and windows of this length.
    pub fn new(budget: Share, window: Nanos) -> Self {
        Self { budget, expected: window + SET_UP, alerts: Nanos::ZERO, is_owed: false }
    }

    /// Sets the budget and the length of windows from now on.
    pub fn set(&mut self, budget: Share, window: Nanos) {
        self.budget = budget;
        // The cost of shorter windows will be measured.
        self.expected = self.expected.max(window);
    }

    /// Whether a window may run after the process has run for `elapsed` and used `cpu`.
    pub fn is_due(&self, cpu: Nanos, elapsed: Nanos) -> bool {
        self.affords(self.expected, cpu, elapsed)
    }

    /// Whether something with this cost is affordable then.
    pub fn affords(&self, cost: Nanos, cpu: Nanos, elapsed: Nanos) -> bool {
        (cpu.get().saturating_add(cost.get())) as f64 <= self.budget.ratio() * elapsed.get() as f64
    }

    /// Whether the total without alerts is within the budget, so the trace may be on: windows may have left less than its half.
    pub fn is_within(&self, cpu: Nanos, elapsed: Nanos) -> bool {
        self.affords(Nanos::ZERO - self.alerts - ADVANCE, cpu, elapsed)
    }

    /// Charges the CPU time of recording after an alert.
    pub fn took_for_alert(&mut self, cpu: Nanos) {
        self.alerts += cpu;
    }

    /// Charges the CPU time of a window and its consequences.
    pub fn took(&mut self, cpu: Nanos) {
        self.is_owed = false;
        let faded = Nanos::new(self.expected.get() - self.expected.get() / 16);
        self.expected = faded.max(cpu);
    }

    /// Whether something else may be recorded now: within the budget of a window, and with at least one window in between, so frequent alerts do not
    /// displace windows.
    pub fn is_due_out_of_turn(&self, cpu: Nanos, elapsed: Nanos) -> bool {
        !self.is_owed && self.is_due(cpu, elapsed)
    }

    /// Notes a recording out of turn: the next one must wait for a window.
    pub const fn took_out_of_turn(&mut self) {
        self.is_owed = true;
    }
}

/// The allowance of the standing trace: half of the budget, to leave time for windows.
///
/// It counts the cost of setup, the cost of events for the threads that they interrupt, which no kernel counts, and the cost of reading. Once that
/// exceeds the share, the trace rests until it is paid off, plus as much as its last active phase cost.
#[derive(Clone, Copy, Debug)]
pub struct Allowance {
    share: f64,
    spent: Nanos,
    /// Since it was last switched on.
    phase: Nanos,
}

/// The excess over its share that the trace may use before it rests, because nothing is saved at the start.
const ADVANCE: Nanos = Nanos::from_millis(2);

impl Allowance {
    /// Half of this budget, not used yet.
    pub const fn half_of(budget: Share) -> Self {
        Self { share: budget.ratio() / 2.0, spent: Nanos::ZERO, phase: Nanos::ZERO }
    }

    /// Sets it to half of this budget from now on.
    pub const fn set_budget(&mut self, budget: Share) {
        self.share = budget.ratio() / 2.0;
    }

    /// Charges a cost of the trace.
    pub fn spend(&mut self, cost: Nanos) {
        self.spent += cost;
        self.phase += cost;
    }

    /// Charges the trace's setup, which is paid off before it is switched on.
    pub fn begin(&mut self, cost: Nanos) {
        self.spent += cost;
        self.phase = Nanos::ZERO;
    }

    /// Whether the trace may stay on.
    pub fn may_go_on(&self, elapsed: Nanos) -> bool {
        self.spent <= self.earned(elapsed) + ADVANCE
    }

    /// Whether the trace may be switched on again. If so, assumes that it is.
    pub fn may_begin(&mut self, elapsed: Nanos) -> bool {
        let may = self.spent + self.phase <= self.earned(elapsed) + ADVANCE;
        if may {
            self.phase = Nanos::ZERO;
        }
        may
    }

    fn earned(&self, elapsed: Nanos) -> Nanos {
        Nanos::new((self.share * elapsed.get() as f64) as i64)
    }
}

/// The allowance of responses to requests: a share of one CPU equal to the budget, and at least [`LEAST`]. Observing neither pays for responses nor
/// waits for them. Clients that request too much have to wait.
///
/// An unused allowance is saved, up to [`SAVED`]. The debt is at most the cost of one turn of the server.
#[derive(Clone, Copy, Debug)]
pub struct AnswerAllowance {
    saved: Nanos,
    taken: Nanos,
    looked: Instant,
}

/// The maximum savings: enough for thousands of responses.
const SAVED: Nanos = Nanos::from_millis(500);

/// The minimum share of one CPU for responses: about a hundred reads per minute.
const LEAST: f64 = 0.001;

impl AnswerAllowance {
    /// Starts with the maximum savings.
    pub fn new() -> Self {
        Self { saved: SAVED, taken: Nanos::ZERO, looked: Instant::now() }
    }

    /// Whether more than half of the savings is used.
    pub fn is_scarce(&self) -> bool {
        self.saved < Nanos::new(SAVED.get() / 2)
    }

    /// How long the server must rest after responses have used this much CPU time since the start; `None` if that is within the allowance.
    pub fn rest(&mut self, budget: Share, taken: Nanos, now: Instant) -> Option<Duration> {
        let share = budget.ratio().max(LEAST);
        let passed = now.saturating_duration_since(self.looked).as_nanos() as f64;
        let saved = self.saved + Nanos::new((share * passed) as i64) - (taken - self.taken);
        (self.saved, self.taken, self.looked) = (saved.min(SAVED), taken, now);
        (saved < Nanos::ZERO).then(|| Duration::from_nanos((-saved.get() as f64 / share) as u64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Consecutive intervals of ten seconds: in how many of a thousand the trace is on if one costs this much, and the total cost.
    fn traced(cost: Nanos) -> (u32, Nanos) {
        let mut allowance = Allowance::half_of(Share::from_per_mille(1));
        let (mut is_on, mut count, mut spent) = (true, 0, Nanos::ZERO);
        for interval in 1..=1_000 {
            let elapsed = Nanos::from_secs(10 * interval);
            if is_on {
                allowance.spend(cost);
                spent += cost;
                count += 1;
                is_on = allowance.may_go_on(elapsed);
            } else {
                is_on = allowance.may_begin(elapsed);
            }
        }
        (count, spent)
    }

    #[test]
    fn the_trace_is_on_all_the_time_where_little_happens_and_else_as_much_as_it_may() {
        // Half of a thousandth of ten seconds is 5 ms.
        assert_eq!(traced(Nanos::from_millis(4)).0, 1_000);
        for millis in [6, 20, 300] {
            let (count, spent) = traced(Nanos::from_millis(millis));
            assert!((1..1_000).contains(&count), "{millis}: {count}");
            assert!(spent <= Nanos::from_secs(5) + Nanos::from_millis(millis + 2), "{millis}: {spent}");
            assert!(spent >= Nanos::from_secs(4), "{millis}: {spent}");
        }
    }

    #[test]
    fn the_trace_is_switched_on_once_half_of_the_budget_has_paid_for_setting_it_up() {
        let mut allowance = Allowance::half_of(Share::from_per_mille(1));
        allowance.begin(Nanos::from_millis(62));
        assert!(!allowance.may_begin(Nanos::from_secs(119)) && allowance.may_begin(Nanos::from_secs(120)));
    }

    #[test]
    fn answers_take_a_share_of_their_own_on_average_however_many_are_asked_for() {
        for (per_mille, share) in [(1, 0.001), (50, 0.05)] {
            let budget = Share::from_per_mille(per_mille);
            let (began, mut allowance) = (Instant::now(), AnswerAllowance::new());
            let (mut passed, mut taken, mut rested) = (Duration::ZERO, Nanos::ZERO, Duration::ZERO);
            for _ in 0..20_000 {
                // A turn of 1 ms, back to back.
                passed += Duration::from_millis(1);
                taken += Nanos::from_millis(1);
                if let Some(rest) = allowance.rest(budget, taken, began + passed) {
                    assert!(allowance.is_scarce() && rest.as_secs_f64() <= 0.001 / share, "{rest:?}");
                    passed += rest;
                    rested += rest;
                }
            }
            let most = share * passed.as_secs_f64() + 0.502;
            assert!(rested > Duration::from_secs(300) && taken.get() as f64 / 1e9 <= most, "{taken} in {passed:?}");
            // After a while without requests, the allowance has recovered.
            passed += Duration::from_secs(2_000);
            assert!(allowance.rest(budget, taken, began + passed).is_none() && !allowance.is_scarce());
        }
    }

    #[test]
    fn between_two_alerts_out_of_turn_comes_a_window() {
        let mut schedule = Schedule::new(Share::from_per_mille(1), Nanos::from_millis(200));
        let hour = Nanos::from_secs(3_600);
        assert!(schedule.is_due_out_of_turn(Nanos::ZERO, hour));
        schedule.took_out_of_turn();
        assert!(!schedule.is_due_out_of_turn(Nanos::ZERO, hour) && schedule.is_due(Nanos::ZERO, hour));
        schedule.took(Nanos::from_secs(1));
        assert!(schedule.is_due_out_of_turn(Nanos::ZERO, hour) && !schedule.is_due(Nanos::from_secs(3), hour));
    }

    #[test]
    fn the_trace_has_what_windows_left_and_does_not_wait_for_alerts() {
        let mut schedule = Schedule::new(Share::from_per_mille(1), Nanos::from_millis(200));
        let within = |schedule: &Schedule, cpu| schedule.is_within(Nanos::from_millis(cpu), Nanos::from_secs(1_000));
        assert!(within(&schedule, 1_001) && !within(&schedule, 1_003));
        schedule.took_for_alert(Nanos::from_millis(500));
        assert!(within(&schedule, 1_501) && !within(&schedule, 1_503));
        assert!(!schedule.is_due(Nanos::from_millis(900), Nanos::from_secs(1_000)));
    }

    #[test]
    fn the_first_window_is_saved_for_and_a_longer_one_after_a_reload_too() {
        let budget = Share::from_per_mille(1);
        let mut schedule = Schedule::new(budget, Nanos::from_millis(200));
        let start = Nanos::from_millis(10);
        assert!(!schedule.is_due(Nanos::ZERO, Nanos::from_secs(1)) && !schedule.is_due(start, Nanos::from_secs(269)));
        assert!(schedule.is_due(start, Nanos::from_secs(270)));
        schedule.took(Nanos::from_millis(190));
        schedule.set(budget, Nanos::from_secs(2));
        assert!(!schedule.is_due(Nanos::from_millis(200), Nanos::from_secs(2_199)));
        assert!(schedule.is_due(Nanos::from_millis(200), Nanos::from_secs(2_200)));
    }

    proptest! {
        /// For any costs of windows, the average after each is within the budget, unless the window cost more than first assumed and more than its
        /// predecessors suggested.
        #[test]
        fn the_average_stays_within_the_budget(costs in prop::collection::vec(1_i64..1_000_000_000, 1..40), per_mille in 1_u32..100) {
            let budget: Share = format!("{}%", f64::from(per_mille) / 10.0).parse().unwrap();
            let window = Nanos::from_millis(20);
            let mut schedule = Schedule::new(budget, window);
            let (mut cpu, mut elapsed, mut dearest) = (0_i64, 1_i64, (window + SET_UP).get());
            for (number, cost) in costs.iter().enumerate() {
                while !schedule.is_due(Nanos::new(cpu), Nanos::new(elapsed)) {
                    elapsed += 1_000_000_000;
                }
                cpu += cost;
                schedule.took(Nanos::new(*cost));
                let over = cpu as f64 - budget.ratio() * elapsed as f64;
                // The expectation has decayed since the most expensive window.
                let surprise = (*cost as f64 - dearest as f64 * 0.9375_f64.powi(number as i32) + number as f64 * 16.0).max(0.0);
                prop_assert!(over <= surprise.max(1.0), "{} over with a surprise of {}", over, surprise);
                dearest = dearest.max(*cost);
            }
        }
    }
}
