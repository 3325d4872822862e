//! The sources with series of their own, up to a limit, and the sum of the others.
//!
//! Readers subtract two values of a series, so the past of a series must never move to another one. Each nanosecond is counted in one series when it
//! occurs. A series that ends takes its past along; only time that no reader has seen moves to the others. A series that starts after the first read
//! is shown as 0 once, because readers do not count the value at which a series appears. Therefore the increases of all series add up to the elapsed
//! time, whatever series start and end.

use std::collections::BTreeMap;

use becalm_model::Kind;
use becalm_units::Nanos;

/// The number of names remembered besides those with a series, and the limit per batch. The time of further names is counted with the others.
const REMEMBERED: usize = 1_024;

/// The longest name, in characters; longer ones are truncated.
const LONGEST: usize = 64;

/// The number of batches over which the time of a source is averaged.
const AVERAGED: u32 = 64;

/// A source is steady if it takes time in this share of the batches.
const STEADY: f64 = 0.125;

pub type SourceName = (Kind, String);

/// The time that sources took.
#[derive(Clone, Debug, Default)]
pub struct Sources {
    known: BTreeMap<SourceName, SourceState>,
    /// The time since the last call of [`Self::settle`].
    batch: BTreeMap<SourceName, Nanos>,
    other: Nanos,
    /// Whether a reader has seen anything.
    is_told: bool,
}

#[derive(Clone, Debug, Default)]
struct SourceState {
    /// Its mean time per batch, in nanoseconds: over all batches since it appeared, and in the long run over the last ones.
    mean: f64,
    /// The number of batches for which it has been known, at most [`AVERAGED`].
    age: u32,
    /// The share of the last batches that contain it.
    presence: f64,
    series: Option<Series>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Series {
    counted: Nanos,
    /// The value that readers have seen.
    told: Option<Nanos>,
}

impl SourceState {
    fn take(&mut self, time: Nanos) {
        self.age = (self.age + 1).min(AVERAGED);
        self.mean += (time.get() as f64 - self.mean) / f64::from(self.age);
        self.presence += (f64::from(time > Nanos::ZERO) - self.presence) / f64::from(AVERAGED);
    }

    /// The weight that decides which sources have a series. A source keeps its series until another takes twice as much, so two of about the same
    /// size do not swap places all the time.
    fn weight(&self) -> f64 {
        if self.series.is_some() { 2.0 * self.mean } else { self.mean }
    }
}

impl Sources {
    /// Adds time of a source to the batch that [`Self::settle`] ends.
    pub fn add(&mut self, kind: Kind, name: &str, time: Nanos) {
        let key = (kind, name.chars().take(LONGEST).collect::<String>());
        if let Some(sum) = self.batch.get_mut(&key) {
            *sum += time;
        } else if self.batch.len() < REMEMBERED || self.known.contains_key(&key) {
            self.batch.insert(key, time);
        } else {
            self.other += time;
        }
    }

    /// Ends a batch: decides which sources have a series, at most `most`, and counts the batch in them.
    pub fn settle(&mut self, most: usize) {
        let batch = std::mem::take(&mut self.batch);
        if !batch.is_empty() {
            for key in batch.keys().filter(|key| !self.known.contains_key(*key)).cloned().collect::<Vec<_>>() {
                self.known.insert(key, SourceState::default());
            }
            for (key, known) in &mut self.known {
                known.take(batch.get(key).copied().unwrap_or(Nanos::ZERO));
            }
        }
        self.rank(&batch, most);
        for (key, time) in batch {
            match self.known.get_mut(&key).and_then(|known| known.series.as_mut()) {
                Some(series) => series.counted += time,
                None => self.other += time,
            }
        }
        self.forget();
    }

    /// Gives series to the largest sources. If places are scarce, all unsteady sources together get a quarter of them: a thread that keeps renaming
    /// itself takes no more than that from permanent sources.
    fn rank(&mut self, batch: &BTreeMap<SourceName, Nanos>, most: usize) {
        let wants = |(key, known): &(&SourceName, &SourceState)| known.series.is_some() || batch.contains_key(*key);
        let mut all: Vec<(&SourceName, &SourceState)> = self.known.iter().filter(wants).collect();
        all.sort_by(|(_, one), (_, other)| other.weight().total_cmp(&one.weight()));
        let mut unsteady = 0;
        let (mut chosen, rest): (Vec<_>, Vec<_>) = all.into_iter().partition(|(_, known)| {
            unsteady += usize::from(known.presence < STEADY);
            known.presence >= STEADY || unsteady <= most.div_ceil(4)
        });
        chosen.extend(rest);
        let lose = chosen.iter().skip(most).filter(|(_, known)| known.series.is_some());
        let gain = chosen.iter().take(most).filter(|(_, known)| known.series.is_none());
        let changed: Vec<SourceName> = lose.chain(gain).map(|(key, _)| (*key).clone()).collect();
        for key in changed {
            let Some(known) = self.known.get_mut(&key) else { continue };
            match known.series.take() {
                // Time that no reader has seen is from after the last read, and is shown with the others.
                Some(series) => self.other += series.counted - series.told.unwrap_or_default(),
                None => known.series = Some(Series::default()),
            }
        }
    }

    /// Forgets the smallest sources without a series.
    fn forget(&mut self) {
        let mut means: Vec<f64> =
            self.known.values().filter(|known| known.series.is_none()).map(|known| known.mean).collect();
        if means.len() <= REMEMBERED {
            return;
        }
        let (_, bound, _) = means.select_nth_unstable_by(REMEMBERED, |one, other| other.total_cmp(one));
        let bound = *bound;
        self.known.retain(|_, known| known.series.is_some() || known.mean > bound);
    }

    /// The values of each series and of the sum of the others, to be shown to a reader.
    pub fn tell(&mut self) -> (Vec<(SourceName, Nanos)>, Nanos) {
        let was_told = std::mem::replace(&mut self.is_told, true);
        let mut all = Vec::new();
        for (key, known) in &mut self.known {
            if let Some(series) = &mut known.series {
                let shown = if was_told && series.told.is_none() { Nanos::ZERO } else { series.counted };
                series.told = Some(shown);
                all.push((key.clone(), shown));
            }
        }
        (all, self.other)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The sum of a reader like Prometheus for each series: its growth since it was first seen. A smaller value means a restart from 0.
    #[derive(Default)]
    struct Reader {
        last: BTreeMap<SourceName, Nanos>,
        increase: Nanos,
    }

    impl Reader {
        fn read(&mut self, sources: &mut Sources) {
            let (named, other) = sources.tell();
            for (key, now) in named.into_iter().chain([((Kind::Unseen, "all the others".to_owned()), other)]) {
                if let Some(before) = self.last.insert(key, now) {
                    self.increase += if now < before { now } else { now - before };
                }
            }
        }
    }

    /// The names of the sources that have a series.
    fn named(sources: &Sources) -> Vec<&str> {
        sources.known.iter().filter(|(_, known)| known.series.is_some()).map(|((_, name), _)| name.as_str()).collect()
    }

    proptest! {
        #[test]
        fn the_increases_of_all_series_add_up_to_the_time_that_passed(
            batches in prop::collection::vec((prop::collection::vec((0_u8..30, 1_i64..1_000), 0..8), 0_u8..3, 0_usize..7), 1..60),
            most in 0_usize..7,
        ) {
            let mut sources = Sources::default();
            let mut reader = Reader::default();
            let mut passed = Nanos::ZERO;
            reader.read(&mut sources);
            for (batch, readings, reloaded) in batches {
                for (name, time) in batch {
                    sources.add(Kind::Irq, &name.to_string(), Nanos::new(time));
                    passed += Nanos::new(time);
                }
                // A reloaded configuration may have another number.
                let most = if reloaded == 0 { most / 2 } else { most };
                sources.settle(most);
                prop_assert!(named(&sources).len() <= most);
                (0..readings).for_each(|_| reader.read(&mut sources));
                prop_assert!(reader.increase <= passed);
            }
            // Time since the last read is shown by the next one, and that of a new series by the one after it.
            (0..2).for_each(|_| reader.read(&mut sources));
            prop_assert_eq!(reader.increase, passed);
        }
    }

    #[test]
    fn a_new_source_has_a_series_from_its_first_batch_on() {
        let mut sources = Sources::default();
        for _ in 0..200 {
            (0..20).for_each(|name| sources.add(Kind::Task, &format!("old {name}"), Nanos::new(100 + name)));
            sources.settle(20);
        }
        sources.tell();
        sources.add(Kind::Task, "new", Nanos::new(900));
        sources.settle(20);
        assert!(named(&sources).contains(&"new") && named(&sources).len() == 20);
        assert_eq!((sources.tell().1, sources.tell().1), (Nanos::ZERO, Nanos::ZERO));
        assert!(sources.tell().0.contains(&((Kind::Task, "new".to_owned()), Nanos::new(900))));
    }

    #[test]
    fn a_thread_that_renames_itself_pushes_few_others_out_and_takes_a_bound_of_memory() {
        for batches_per_name in [1, 9, 20, 40, 64, 200] {
            let mut sources = Sources::default();
            let batch = |sources: &mut Sources, renamed: Option<u32>| {
                (0..20).for_each(|name| sources.add(Kind::Task, &format!("steady {name}"), Nanos::new(100)));
                if let Some(renamed) = renamed {
                    sources.add(Kind::Task, &format!("a{}", renamed / batches_per_name), Nanos::new(30_000));
                }
                sources.settle(20);
                named(sources).iter().filter(|name| name.starts_with("steady")).count()
            };
            let fewest = (0..1_000).map(|number| batch(&mut sources, Some(number))).skip(1).min();
            assert!(fewest >= Some(11), "{batches_per_name}: {fewest:?}");
            assert!(sources.known.len() <= 20 + REMEMBERED);
            // Its names lose their series when it ends.
            let last = (0..500).map(|_| batch(&mut sources, None)).last();
            assert_eq!(last, Some(20), "{batches_per_name}");
        }
    }

    #[test]
    fn names_are_cut_and_their_number_is_bounded_also_within_a_batch() {
        let mut sources = Sources::default();
        for round in 0..3 {
            for number in 0..50_000 {
                sources.add(Kind::Task, &format!("{number:060} of {round} and more"), Nanos::new(1));
                assert!(sources.batch.len() <= 2 + 2 * REMEMBERED);
            }
            sources.settle(2);
            assert!(sources.known.len() <= 2 + REMEMBERED);
        }
        assert!(named(&sources).iter().all(|name| name.len() == LONGEST));
        sources.tell();
        let (named, other) = sources.tell();
        assert_eq!(named.iter().map(|(_, time)| *time).sum::<Nanos>() + other, Nanos::new(150_000));
    }
}
