use std::collections::BTreeMap;

use becalm_testing::noise::Source;

use super::*;
use crate::distribution::{Bucket, Series};

const SECOND: f64 = 1e9;
const SECONDS: f64 = 20.0;

/// Detours: the start of each, in seconds, and its length in nanoseconds.
type Detours = Vec<(f64, f64)>;

/// A histogram of them with buckets of this width.
fn histogram(detours: &Detours, width_ns: i64) -> Series {
    let mut counts = BTreeMap::new();
    for (_, length) in detours {
        *counts.entry(*length as i64 / width_ns).or_insert(0) += 1;
    }
    let bucket = |(at, count): (i64, u64)| Bucket { from_ns: at * width_ns, below_ns: (at + 1) * width_ns, count };
    Series {
        observed_ns: Some((SECONDS * SECOND) as i64),
        buckets: counts.into_iter().map(bucket).collect(),
        ..Series::default()
    }
}

/// Tests a recording of detours, with fine buckets, against another program's histogram in microseconds, from 20 us on.
fn tested(recording: &Detours, other: &Detours) -> Result<Vec<Tested>, Untested> {
    let mut cells = TimeCells::new(0, (SECONDS * SECOND) as i64);
    recording.iter().for_each(|(start, _)| cells.add((start * SECOND) as i64, 1));
    let clustering = Clustering::from_cells(&cells, (SECONDS * SECOND) as i64);
    let [a, b] = [histogram(recording, 100), histogram(other, 1_000)];
    let lengths = |series, own_slack_ns, other_slack_ns| {
        vec![RunLengths { series, cut_ns: 20_000, own_slack_ns, other_slack_ns, effect: 1.0 }]
    };
    test(&[lengths(&a, 0, Some(1_000)), lengths(&b, 1_000, None)], clustering)
}

/// Trains of five at random, 100 detours per second, each of 200 us and something.
fn trains(source: &mut Source, hz: f64, factor: f64) -> Detours {
    let starts = source.trains(hz / 5.0, 5.0, 1e6, SECONDS * SECOND);
    starts.into_iter().map(|start| (start / SECOND, factor * (200_000.0 + source.exponential(20_000.0)))).collect()
}

fn is_difference(row: &Tested) -> bool {
    matches!(row.shown, Shown::Higher | Shown::Lower | Shown::Differs)
}

fn row(rows: &[Tested], figure: TestedFigure) -> &Tested {
    rows.iter().find(|row| row.figure == figure).unwrap_or_else(|| panic!("{figure:?} was not tested"))
}

#[test]
fn detours_in_trains_that_are_alike_are_seldom_called_different_and_their_bounds_hold() {
    let mut source = Source::seeded(18);
    let (mut runs, mut different, mut bounded) = (0_u32, 0_u32, 0_u32);
    for _ in 0..400 {
        let (a, b) = (trains(&mut source, 100.0, 1.0), trains(&mut source, 100.0, 1.0));
        let Ok(rows) = tested(&a, &b) else { continue };
        runs += 1;
        different += u32::from(rows.iter().any(is_difference));
        // The true ratio is 1, also if trains are thinned.
        let rate = row(&rows, TestedFigure::Rate);
        bounded += u32::from(rate.low <= 1.0 && rate.high.is_some_and(|high| high >= 1.0));
    }
    assert!(runs > 350, "{runs}");
    assert!(different * 100 <= 6 * runs, "{different} of {runs} were called different");
    assert!(bounded * 100 >= 93 * runs, "{bounded} of {runs} hold the truth");
}

#[test]
fn another_rate_or_other_lengths_are_found() {
    let mut source = Source::seeded(19);
    let base = trains(&mut source, 100.0, 1.0);
    let rows = tested(&base, &trains(&mut source, 200.0, 1.0)).unwrap();
    assert_eq!(row(&rows, TestedFigure::Rate).shown, Shown::Higher, "{rows:?}");
    let rows = tested(&base, &trains(&mut source, 100.0, 0.7)).unwrap();
    assert_eq!(row(&rows, TestedFigure::Median).shown, Shown::Lower, "{rows:?}");
    assert_eq!(row(&rows, TestedFigure::Shares).shown, Shown::Differs, "{rows:?}");
}

#[test]
fn what_is_regular_is_bounded_and_a_loops_step_is_no_difference() {
    let regular: Detours = (0..2_000).map(|at| (f64::from(at) / 100.0, 500_000.0 + f64::from(at % 7) * 10.0)).collect();
    // The other program's lengths include its loop's step, and are in whole microseconds.
    let other: Detours = regular.iter().map(|(start, length)| (*start, length + 900.0)).collect();
    let rows = tested(&regular, &other).unwrap();
    for row in &rows {
        let Shown::NoneBeyond(part) = row.shown else { panic!("{row:?}") };
        // If 2,000 detours were independent, chance would give the rate within 6.3 %, and Student's t makes that a little more.
        assert!(part < if row.figure == TestedFigure::Median { 0.005 } else { 0.1 }, "{row:?}");
    }
    assert_eq!(rows.len(), 5, "{rows:?}");
}

#[test]
fn without_times_two_histograms_say_nothing_and_several_a_side_do() {
    let mut source = Source::seeded(20);
    let series: Vec<Series> = (0..6).map(|_| histogram(&trains(&mut source, 100.0, 1.0), 1_000)).collect();
    let lengths = |runs: std::ops::Range<usize>| -> Vec<RunLengths<'_>> {
        let lengths =
            |series| RunLengths { series, cut_ns: 20_000, own_slack_ns: 0, other_slack_ns: None, effect: 1.0 };
        series[runs].iter().map(lengths).collect()
    };
    assert_eq!(test(&[lengths(0..1), lengths(1..2)], None), Err(Untested::NoTimes));
    let rows = test(&[lengths(0..3), lengths(3..6)], None).unwrap();
    assert!(rows.iter().all(|row| !is_difference(row)) && rows.len() >= 3, "{rows:?}");
    let few = Series {
        observed_ns: series[0].observed_ns,
        buckets: vec![Bucket { from_ns: 30_000, below_ns: 31_000, count: 3 }],
        ..Series::default()
    };
    let few =
        || vec![RunLengths { series: &few, cut_ns: 20_000, own_slack_ns: 0, other_slack_ns: None, effect: 1.0 }; 2];
    assert_eq!(test(&[few(), few()], None), Err(Untested::FewLengths));
}
