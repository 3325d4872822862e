//! Compares samples with those of the same work on a quieter CPU, kernel or machine (Radojković et al. 2008).

use becalm_model::node::{Fixed, WorkDoc};
use becalm_units::Nanos;
use becalm_units::fault::{Fault, Wording};

use super::body::MainBody;
use super::cumulative::Cumulative;
use super::read::WorkSamples;
use super::subtraction::Spread;

/// Two runs of different work.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the baseline is of other work: {theirs} against {ours}")]
pub struct Incomparable {
    ours: String,
    theirs: String,
}

impl Fault for Incomparable {
    fn is_usage(&self) -> bool {
        true
    }

    fn hint(&self) -> Option<Wording> {
        Some(Wording::new("; record it with the same {body}, {fixed} and about the same {grain}"))
    }
}

/// Samples compared with the baseline's. Ratios are of this run to the baseline: 1 is equal.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct BaselineComparison {
    /// The factor for the baseline's values, because its number of iterations per sample is different.
    pub scale: f64,
    /// The distribution of the baseline's scaled values.
    pub baseline: Spread,
    /// The ratio of the means.
    pub mean_ratio: f64,
    /// The ratio of the medians.
    pub median_ratio: f64,
    /// The ratio of the 99th percentiles.
    pub p99_ratio: f64,
    /// The ratio of the largest values.
    pub max_ratio: f64,
    /// The maximum distance between the two cumulative distributions (Kolmogorov and Smirnov).
    pub distance_ratio: f64,
    /// Samples that took longer than all of the baseline's.
    pub beyond: u64,
    /// This run's repetitions of one second, if it is long enough for some.
    pub repetitions: Option<RepetitionRatios>,
}

/// The times of repetitions of one second, relative to the average time of the same work in the baseline.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct RepetitionRatios {
    /// The ratio of the shortest repetition.
    pub min_ratio: f64,
    /// The mean of the ratios.
    pub mean_ratio: f64,
    /// The median of the ratios.
    pub median_ratio: f64,
    /// The ratio of the longest repetition.
    pub max_ratio: f64,
}

impl RepetitionRatios {
    fn new(repetitions: &Cumulative, baseline_mean_ns: f64) -> Self {
        let quiet = baseline_mean_ns * repetitions.samples_each as f64;
        let ratio = |ns: f64| if quiet > 0.0 { ns / quiet } else { f64::NAN };
        let spread = &repetitions.spread;
        Self {
            min_ratio: ratio(spread.min_ns as f64),
            mean_ratio: ratio(spread.mean_ns),
            median_ratio: ratio(spread.median_ns() as f64),
            max_ratio: ratio(spread.max_ns as f64),
        }
    }
}

/// Whether a run of this work will be comparable with a baseline, as far as known in advance: same work, same quantity fixed. Fails if it is not.
pub fn comparable(body: &str, fixed: Fixed, grain_ns: i64, baseline: &WorkDoc) -> Result<(), Incomparable> {
    if body == baseline.body && fixed == baseline.fixed {
        return Ok(());
    }
    Err(Incomparable {
        ours: described(body, fixed, grain_ns),
        theirs: described(&baseline.body, baseline.fixed, baseline.grain_ns.get()),
    })
}

fn described(body: &str, fixed: Fixed, grain_ns: i64) -> String {
    format!("{body} of fixed {}, a grain of {}", fixed.name(), Nanos::new(grain_ns))
}

/// Compares samples with a baseline of the same work. Fails if the two did different things.
pub fn compare_with_baseline(
    samples: &WorkSamples,
    baseline: &WorkSamples,
) -> Result<BaselineComparison, Incomparable> {
    let describe = |samples: &WorkSamples| described(&samples.body, samples.fixed, samples.grain_ns);
    let scale = match samples.fixed {
        // From a quarter to four times the iterations it is still the same work; beyond that the caches differ.
        Fixed::Work => samples.iterations as f64 / baseline.iterations.max(1) as f64,
        Fixed::Time => samples.grain_ns as f64 / baseline.grain_ns.max(1) as f64,
    };
    if samples.body != baseline.body || samples.fixed != baseline.fixed || !(0.25..=4.0).contains(&scale) {
        return Err(Incomparable { ours: describe(samples), theirs: describe(baseline) });
    }
    let repetitions = Cumulative::from_samples(samples, &MainBody::from_values(&samples.values));
    let mut ours = samples.values.clone();
    let mut theirs: Vec<i64> = baseline.values.iter().map(|ns| (*ns as f64 * scale).round() as i64).collect();
    ours.sort_unstable();
    theirs.sort_unstable();
    let [a, b] = [&ours, &theirs].map(|values| Spread::from_values(values, &MainBody::from_values(values)));
    let ratio = |a: f64, b: f64| if b > 0.0 { a / b } else { f64::NAN };
    let last = theirs.last().copied().unwrap_or(0);
    Ok(BaselineComparison {
        scale,
        baseline: b,
        mean_ratio: ratio(a.mean_ns, b.mean_ns),
        median_ratio: ratio(a.median_ns() as f64, b.median_ns() as f64),
        p99_ratio: ratio(a.quantiles_ns[6] as f64, b.quantiles_ns[6] as f64),
        max_ratio: ratio(a.max_ns as f64, b.max_ns as f64),
        distance_ratio: distance(&ours, &theirs),
        beyond: ours.iter().filter(|value| **value > last).count() as u64,
        repetitions: repetitions.map(|repetitions| RepetitionRatios::new(&repetitions, b.mean_ns)),
    })
}

/// The maximum distance between two cumulative distributions, for values in rising order.
fn distance(a: &[i64], b: &[i64]) -> f64 {
    let (mut i, mut j, mut largest) = (0, 0, 0.0_f64);
    while i < a.len() && j < b.len() {
        let value = a[i].min(b[j]);
        while i < a.len() && a[i] == value {
            i += 1;
        }
        while j < b.len() && b[j] == value {
            j += 1;
        }
        largest = largest.max((i as f64 / a.len() as f64 - j as f64 / b.len() as f64).abs());
    }
    largest
}

#[cfg(test)]
mod tests {
    use super::super::read::tests::fixed_work;
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_quieter_run_of_the_same_work() {
        let quiet = fixed_work(&[1_000, 1_000, 1_000, 1_010]);
        let noisy = fixed_work(&[1_000, 1_100, 1_100, 1_200]);
        let against = compare_with_baseline(&noisy, &quiet).unwrap();
        assert_eq!((against.scale, against.beyond, against.distance_ratio), (1.0, 3, 0.75));
        assert!((against.mean_ratio - 4_400.0 / 4_010.0).abs() < 1e-12);
        assert_eq!(against.median_ratio, 1.1);
    }

    #[test]
    fn repetitions_of_a_second_are_held_against_the_baselines_mean() {
        let quiet = fixed_work(&[100_000_000; 20]);
        let noisy: Vec<i64> = (0..50).map(|at| if at < 10 { 110_000_000 } else { 102_000_000 }).collect();
        let found = compare_with_baseline(&fixed_work(&noisy), &quiet).unwrap().repetitions.unwrap();
        let near = |a: f64, b: f64| (a - b).abs() < 1e-9;
        assert!(
            near(found.min_ratio, 1.02) && near(found.median_ratio, 1.02) && near(found.max_ratio, 1.1),
            "{found:?}"
        );
        assert!(near(found.mean_ratio, (1.1 + 4.0 * 1.02) / 5.0), "{found:?}");
        assert_eq!(compare_with_baseline(&quiet, &quiet).unwrap().repetitions, None);
    }

    #[test]
    fn other_iterations_are_scaled_and_other_work_is_refused() {
        let quiet = fixed_work(&[1_000, 1_000]);
        let mut twice = fixed_work(&[2_000, 2_000]);
        twice.iterations *= 2;
        let same = compare_with_baseline(&twice, &quiet).unwrap();
        assert_eq!((same.scale, same.mean_ratio, same.distance_ratio), (2.0, 1.0, 0.0));
        twice.body = "sort".to_owned();
        let error = compare_with_baseline(&twice, &quiet).unwrap_err().to_string();
        assert!(error.starts_with("the baseline is of other work: sum of fixed work"), "{error}");
    }

    proptest! {
        #[test]
        fn the_distance_is_that_of_its_definition(
            mut a in proptest::collection::vec(0_i64..30, 1..40),
            mut b in proptest::collection::vec(0_i64..30, 1..40),
        ) {
            a.sort_unstable();
            b.sort_unstable();
            let share = |values: &[i64], at: i64| values.iter().filter(|x| **x <= at).count() as f64 / values.len() as f64;
            let plain = (0..30).map(|at| (share(&a, at) - share(&b, at)).abs()).fold(0.0, f64::max);
            prop_assert!((distance(&a, &b) - plain).abs() < 1e-12);
        }
    }
}
