//! The longest detours with their times, in bounded memory: the input for fitting a tail.

/// The number kept at least, if there are that many.
pub const LONGEST: usize = 1_024;

/// The [`LONGEST`] longest detours so far, and at most as many more until the next cleanup.
#[derive(Clone, Debug)]
pub struct Longest {
    /// The start and duration of each detour kept.
    kept: Vec<(i64, i64)>,
    /// All detours longer than this are kept.
    floor: i64,
    count: u64,
}

impl Default for Longest {
    fn default() -> Self {
        Self { kept: Vec::new(), floor: -1, count: 0 }
    }
}

impl Longest {
    /// Creates a set for `count` detours from those that were kept, given as start and duration.
    pub fn from_kept(mut kept: Vec<(i64, i64)>, count: u64) -> Self {
        let shortest = kept.iter().map(|detour| detour.1).min().unwrap_or(-1);
        // Others as long as the shortest may be missing.
        let floor = if kept.len() as u64 == count { -1 } else { shortest };
        kept.retain(|detour| detour.1 > floor);
        Self { kept, floor, count }
    }

    /// Counts a detour, and keeps it if it may be among the longest.
    #[inline]
    pub fn add(&mut self, start: i64, duration: i64) {
        self.count += 1;
        if duration > self.floor {
            self.kept.push((start, duration));
            if self.kept.len() >= 2 * LONGEST {
                self.drop_short();
            }
        }
    }

    /// Takes all detours of another set.
    pub fn merge(&mut self, other: &Self) {
        self.count += other.count;
        self.floor = self.floor.max(other.floor);
        self.kept.extend_from_slice(&other.kept);
        self.drop_short();
    }

    /// Runs once per [`LONGEST`] new detours, so a detour costs constant time on average.
    #[cold]
    fn drop_short(&mut self) {
        if self.kept.len() > LONGEST {
            let (_, last, _) = self.kept.select_nth_unstable_by(LONGEST, |a, b| b.1.cmp(&a.1));
            self.floor = self.floor.max(last.1);
        }
        let floor = self.floor;
        self.kept.retain(|(_, duration)| *duration > floor);
    }

    /// The number of detours taken, kept or not.
    pub const fn count(&self) -> u64 {
        self.count
    }

    /// A length, and all detours longer than it as start and duration in order of time. Fewer than [`LONGEST`] if many are equally long.
    #[must_use]
    pub fn sorted(mut self) -> (i64, Vec<(i64, i64)>) {
        self.drop_short();
        self.kept.sort_unstable();
        (self.floor, self.kept)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_shortest_that_was_kept_may_have_others_beside_it() {
        let kept = vec![(0, 5), (10, 9), (20, 5)];
        let (floor, left) = Longest::from_kept(kept.clone(), 7).sorted();
        assert_eq!((floor, left), (5, vec![(10, 9)]));
        assert_eq!(Longest::from_kept(kept.clone(), 3).sorted(), (-1, kept));
    }

    proptest! {
        #[test]
        fn equals_sorting_all(
            lengths in proptest::collection::vec(0_i64..5_000, 0..6_000), at in 0_usize..6_000,
        ) {
            let fill = |lengths: &[i64], first: usize| {
                let mut longest = Longest::default();
                lengths.iter().enumerate().for_each(|(n, length)| longest.add((first + n) as i64, *length));
                longest
            };
            let at = at.min(lengths.len());
            let mut merged = fill(&lengths[..at], 0);
            merged.merge(&fill(&lengths[at..], at));
            let mut sorted = lengths.clone();
            sorted.sort_unstable_by(|a, b| b.cmp(a));
            for (longest, exact) in [(fill(&lengths, 0), true), (merged, false)] {
                prop_assert_eq!(longest.count(), lengths.len() as u64);
                let (floor, kept) = longest.sorted();
                let plain: Vec<(i64, i64)> = (0..).zip(lengths.iter().copied()).filter(|row| row.1 > floor).collect();
                prop_assert_eq!(&kept, &plain);
                if exact {
                    prop_assert_eq!(floor, sorted.get(LONGEST).copied().unwrap_or(-1));
                }
            }
        }
    }
}
