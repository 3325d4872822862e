//! The coverage of the intervals of quantiles, on noise with known quantiles.

use super::super::TimeCells;
use super::*;
use becalm_testing::noise::Source;

/// The length of a run, 10 s in nanoseconds.
const LENGTH: i64 = 10_000_000_000;

/// Noise with exponential lengths of 10 us on average: single, in trains of any lengths, or in trains of one length.
struct Law {
    name: &'static str,
    /// The share of the quantile.
    share: f64,
    detours: fn(&mut Source) -> Vec<(f64, f64)>,
}

fn alone(source: &mut Source, hz: f64) -> Vec<(f64, f64)> {
    let times = source.poisson(hz, LENGTH as f64);
    times.into_iter().map(|time| (time, source.exponential(10_000.0))).collect()
}

/// Trains of 10 detours of equal length: the worst case of dependence.
fn alike(source: &mut Source, hz: f64) -> Vec<(f64, f64)> {
    let mut detours = Vec::new();
    for begin in source.poisson(hz, LENGTH as f64) {
        let length = source.exponential(10_000.0);
        detours.extend((0..10).map(|k| (begin + f64::from(k) * 1e6, length)));
    }
    detours.sort_by(|a, b| a.0.total_cmp(&b.0));
    detours
}

/// Trains of 20 on average with independent lengths.
fn mixed(source: &mut Source, hz: f64) -> Vec<(f64, f64)> {
    let times = source.trains(hz, 20.0, 2e6, LENGTH as f64);
    times.into_iter().map(|time| (time, source.exponential(10_000.0))).collect()
}

const LAWS: &[Law] = &[
    Law { name: "alone, median", share: 0.5, detours: |s| alone(s, 100.0) },
    Law { name: "alone, p99", share: 0.99, detours: |s| alone(s, 200.0) },
    Law { name: "alone, p99.9", share: 0.999, detours: |s| alone(s, 2_000.0) },
    Law { name: "trains alike, median", share: 0.5, detours: |s| alike(s, 20.0) },
    Law { name: "trains alike, p99", share: 0.99, detours: |s| alike(s, 200.0) },
    Law { name: "trains mixed, median", share: 0.5, detours: |s| mixed(s, 10.0) },
    Law { name: "trains mixed, p99", share: 0.99, detours: |s| mixed(s, 20.0) },
];

fn bounds(detours: &[(f64, f64)], share: f64) -> QuantileBounds {
    let cells = TimeCells::new(0, LENGTH);
    let (mut quantiles, mut lengths) = (Quantiles::default(), LengthCells::for_cells(&cells));
    for (time, length) in detours {
        quantiles.add(*length as i64);
        lengths.add(cells.place(*time as i64), *length as i64);
    }
    QuantileBounds::for_quantile(&mut quantiles, &lengths, share)
}

/// Measured in the order of [`LAWS`]: 0.963, 0.956, 0.942, 0.953, 0.925, 0.963, 0.959.
#[test]
fn bounds_hold_the_truth_about_95_times_in_100() {
    for law in LAWS {
        let mut source = Source::seeded(7);
        let truth = -10_000.0 * (1.0 - law.share).ln();
        let (mut given, mut held) = (0, 0);
        for _ in 0..1_000 {
            let QuantileBounds { low: Some(low), high: Some(high), .. } =
                bounds(&(law.detours)(&mut source), law.share)
            else {
                continue;
            };
            given += 1;
            held += i32::from(low as f64 <= truth && truth <= high as f64);
        }
        let share = f64::from(held) / f64::from(given);
        assert!(given >= 900, "{}: only {given} of 1,000 runs bound it", law.name);
        assert!((0.92..=0.98).contains(&share), "{}: {held} of {given} intervals hold the truth", law.name);
    }
}

/// Why blocks are needed: intervals from order statistics fail if all detours of a train have the same length.
#[test]
fn independent_ranks_would_claim_too_much() {
    let mut source = Source::seeded(7);
    let mut held = 0;
    for _ in 0..200 {
        let detours = alike(&mut source, 20.0);
        let mut lengths: Vec<i64> = detours.iter().map(|(_, length)| *length as i64).collect();
        lengths.sort_unstable();
        let n = lengths.len() as f64;
        let rank = |z: f64| lengths[(n / 2.0 + z * n.sqrt() / 2.0) as usize] as f64;
        let truth = 10_000.0 * 2_f64.ln();
        held += i32::from(rank(-1.96) <= truth && truth <= rank(1.96));
    }
    assert!(held < 150, "{held} of 200 hold the truth");
}

#[test]
fn what_the_run_cannot_bound_has_no_end() {
    assert_eq!(bounds(&[], 0.5), QuantileBounds::UNKNOWN);
    let few: Vec<(f64, f64)> = (0..300).map(|k| (f64::from(k) * 3e7, f64::from(k * 77 % 300) + 1_000.0)).collect();
    assert!(matches!(bounds(&few, 0.5), QuantileBounds { low: Some(_), high: Some(_), .. }));
    assert!(matches!(bounds(&few, 0.999), QuantileBounds { low: Some(_), high: None, .. }));
}
