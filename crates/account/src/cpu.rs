//! The account of one CPU.

use std::collections::VecDeque;

use crate::{Balance, Owner};

/// Takes the detours of one CPU in order of time, and before each of them its activities. All activities may also come first.
#[derive(Clone, Default, Debug)]
pub struct CpuAccount {
    counts_becalm: bool,
    detours: u64,
    /// Becalm's own time in detours that are still to come, in ascending order.
    own: VecDeque<(u64, i64)>,
    own_ns: i64,
    own_longest_ns: i64,
    balance: Balance,
}

impl CpuAccount {
    /// An account that counts becalm's own time as noise of the machine, or does not.
    pub fn new(counts_becalm: bool) -> Self {
        Self { counts_becalm, ..Self::default() }
    }

    /// Takes an activity of a detour; the numbers of detours must not decrease. Returns whether the activity counts: false if it is
    /// becalm's own.
    #[inline]
    pub fn activity(&mut self, detour: u64, self_ns: i64, owner: Owner) -> bool {
        self.balance.activity(detour, self_ns);
        if !owner.is_becalms || self.counts_becalm {
            return true;
        }
        self.own_ns = self.own_ns.saturating_add(self_ns);
        match self.own.back_mut() {
            Some((last, sum)) if *last == detour => *sum = sum.saturating_add(self_ns),
            _ => self.own.push_back((detour, self_ns)),
        }
        self.own_longest_ns = self.own_longest_ns.max(self.own.back().map_or(0, |last| last.1));
        false
    }

    /// Takes the next detour. Returns its [`noise`].
    #[inline]
    pub fn detour(&mut self, duration_ns: i64) -> Option<i64> {
        let number = self.detours;
        self.detours += 1;
        self.balance.detour(number, duration_ns);
        // Activities that came after their detour are too late to be taken off.
        while self.own.front().is_some_and(|(first, _)| *first < number) {
            self.own.pop_front();
        }
        match self.own.front() {
            Some((first, own)) if *first == number => {
                let own = *own;
                self.own.pop_front();
                noise(duration_ns, own)
            }
            _ => Some(duration_ns),
        }
    }

    /// The number of detours taken, which is that of the next one.
    pub const fn detours(&self) -> u64 {
        self.detours
    }

    /// Becalm's own time in all detours, in nanoseconds.
    pub const fn own_ns(&self) -> i64 {
        self.own_ns
    }

    /// Becalm's largest own time in one detour, in nanoseconds.
    pub const fn own_longest_ns(&self) -> i64 {
        self.own_longest_ns
    }

    /// Whether every detour adds up, once all rows have been taken.
    pub const fn is_closed(&self) -> bool {
        self.balance.is_closed()
    }
}

/// The time of a detour without becalm's own, in nanoseconds; `None` if all of it was becalm's, because then the detour does not count.
#[inline]
pub fn noise(duration_ns: i64, own_ns: i64) -> Option<i64> {
    let left = duration_ns.saturating_sub(own_ns).max(0);
    (left > 0 || own_ns == 0).then_some(left)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SourceIds;
    use becalm_model::Kind;

    fn owners() -> [Owner; 2] {
        let mut ids = SourceIds::default();
        [(Kind::Irq, "tick"), (Kind::Becalm, "becalm")].map(|(kind, name)| Owner::itself(ids.id(kind, name), kind))
    }

    /// Own time that is 0 does not make a detour becalm's, and a detour of 0 ns counts.
    #[test]
    fn becalms_own_time_comes_off_and_the_rest_counts() {
        let [tick, own] = owners();
        let mut cpu = CpuAccount::new(false);
        let rows = [(0, 5_000, tick), (0, 70_000, own), (0, 1_000, own), (1, 40_000, own), (2, 6_000, tick)];
        let counted = rows.map(|(detour, ns, owner)| cpu.activity(detour, ns, owner));
        assert_eq!(counted, [true, false, false, false, true]);
        cpu.activity(3, 0, own);
        assert_eq!([76_000, 40_000, 6_000].map(|ns| cpu.detour(ns)), [Some(5_000), None, Some(6_000)]);
        assert_eq!([0, 0].map(|ns| cpu.detour(ns)), [Some(0), Some(0)]);
        assert_eq!((cpu.own_ns(), cpu.own_longest_ns(), cpu.detours()), (111_000, 71_000, 5));
        assert!(cpu.is_closed());
    }

    #[test]
    fn becalms_own_time_counts_where_it_is_asked_for() {
        let [tick, own] = owners();
        let mut cpu = CpuAccount::new(true);
        assert!(cpu.activity(0, 5_000, tick) && cpu.activity(0, 70_000, own));
        assert_eq!((cpu.detour(75_000), cpu.own_ns(), cpu.is_closed()), (Some(75_000), 0, true));
    }

    #[test]
    fn activities_may_come_detour_by_detour_or_all_at_first() {
        let [tick, own] = owners();
        let mut cpu = CpuAccount::new(false);
        for number in 0..3 {
            cpu.activity(number, 10, own);
            cpu.activity(number, 5, tick);
            assert_eq!(cpu.detour(15), Some(5));
        }
        assert_eq!((cpu.own_ns(), cpu.is_closed()), (30, true));
    }

    #[test]
    fn an_activity_that_comes_after_its_detour_does_not_hide_later_ones() {
        let [_, own] = owners();
        let mut cpu = CpuAccount::new(false);
        assert_eq!(cpu.detour(500), Some(500));
        cpu.activity(0, 400, own);
        cpu.activity(1, 300, own);
        assert_eq!((cpu.detour(1_000), cpu.own_ns()), (Some(700), 700));
    }

    #[test]
    fn a_wrong_self_time_opens_the_books() {
        let [tick, _] = owners();
        let mut cpu = CpuAccount::default();
        cpu.activity(0, 5_000, tick);
        cpu.detour(5_001);
        assert!(!cpu.is_closed());
    }
}
