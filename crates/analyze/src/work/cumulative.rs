//! The cumulative view (Radojković et al. 2008): the cost of interruptions over a second and more, where a long sample does not hide that every
//! second is longer than necessary.
//!
//! Consecutive samples are joined to repetitions of about a second, with equal numbers of samples; the remainder at the end is not counted. If a
//! sample takes a second or more, each is a repetition.

use super::body::MainBody;
use super::read::WorkSamples;
use super::subtraction::Spread;

/// The minimum time of a repetition without interruptions.
const REPETITION_NS: i64 = 1_000_000_000;

/// Fewer repetitions show no distribution.
const REPETITIONS_LEAST: usize = 5;

/// Repetitions of one second.
#[derive(Clone, PartialEq, Debug)]
pub struct Cumulative {
    /// The number of samples per repetition.
    pub samples_each: u64,
    /// Their distribution: the time that each took (fixed work), or its nominal time plus the time lost (fixed time).
    pub spread: Spread,
    /// Each of them, in order.
    pub values: Vec<i64>,
    /// The time of a repetition if every sample took the middle of the main body.
    pub undisturbed_ns: i64,
}

impl Cumulative {
    /// From these samples; `None` if they do not suffice for five repetitions.
    pub fn from_samples(samples: &WorkSamples, body: &MainBody) -> Option<Self> {
        let middle = body.middle_ns.max(1);
        let each = usize::try_from(REPETITION_NS.saturating_add(middle - 1) / middle).ok()?.max(1);
        if samples.values.len() / each < REPETITIONS_LEAST {
            return None;
        }
        let values: Vec<i64> =
            samples.values.chunks_exact(each).map(|part| part.iter().copied().fold(0, i64::saturating_add)).collect();
        let spread = Spread::from_values(&values, &MainBody::from_values(&values));
        Some(Self { samples_each: each as u64, spread, undisturbed_ns: middle.saturating_mul(each as i64), values })
    }

    /// The mean extra time of repetitions, relative to undisturbed ones.
    pub fn cost_ratio(&self) -> f64 {
        self.spread.mean_ns / self.undisturbed_ns as f64 - 1.0
    }
}

#[cfg(test)]
mod tests {
    use super::super::read::tests::fixed_work;
    use super::*;
    use proptest::prelude::*;

    fn cumulative(durations: &[i64]) -> Option<Cumulative> {
        let samples = fixed_work(durations);
        Cumulative::from_samples(&samples, &MainBody::from_values(&samples.values))
    }

    #[test]
    fn samples_join_to_repetitions_of_a_second() {
        // Six repetitions of ten samples of 100 ms, and three more; every tenth sample takes 5 ms longer.
        let durations: Vec<i64> = (0..63).map(|at| if at % 10 == 4 { 105_000_000 } else { 100_000_000 }).collect();
        let found = cumulative(&durations).unwrap();
        assert_eq!((found.samples_each, found.spread.count), (10, 6));
        assert_eq!(found.values, vec![1_005_000_000; 6]);
        assert!((found.cost_ratio() - 0.005).abs() < 1e-12);
        assert_eq!(cumulative(&durations[..49]), None);
    }

    #[test]
    fn long_samples_are_repetitions() {
        let found = cumulative(&[1_500_000_000, 1_500_000_000, 1_500_000_000, 1_800_000_000, 1_500_000_000]).unwrap();
        assert_eq!((found.samples_each, found.spread.max_ns, found.undisturbed_ns), (1, 1_800_000_000, 1_500_000_000));
        assert_eq!(cumulative(&[1_500_000_000; 4]), None);
        assert_eq!(cumulative(&[]), None);
    }

    proptest! {
        #[test]
        fn no_repetition_is_shorter_than_a_second_undisturbed(middle in 1_000_000_i64..3_000_000_000) {
            let count = (10_000_000_000 / middle).clamp(10, 10_000) as usize;
            if let Some(found) = cumulative(&vec![middle; count]) {
                prop_assert!(found.undisturbed_ns >= REPETITION_NS);
                prop_assert!(found.undisturbed_ns < REPETITION_NS + middle);
                prop_assert_eq!(found.cost_ratio(), 0.0);
            }
        }
    }
}
