//! The sources with series of their own: at most so many, and the others together. No sum ever falls: each nanosecond is counted once.

use std::collections::BTreeMap;

use becalm_model::Kind;
use becalm_units::Nanos;

/// How many names are remembered beside those with a series of their own; the time of more is counted among the others.
const REMEMBERED: usize = 1_024;

/// The longest name, in characters; what is longer is cut.
const LONGEST: usize = 64;

/// A source by kind and name.
pub type SourceName = (Kind, String);

/// The time that sources took.
#[derive(Clone, Debug, Default)]
pub struct Sources {
    /// What each series has counted.
    named: BTreeMap<SourceName, Nanos>,
    /// What each of the others took since the start, which is in `other`, too.
    others: BTreeMap<SourceName, Nanos>,
    other: Nanos,
    /// What each of `named` took since the start, also before it had a series.
    totals: BTreeMap<SourceName, Nanos>,
}

impl Sources {
    /// Adds what a source took. `most` sources have a series.
    pub fn add(&mut self, kind: Kind, name: &str, time: Nanos, most: usize) {
        let key = (kind, name.chars().take(LONGEST).collect::<String>());
        if let Some(counted) = self.named.get_mut(&key) {
            *counted += time;
            *self.totals.entry(key).or_default() += time;
        } else if self.named.len() < most && !self.others.contains_key(&key) {
            self.totals.insert(key.clone(), time);
            self.named.insert(key, time);
        } else {
            self.other += time;
            if self.others.contains_key(&key) || self.others.len() < REMEMBERED {
                *self.others.entry(key).or_default() += time;
            }
        }
    }

    /// Gives series to those that took most since the start: one that took more than twice what the least of the named did takes its
    /// place, so that two of the same size do not change places with each window. To be called after a window.
    pub fn rank(&mut self, most: usize) {
        while self.named.len() > most {
            self.demote();
        }
        loop {
            let Some((key, total)) =
                self.others.iter().max_by_key(|(_, time)| **time).map(|(key, time)| (key.clone(), *time))
            else {
                return;
            };
            let least = self.totals.values().min().copied();
            let replaces = least.is_some_and(|least| total.get() / 2 > least.get());
            if self.named.len() >= most && !(most > 0 && replaces) {
                return;
            }
            if self.named.len() >= most {
                self.demote();
            }
            self.others.remove(&key);
            // Its time until now stays among the others.
            self.named.insert(key.clone(), Nanos::ZERO);
            self.totals.insert(key, total);
        }
    }

    /// Takes the series of the least of the named away: what it has counted goes to the others.
    fn demote(&mut self) {
        let Some(least) = self.totals.iter().min_by_key(|(_, time)| **time).map(|(key, _)| key.clone()) else { return };
        self.other += self.named.remove(&least).unwrap_or_default();
        let total = self.totals.remove(&least).unwrap_or_default();
        if self.others.len() < REMEMBERED {
            self.others.insert(least, total);
        }
    }

    /// Those with a series, and what each has counted.
    pub fn named(&self) -> impl Iterator<Item = (&SourceName, Nanos)> {
        self.named.iter().map(|(key, time)| (key, *time))
    }

    /// What all the others took together.
    pub const fn other(&self) -> Nanos {
        self.other
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn each_nanosecond_is_counted_once_and_nothing_falls(
            windows in prop::collection::vec(prop::collection::vec((0_u8..12, 1_i64..1_000), 0..8), 1..30),
            most in 0_usize..5,
        ) {
            let mut sources = Sources::default();
            let (mut plain, mut other) = (0, Nanos::ZERO);
            let mut totals = [0_i64; 12];
            for window in windows {
                for (name, time) in window {
                    sources.add(Kind::Irq, &name.to_string(), Nanos::new(time), most);
                    plain += time;
                    totals[usize::from(name)] += time;
                }
                sources.rank(most);
                let named: i64 = sources.named().map(|(_, time)| time.get()).sum();
                prop_assert_eq!(named + sources.other().get(), plain);
                prop_assert!(sources.named().count() <= most && sources.other() >= other);
                other = sources.other();
                // Nobody without a series took more than twice the least of those with one.
                let of = |name: usize| sources.named().any(|((_, text), _)| *text == name.to_string());
                let least = (0..12).filter(|name| of(*name)).map(|name| totals[name]).min().unwrap_or(0);
                prop_assert!(most == 0 || (0..12).filter(|name| !of(*name)).all(|name| totals[name] / 2 <= least));
            }
        }
    }

    #[test]
    fn names_are_cut_and_their_number_is_bounded() {
        let mut sources = Sources::default();
        for number in 0..5_000 {
            sources.add(Kind::Task, &format!("{number:0200}"), Nanos::new(1), 2);
        }
        assert!(sources.named().all(|((_, name), _)| name.len() == LONGEST));
        for number in 0..5_000 {
            sources.add(Kind::Task, &format!("{number}"), Nanos::new(1), 2);
        }
        assert_eq!(sources.others.len(), REMEMBERED);
    }
}
