//! The cost of a signal for its thread, from trials: how late it arrives, and how long entering and leaving its handler takes.

/// The cost of one signal, in nanoseconds.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Toll {
    /// The time from the instant that the timer was set for until the program is interrupted.
    pub lag: u64,
    /// The time from then to the handler's first reading of the clock.
    pub entry: u64,
    /// The time from the handler's last reading until the program continues.
    pub exit: u64,
}

/// A trial's readings of the clock, in nanoseconds.
#[derive(Clone, Copy, Debug)]
pub struct Trial {
    /// The instant that the timer was set for.
    pub at: u64,
    /// The program's last reading before the signal.
    pub before: u64,
    /// The handler's first reading.
    pub first: u64,
    /// The handler's last reading, right after its first.
    pub last: u64,
    /// The program's first reading after the signal.
    pub after: u64,
}

impl Trial {
    /// The cost of the signal; `None` if the readings are not in order.
    pub fn toll(self) -> Option<Toll> {
        let Self { at, before, first, last, after } = self;
        (before <= first && last <= after).then(|| Toll {
            lag: before.saturating_sub(at),
            entry: first - before,
            exit: after - last,
        })
    }
}

/// The cost shown by trials: for each part, the end of the lowest fifth, because time that other threads take from the CPU is not part of a signal's
/// cost. Sorts the trials. Zero if there are none.
#[must_use]
pub fn usual(trials: &mut [Toll]) -> Toll {
    if trials.is_empty() {
        return Toll::default();
    }
    let mut low = |part: fn(&Toll) -> u64| {
        trials.sort_unstable_by_key(part);
        part(&trials[trials.len() / 5])
    };
    Toll { lag: low(|toll| toll.lag), entry: low(|toll| toll.entry), exit: low(|toll| toll.exit) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trial_is_split_at_its_readings() {
        let trial = Trial { at: 100, before: 130, first: 137, last: 140, after: 145 };
        assert_eq!(trial.toll(), Some(Toll { lag: 30, entry: 7, exit: 5 }));
        // A timer that is ahead of the clock has no lag.
        assert_eq!(Trial { at: 131, ..trial }.toll().map(|toll| toll.lag), Some(0));
        assert_eq!(Trial { before: 138, ..trial }.toll(), None);
        assert_eq!(Trial { after: 139, ..trial }.toll(), None);
    }

    #[test]
    fn the_usual_cost_is_the_end_of_the_lowest_fifth_of_each_part() {
        let mut trials: Vec<Toll> =
            (0..48).map(|at| Toll { lag: 48 - at, entry: at * 7 % 48, exit: 1_000 + at }).collect();
        assert_eq!(usual(&mut trials), Toll { lag: 10, entry: 9, exit: 1_009 });
        assert_eq!(usual(&mut [Toll { lag: 3, entry: 2, exit: 1 }]), Toll { lag: 3, entry: 2, exit: 1 });
        assert_eq!(usual(&mut []), Toll::default());
    }
}
