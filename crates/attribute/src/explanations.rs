//! Observations of a CPU during gaps in the kernel's trace: counters read from outside, and the steps of its sibling thread.

use std::collections::VecDeque;

use becalm_model::unseen::{self, Watch};
use becalm_model::{Platform, Step};
use becalm_units::Nanos;

/// The kernel reports steal time in steps of 10 ms (`USER_HZ`), so it may be early or late by one step.
const STEAL_STEP: Nanos = Nanos::from_millis(10);

/// Observations that may explain steps without events. Each one explains at most one step.
#[derive(Debug, Default)]
pub(super) struct Explanations {
    /// The last observations that may still overlap a step, in order of time.
    watches: VecDeque<Watch>,
    /// The steps of the sibling that took 1 us or more, in order of time.
    sibling: VecDeque<Step>,
}

impl Explanations {
    /// Adds the observations since the last call.
    pub fn extend(&mut self, watches: &[Watch], sibling: &[Step]) {
        self.watches.extend(watches);
        let away = |step: &&Step| step.end - step.start >= unseen::SHORTEST_OF_SYSTEM;
        self.sibling.extend(sibling.iter().filter(away));
    }

    /// Drops observations that ended before `before`, because no earlier step will follow.
    pub fn forget(&mut self, before: Nanos) {
        while self.watches.front().is_some_and(|watch| watch.until <= before) {
            self.watches.pop_front();
        }
        while self.sibling.front().is_some_and(|step| step.end <= before) {
            self.sibling.pop_front();
        }
    }

    /// The source of a step without events, whose detour has that duration.
    pub fn source(&mut self, step: Step, duration: Nanos, platform: Platform) -> &'static str {
        self.forget(step.start);
        let usual = unseen::source(duration, platform);
        if usual != unseen::LONG {
            return if self.sibling_was_away(step) { unseen::SIBLING } else { usual };
        }
        match platform {
            Platform::Guest if self.take_steal(step, duration) => unseen::STOLEN,
            Platform::Metal if self.take_smi(step) => unseen::SMI,
            _ => usual,
        }
    }

    /// Whether the sibling was away from its loop for at least half of the step.
    fn sibling_was_away(&self, step: Step) -> bool {
        let overlap = |other: &Step| other.end.min(step.end) - other.start.max(step.start);
        let reached = self.sibling.iter().take_while(|other| other.start < step.end);
        let away: Nanos = reached.map(overlap).filter(|time| *time > Nanos::ZERO).sum();
        away + away >= step.end - step.start
    }

    /// Whether steal time grew by about the length of the step, while it lasted or until the next observation: the kernel accounts it at
    /// the next tick.
    fn take_steal(&mut self, step: Step, duration: Nanos) -> bool {
        let overlapping = self.watches.iter().take_while(|watch| watch.from < step.end).count();
        let reached = || 0..(overlapping + 1).min(self.watches.len());
        let admitted: Nanos = reached().map(|place| self.watches[place].steal).sum();
        if admitted <= Nanos::ZERO || duration > admitted + STEAL_STEP {
            return false;
        }
        let mut left = duration;
        for place in reached() {
            let watch = &mut self.watches[place];
            let taken = left.min(watch.steal);
            watch.steal -= taken;
            left -= taken;
        }
        true
    }

    /// Whether a system management interrupt was counted during the step that is not assigned to another one.
    fn take_smi(&mut self, step: Step) -> bool {
        let mut overlapping = self.watches.iter_mut().take_while(|watch| watch.from < step.end);
        let Some(watch) = overlapping.find(|watch| watch.smis > 0) else { return false };
        watch.smis -= 1;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use becalm_model::Platform::{Guest, Metal};

    fn micros(from: i64, length: i64) -> Step {
        Step { start: Nanos::from_micros(from), end: Nanos::from_micros(from + length) }
    }

    /// Looks every 100 ms, with the steal in ms and the SMIs between them.
    fn watched(grown: &[(i64, u64)]) -> Explanations {
        let watch = |(place, (steal, smis)): (i64, &(i64, u64))| Watch {
            from: Nanos::from_millis(100 * place),
            until: Nanos::from_millis(100 * (place + 1)),
            steal: Nanos::from_millis(*steal),
            smis: *smis,
        };
        let mut explanations = Explanations::default();
        explanations.extend(&(0..).zip(grown).map(watch).collect::<Vec<_>>(), &[]);
        explanations
    }

    fn source(explanations: &mut Explanations, from: i64, length: i64, platform: Platform) -> &'static str {
        let step = micros(from, length);
        explanations.source(step, step.end - step.start, platform)
    }

    #[test]
    fn steal_explains_about_as_much_as_was_admitted() {
        let mut explanations = watched(&[(0, 0), (0, 0), (20, 0), (0, 0), (0, 0)]);
        // Two intervals before the growth there was none.
        assert_eq!(source(&mut explanations, 50_000, 4_000, Guest), unseen::LONG);
        // The kernel may account it a tick later.
        assert_eq!(source(&mut explanations, 190_000, 8_000, Guest), unseen::STOLEN);
        // Much longer than what is left of it.
        assert_eq!(source(&mut explanations, 210_000, 30_000, Guest), unseen::LONG);
        assert_eq!(source(&mut explanations, 250_000, 15_000, Guest), unseen::STOLEN);
        // It is used up.
        assert_eq!(source(&mut explanations, 280_000, 50, Guest), unseen::LONG);
        assert_eq!(source(&mut explanations, 350_000, 50, Guest), unseen::LONG);
        // What is short is never the host's, and a machine without hypervisor has no steal.
        let mut explanations = watched(&[(20, 0)]);
        assert_eq!(source(&mut explanations, 10, 5, Guest), unseen::EXIT_TO_HOST);
        assert_eq!(source(&mut explanations, 100, 50, Metal), unseen::LONG);
    }

    #[test]
    fn a_management_interrupt_explains_one_long_step() {
        let mut explanations = watched(&[(0, 0), (0, 2), (0, 0)]);
        assert_eq!(source(&mut explanations, 50_000, 100, Metal), unseen::LONG);
        assert_eq!(source(&mut explanations, 110_000, 5, Metal), unseen::STALL);
        for expected in [unseen::SMI, unseen::SMI, unseen::LONG] {
            assert_eq!(source(&mut explanations, 150_000, 100, Metal), expected);
        }
        // One that reaches into the interval.
        let mut explanations = watched(&[(0, 0), (0, 1)]);
        assert_eq!(source(&mut explanations, 99_950, 100, Metal), unseen::SMI);
        let mut guest = watched(&[(0, 1)]);
        assert_eq!(source(&mut guest, 50, 100, Guest), unseen::LONG);
    }

    #[test]
    fn the_sibling_explains_what_it_lasts_for() {
        let mut explanations = Explanations::default();
        let brief = Step { start: Nanos::from_micros(50), end: Nanos::new(50_999) };
        explanations.extend(&[], &[micros(10, 4), brief, micros(100, 5), micros(106, 4)]);
        assert_eq!(source(&mut explanations, 8, 4, Metal), unseen::SIBLING);
        assert_eq!(source(&mut explanations, 13, 4, Metal), unseen::STALL);
        // It was away for less than 1 us.
        assert_eq!(source(&mut explanations, 50, 1, Metal), unseen::STALL);
        // Twice within the step, and more than half of it together.
        assert_eq!(source(&mut explanations, 102, 10, Guest), unseen::SIBLING);
        // A thread that shares a core is slow, and does not stand still for so long.
        explanations.extend(&[], &[micros(200, 100)]);
        assert_eq!(source(&mut explanations, 200, 100, Metal), unseen::LONG);
        explanations.forget(Nanos::from_millis(1));
        assert!(explanations.sibling.is_empty());
    }
}
