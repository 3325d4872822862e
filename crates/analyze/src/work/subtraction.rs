//! Subtraction (Tsafrir 2007, section 4): the samples less the direct time of everything in the kernel's trace, one source after another: "minus
//! timer, minus net". The remainder is in no trace: indirect cost (caches, predictors), kernel entry and exit, and time without a kernel event.

use becalm_model::Kind;

use super::body::MainBody;
use super::curves::distribution;
use super::read::{SourceTimes, WorkSamples};
use becalm_stats::{Moments, nearest_rank};

/// The distribution of values, in nanoseconds.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Spread {
    /// The number of values.
    pub count: u64,
    /// The mean of the values, in nanoseconds.
    pub mean_ns: f64,
    /// Their standard deviation; 0 for a single one.
    pub stddev_ns: f64,
    /// The smallest value, in nanoseconds.
    pub min_ns: i64,
    /// The largest value, in nanoseconds.
    pub max_ns: i64,
    /// The quantiles from 1 % to 99.99 %, in nanoseconds and in this order.
    pub quantiles_ns: [i64; QUANTILES.len()],
    /// The number of values above the main body of the original samples.
    pub slowies: u64,
}

/// The probabilities of the quantiles.
pub const QUANTILES: [f64; 9] = [0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99, 0.999, 0.9999];

impl Spread {
    /// From at least one value, with slowies counted by the main body.
    pub fn from_values(values: &[i64], body: &MainBody) -> Self {
        let mut moments = Moments::default();
        values.iter().for_each(|value| moments.add(*value));
        // To the nanosecond: for work, that is the interesting scale.
        let mut sorted = values.to_vec();
        sorted.sort_unstable();
        let quantile = |share| sorted.get(nearest_rank(share, sorted.len())).copied().unwrap_or(0);
        Self {
            count: values.len() as u64,
            mean_ns: moments.mean().unwrap_or(0.0),
            stddev_ns: moments.stddev().unwrap_or(0.0),
            min_ns: moments.min().unwrap_or(0),
            max_ns: moments.max().unwrap_or(0),
            quantiles_ns: QUANTILES.map(quantile),
            slowies: body.outside(values).1,
        }
    }

    /// The median of the values, in nanoseconds.
    pub const fn median_ns(&self) -> i64 {
        self.quantiles_ns[3]
    }
}

/// One source subtracted, after those before it.
#[derive(Clone, PartialEq, Debug)]
pub struct SubtractionStep {
    /// Its kind; `None` for several sources subtracted together.
    pub kind: Option<Kind>,
    /// The name of the source.
    pub source: String,
    /// The number of its activities.
    pub count: u64,
    /// The number of samples with it.
    pub samples: u64,
    /// The total time of the source, in nanoseconds.
    pub total_ns: i64,
    /// The mean of the samples with it after this step, in nanoseconds.
    pub touched_mean_ns: f64,
    /// The standard deviation of those samples after this step, in nanoseconds.
    pub touched_stddev_ns: f64,
    /// The number of these that are within the main body now.
    pub touched_back: u64,
    /// The distribution of all samples after this step.
    pub left: Spread,
    /// Their distribution, as in [`Curves`](super::Curves); empty from the 13th step on.
    pub distribution: Vec<(i64, f64)>,
}

/// Steps after which the distribution is kept.
const DRAWN: usize = 12;

/// The number of sources subtracted one by one. On a busy machine there may be hundreds, and each step reads all samples.
const ALONE: usize = 40;

/// Subtracts source after source, the largest first; equal ones by name. From the 41st on, all are subtracted together.
pub fn subtract(samples: &WorkSamples, body: &MainBody) -> Vec<SubtractionStep> {
    let mut left = samples.values.clone();
    let mut sources: Vec<_> = samples.sources.iter().collect();
    sources.sort_by_key(|source| (-source.total_ns(), source.kind, &source.source));
    let (alone, others) = sources.split_at(sources.len().min(ALONE));
    let mut groups: Vec<(Option<Kind>, String, &[&SourceTimes])> =
        alone.iter().map(|source| (Some(source.kind), source.source.clone(), std::slice::from_ref(source))).collect();
    if !others.is_empty() {
        groups.push((None, format!("{} others", others.len()), others));
    }
    let mut steps = Vec::new();
    for (kind, source, group) in groups {
        let times = || group.iter().flat_map(|source| &source.times);
        times().for_each(|(number, ns)| left[*number] = left[*number].saturating_sub(*ns));
        let mut numbers: Vec<usize> = times().map(|(number, _)| *number).collect();
        numbers.sort_unstable();
        numbers.dedup();
        let mut touched = Moments::default();
        numbers.iter().for_each(|number| touched.add(left[*number]));
        let within = |number: &&usize| (body.low_ns..=body.high_ns).contains(&left[**number]);
        steps.push(SubtractionStep {
            kind,
            source,
            count: times().count() as u64,
            samples: numbers.len() as u64,
            total_ns: group.iter().map(|source| source.total_ns()).fold(0, i64::saturating_add),
            touched_mean_ns: touched.mean().unwrap_or(0.0),
            touched_stddev_ns: touched.stddev().unwrap_or(0.0),
            touched_back: numbers.iter().filter(within).count() as u64,
            left: Spread::from_values(&left, body),
            distribution: if steps.len() < DRAWN { sorted_distribution(&left) } else { Vec::new() },
        });
    }
    steps
}

fn sorted_distribution(values: &[i64]) -> Vec<(i64, f64)> {
    let mut sorted = values.to_vec();
    sorted.sort_unstable();
    if sorted.is_empty() { Vec::new() } else { distribution(&sorted) }
}

/// The distance of the mean above the middle of the main body, in nanoseconds, before and after all steps; `None` if the latter is negative. See
/// [`CpuWork::beyond_middle_ns`](super::CpuWork::beyond_middle_ns).
pub(super) fn beyond_middle(all: &Spread, body: &MainBody, steps: &[SubtractionStep]) -> Option<(f64, f64)> {
    let beyond = |mean: f64| mean - body.middle_ns as f64;
    let rest = beyond(steps.last()?.left.mean_ns);
    (rest >= 0.0).then(|| (beyond(all.mean_ns), rest))
}

#[cfg(test)]
mod tests {
    use super::super::read::tests::fixed_work;
    use super::*;

    #[test]
    fn what_sources_took_comes_off_in_order_of_their_time() {
        let mut samples = fixed_work(&[1_000, 1_100, 1_000, 1_350, 1_000, 1_000, 1_000]);
        let source = |kind, name: &str, times: &[(usize, i64)]| SourceTimes {
            kind,
            source: name.to_owned(),
            times: times.to_vec(),
        };
        samples.sources = vec![
            source(Kind::Irq, "timer", &[(1, 95), (3, 50), (3, 45)]),
            source(Kind::Softirq, "net_rx", &[(3, 240)]),
        ];
        let body = MainBody::from_values(&samples.values);
        assert_eq!((body.high_ns, body.slowies), (1_010, 2));
        let steps = subtract(&samples, &body);
        let names: Vec<&str> = steps.iter().map(|step| step.source.as_str()).collect();
        assert_eq!(names, ["net_rx", "timer"]);
        assert_eq!(
            (steps[0].total_ns, steps[0].count, steps[0].left.max_ns, steps[0].left.slowies),
            (240, 1, 1_110, 2)
        );
        assert_eq!((steps[0].touched_mean_ns, steps[0].touched_back), (1_110.0, 0));
        let last = &steps[1];
        assert_eq!((last.total_ns, last.count, last.samples, last.left.slowies), (190, 3, 2, 1));
        // 1,005 and 1,015 are left of the two; the second is still outside.
        assert_eq!((last.touched_mean_ns, last.touched_back), (1_010.0, 1));
        assert!((last.left.mean_ns - 7_020.0 / 7.0).abs() < 1e-9);
        assert_eq!(last.left.median_ns(), 1_000);
        // Five are 1,000, one 1,005, one 1,015.
        assert_eq!(last.distribution, [(1_000, 5.0 / 7.0), (1_005, 6.0 / 7.0), (1_015, 1.0)]);
        assert_eq!(steps[0].distribution.last(), Some(&(1_110, 1.0)));
    }

    #[test]
    fn what_is_left_is_held_against_an_undisturbed_middle_only() {
        let mut samples = fixed_work(&[1_000, 1_002, 1_000, 1_300, 1_000]);
        let body = MainBody::from_values(&samples.values);
        let all = Spread::from_values(&samples.values, &body);
        assert_eq!(beyond_middle(&all, &body, &subtract(&samples, &body)), None);
        let source = |times: &[(usize, i64)]| {
            vec![SourceTimes { kind: Kind::Task, source: "copy".to_owned(), times: times.to_vec() }]
        };
        samples.sources = source(&[(3, 250)]);
        let (before, after) = beyond_middle(&all, &body, &subtract(&samples, &body)).unwrap();
        assert!((before - 60.4).abs() < 1e-9 && (after - 10.4).abs() < 1e-9, "{before} {after}");
        // Another copy takes half of each.
        samples.sources = source(&[(0, 500), (1, 500), (2, 500), (3, 500), (4, 500)]);
        assert_eq!(beyond_middle(&all, &body, &subtract(&samples, &body)), None);
    }

    #[test]
    fn many_sources_end_in_one_step() {
        let mut samples = fixed_work(&[2_000, 1_000, 1_000]);
        samples.sources = (0..ALONE + 3)
            .map(|number| SourceTimes {
                kind: Kind::Task,
                source: format!("task {number:03}"),
                times: vec![(0, 10), (number % 3, 1)],
            })
            .collect();
        let steps = subtract(&samples, &MainBody::from_values(&samples.values));
        assert_eq!(steps.len(), ALONE + 1);
        assert!(steps.iter().enumerate().all(|(at, step)| step.distribution.is_empty() == (at >= DRAWN)));
        let last = &steps[ALONE];
        assert_eq!(
            (last.kind, last.source.as_str(), last.count, last.samples, last.total_ns),
            (None, "3 others", 6, 3, 33)
        );
        let total: i64 = steps.iter().map(|step| step.total_ns).sum();
        assert!((last.left.mean_ns * 3.0 - (4_000 - total) as f64).abs() < 1e-6);
    }
}
