//! The cumulative distribution of detour lengths, with steps at real lengths.

/// The binary logarithm of the steps per octave: lengths are resolved to 3 %.
const PER_OCTAVE_BITS: u32 = 5;
const PER_OCTAVE: usize = 1 << PER_OCTAVE_BITS;

/// Counts lengths in buckets 3 % wide, each with its longest length.
///
/// So every step of the distribution is at a length that occurred, with the exact number of detours up to that length; nothing is claimed between two
/// steps.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Lengths {
    buckets: Vec<Bucket>,
    count: u64,
}

#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
struct Bucket {
    count: u64,
    longest: i64,
}

/// A step of the distribution.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LengthStep {
    /// A length that occurred, in nanoseconds.
    pub length: i64,
    /// The number of detours up to that length.
    pub at_most: u64,
}

impl Lengths {
    /// Adds a length in nanoseconds; a negative one counts as 0.
    #[inline]
    pub fn add(&mut self, length: i64) {
        let length = length.max(0);
        let at = bucket(length as u64);
        if at >= self.buckets.len() {
            self.buckets.resize(at + 1, Bucket::default());
        }
        let bucket = &mut self.buckets[at];
        bucket.count += 1;
        bucket.longest = bucket.longest.max(length);
        self.count += 1;
    }

    /// Adds all lengths of another set.
    pub fn merge(&mut self, other: &Self) {
        self.buckets.resize(self.buckets.len().max(other.buckets.len()), Bucket::default());
        for (ours, theirs) in self.buckets.iter_mut().zip(&other.buckets) {
            ours.count += theirs.count;
            ours.longest = ours.longest.max(theirs.longest);
        }
        self.count += other.count;
    }

    /// The number of lengths that were added.
    pub const fn count(&self) -> u64 {
        self.count
    }

    /// The steps, the shortest length first. `longest` are lengths that are known individually, in falling order: all that are at least as long as
    /// the last of them. Each adds up to one step.
    pub fn steps(&self, longest: &[i64]) -> Vec<LengthStep> {
        let exact = (longest.len() as u64).min(self.count);
        let mut steps: Vec<LengthStep> = Vec::new();
        let mut at_most = 0;
        for bucket in self.buckets.iter().filter(|bucket| bucket.count > 0) {
            at_most += bucket.count;
            if at_most > self.count - exact {
                break;
            }
            steps.push(LengthStep { length: bucket.longest, at_most });
        }
        for (rank, length) in longest.iter().take(exact as usize).enumerate().rev() {
            let step = LengthStep { length: (*length).max(0), at_most: self.count - rank as u64 };
            match steps.last_mut() {
                // Of equal ones, the last counts them all.
                Some(last) if last.length == step.length => *last = step,
                _ => steps.push(step),
            }
        }
        steps
    }
}

/// The bucket of a length: one each below 32, then 32 per octave.
fn bucket(length: u64) -> usize {
    if length < PER_OCTAVE as u64 {
        return length as usize;
    }
    let octave = length.ilog2() - PER_OCTAVE_BITS;
    PER_OCTAVE * (octave as usize + 1) + (length >> octave) as usize - PER_OCTAVE
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn counted(lengths: &[i64]) -> Lengths {
        let mut all = Lengths::default();
        lengths.iter().for_each(|length| all.add(*length));
        all
    }

    #[test]
    fn buckets_follow_each_other_without_a_gap() {
        let mut last = 0;
        for length in 0..100_000_u64 {
            let at = bucket(length);
            assert!(at == last || at == last + 1, "{length}: {at} after {last}");
            last = at;
        }
        assert_eq!(bucket(i64::MAX as u64), PER_OCTAVE * 59 - 1);
    }

    proptest! {
        #[test]
        fn each_step_is_a_real_length_with_its_exact_count(
            lengths in proptest::collection::vec(prop_oneof![0_i64..60, 0_i64..1 << 20, 0_i64..1 << 40], 0..300),
            top in 0_usize..40, split in 0_usize..300,
        ) {
            let mut sorted = lengths.clone();
            sorted.sort_unstable_by(|a, b| b.cmp(a));
            let longest = &sorted[..top.min(sorted.len())];
            let (left, right) = lengths.split_at(split.min(lengths.len()));
            let mut all = counted(left);
            all.merge(&counted(right));
            prop_assert_eq!(&all.steps(longest), &counted(&lengths).steps(longest));
            let steps = all.steps(longest);
            for step in &steps {
                prop_assert!(lengths.contains(&step.length));
                let plain = lengths.iter().filter(|length| **length <= step.length).count();
                prop_assert_eq!(plain as u64, step.at_most);
            }
            prop_assert!(steps.windows(2).all(|pair| pair[0].length < pair[1].length));
            prop_assert_eq!(steps.last().map(|step| step.length), sorted.first().copied());
            // All of the longest are present, and elsewhere no length is more than 3 % below the next step.
            prop_assert!(longest.iter().all(|length| steps.iter().any(|step| step.length == *length)));
            for length in &lengths {
                let next = steps.iter().find(|step| step.length >= *length).expect("the last is the longest");
                prop_assert!(next.length as f64 <= *length as f64 * 1.032 + 1.0);
            }
        }
    }
}
