//! Error rates of the verdicts and intervals, measured on noise with a known truth.

use becalm_bundle::{Bundle, StoredNodes};
use becalm_fixtures::fleet::{Planted, write_fleet, write_fleet_with};
use becalm_testing::noise::Source;
use becalm_units::Nanos;

use super::alone::RunScatter;
use super::row::{judge, place_rows};
use super::sample::DetourSample;
use super::{
    Basis, ComparedFigure, Comparison, Doubt, Limit, Metric, TestFamily, Verdict, compare, compare_nodes, exceeds,
};
use crate::summary::Selection;

const SECOND: f64 = 1e9;

/// A kind of noise: detours of lognormal length, for a time in nanoseconds, `scale` times as long.
struct Law {
    name: &'static str,
    /// Detours per second, and their mean length at scale 1.
    rate: f64,
    mean: f64,
    /// Whether every detour is lognormal and the quantiles are therefore known.
    pure: bool,
    detours: fn(&mut Source, f64, f64) -> Vec<(i64, i64)>,
}

fn poisson(source: &mut Source, length: f64, hz: f64, mean: f64) -> Vec<(i64, i64)> {
    let mut detours = Vec::new();
    let mut time = source.exponential(SECOND / hz);
    while time < length {
        detours.push((time as i64, source.lognormal(mean).round() as i64));
        time += source.exponential(SECOND / hz);
    }
    detours
}

/// Trains at random times, with a geometric number of detours, 20 on average and 2 ms apart.
fn trains(source: &mut Source, length: f64, hz: f64, mean: f64) -> Vec<(i64, i64)> {
    let mut detours = Vec::new();
    // Trains that started before the run reach into it.
    let mut time = -2.0 * SECOND;
    loop {
        time += source.exponential(SECOND / hz);
        if time >= length {
            break;
        }
        let mut at = time;
        loop {
            if (0.0..length).contains(&at) {
                detours.push((at as i64, source.lognormal(mean).round() as i64));
            }
            if source.uniform() < 0.05 {
                break;
            }
            at += source.exponential(2e6);
        }
    }
    detours.sort_unstable();
    detours
}

const LAWS: &[Law] = &[
    Law {
        name: "poisson 100 Hz",
        rate: 100.0,
        mean: 10_000.0,
        pure: true,
        detours: |source, length, scale| poisson(source, length, 100.0, 10_000.0 * scale),
    },
    Law {
        name: "poisson 5 Hz",
        rate: 5.0,
        mean: 10_000.0,
        pure: true,
        detours: |source, length, scale| poisson(source, length, 5.0, 10_000.0 * scale),
    },
    Law {
        name: "trains 5 Hz",
        rate: 100.0,
        mean: 20_000.0,
        pure: true,
        detours: |source, length, scale| trains(source, length, 5.0, 20_000.0 * scale),
    },
    Law {
        name: "trains 20 Hz",
        rate: 400.0,
        mean: 20_000.0,
        pure: true,
        detours: |source, length, scale| trains(source, length, 20.0, 20_000.0 * scale),
    },
    Law {
        name: "tick 250 Hz, poisson 10 Hz",
        rate: 260.0,
        mean: (250.0 * 5_000.0 + 10.0 * 30_000.0) / 260.0,
        pure: false,
        detours: |source, length, scale| {
            let mut detours = poisson(source, length, 10.0, 30_000.0 * scale);
            let phase = source.uniform() * 4e6;
            let ticks = (0..).map(|tick| phase + f64::from(tick) * 4e6).take_while(|at| *at < length);
            detours.extend(ticks.map(|at| (at as i64, (5_000.0 * scale) as i64)));
            detours.sort_unstable();
            detours
        },
    },
];

fn sample(detours: &[(i64, i64)], length: f64, stretch: i64) -> DetourSample {
    let mut sample = DetourSample::new(0, length as i64, length as i64, stretch);
    detours.iter().for_each(|(start, duration)| sample.add(*start, *duration));
    sample.set_levels();
    detours.iter().for_each(|(start, duration)| sample.add_above(*start, *duration));
    sample
}

/// The rows with one run per side.
fn two_runs(a: &DetourSample, b: &DetourSample) -> Vec<ComparedFigure> {
    place_rows(&[vec![a], vec![b]], true, RunScatter::for_whole(Basis::WithinRuns))
}

/// One comparison of runs of these lengths; the second one's detours are `scale` times as long.
fn trial(law: &Law, source: &mut Source, lengths: [f64; 2], scale: f64) -> Vec<ComparedFigure> {
    let stretch = (lengths[0].min(lengths[1]) / 32.0) as i64;
    let a = sample(&(law.detours)(source, lengths[0], 1.0), lengths[0], stretch);
    let b = sample(&(law.detours)(source, lengths[1], scale), lengths[1], stretch);
    two_runs(&a, &b)
}

const COMPARED: [Metric; 6] =
    [Metric::NoiseRatio, Metric::Rate, Metric::Mean, Metric::P99, Metric::P999, Metric::StretchMax];

/// The number of trials that tested each figure, that found an unadjusted difference in it, that call it worse, and whose interval contains the
/// truth.
#[derive(Default, Clone, Copy, Debug)]
struct Tally {
    tested: u32,
    found: u32,
    worse: u32,
    /// The number whose adjusted verdict is a difference.
    wrong: u32,
    held: u32,
    ratio_held: u32,
}

fn tally(law: &Law, trials: u32, lengths: [f64; 2], scale: f64) -> ([Tally; 6], u32) {
    let mut source = Source::seeded(11);
    let mut tallies = [Tally::default(); 6];
    let mut any = 0;
    for _ in 0..trials {
        let mut rows = trial(law, &mut source, lengths, scale);
        for (tally, metric) in tallies.iter_mut().zip(COMPARED) {
            let Some(row) = rows.iter().find(|row| row.metric == metric) else { continue };
            // Now and then, most stretches have no detour.
            let (Some(p), Some(low), Some(high), Some(effect)) = (row.p_value, row.low, row.high, row.effect) else {
                continue;
            };
            tally.tested += 1;
            tally.found += u32::from(p <= 0.05);
            tally.worse += u32::from(p <= 0.05 && row.difference > Some(0.0));
            let truth = truth(law, metric, scale);
            tally.held += u32::from(truth.is_some_and(|truth| low <= truth && truth <= high));
            let real = if metric == Metric::Rate { 1.0 } else { scale };
            tally.ratio_held +=
                u32::from(effect.ratio_low <= Some(real) && effect.ratio_high.is_none_or(|high| real <= high));
        }
        rows[0].family = TestFamily::Headline;
        judge(&mut rows, Basis::WithinRuns);
        for (tally, metric) in tallies.iter_mut().zip(COMPARED) {
            let differs = |row: &&ComparedFigure| row.metric == metric && row.verdict.is_difference();
            tally.wrong += u32::from(rows.iter().any(|row| differs(&row)));
        }
        any += u32::from(rows.iter().any(|row| row.verdict.is_difference()));
    }
    (tallies, any)
}

/// The true difference.
fn truth(law: &Law, metric: Metric, scale: f64) -> Option<f64> {
    let lognormal = |normal: f64| law.pure.then(|| law.mean * (normal - 0.5).exp() * (scale - 1.0));
    match metric {
        Metric::NoiseRatio => Some(law.rate * law.mean / SECOND * (scale - 1.0)),
        Metric::Rate => Some(0.0),
        Metric::Mean => Some(law.mean * (scale - 1.0)),
        Metric::P99 => lognormal(2.326_347_9),
        Metric::P999 => lognormal(3.090_232_3),
        Metric::StretchMax if scale == 1.0 => Some(0.0),
        _ => None,
    }
}

/// An unadjusted row may be wrong in 5 % of trials, and so may its verdict, and all verdicts of a family together. 1,000 trials leave a standard
/// error of 0.7 %.
fn equal_runs_are_called_equal(law: &Law, lengths: [f64; 2]) {
    let (tallies, any) = tally(law, 1_000, lengths.map(|seconds| seconds * SECOND), 1.0);
    assert!(tallies[0].tested > 900, "{}: {tallies:?}", law.name);
    for (metric, tally) in COMPARED.iter().zip(tallies) {
        let share = f64::from(tally.wrong) / 1_000.0;
        assert!(share <= 0.06, "{}, {}: called different in {share} of equal runs", law.name, metric.name());
        if tally.tested > 500 {
            let held = f64::from(tally.ratio_held) / f64::from(tally.tested);
            assert!(held >= 0.92, "{}, {}: {held} of intervals hold", law.name, metric.name());
        }
    }
    assert!(any <= 100, "{}: any row was wrong in {any} of 1,000", law.name);
}

#[test]
fn equal_runs_of_few_heavy_detours() {
    equal_runs_are_called_equal(&LAWS[1], [10.0, 10.0]);
}

#[test]
fn equal_runs_with_trains() {
    equal_runs_are_called_equal(&LAWS[2], [10.0, 10.0]);
}

#[test]
fn equal_runs_of_different_lengths_with_trains() {
    equal_runs_are_called_equal(&LAWS[3], [10.0, 30.0]);
}

#[test]
fn equal_runs_with_a_tick() {
    equal_runs_are_called_equal(&LAWS[4], [10.0, 10.0]);
}

/// Runs of half a minute with a tick and other noise; the second one's detours are half as long again. Always found.
#[test]
fn a_change_by_half_is_found_and_measured() {
    let (tallies, _) = tally(&LAWS[4], 1_000, [30.0 * SECOND; 2], 1.5);
    assert!(tallies[0].worse >= 900, "found in {} of 1,000", tallies[0].worse);
    for (metric, tally) in COMPARED.iter().zip(tallies).take(3) {
        for held in [tally.held, tally.ratio_held] {
            let held = f64::from(held) / f64::from(tally.tested);
            assert!(held >= 0.92, "{}: {held} of intervals hold the truth", metric.name());
        }
    }
}

/// Recordings of 30 s of a machine whose noise differs from run to run: the lengths of all detours of a run have one factor, of mean `scale` and with
/// the coefficient of variation `between`.
fn recordings(source: &mut Source, runs: usize, scale: f64, between: f64) -> Vec<DetourSample> {
    let length = 30.0 * SECOND;
    let mut recording = || {
        let factor = scale * (between * source.normal() - between * between / 2.0).exp();
        sample(&(LAWS[4].detours)(source, length, factor), length, (length / 32.0) as i64)
    };
    (0..runs).map(|_| recording()).collect()
}

/// Compares sides of `runs` runs `trials` times, and counts how often the noise, and how often any figure, is called different.
fn differences(trials: usize, runs: usize, scale: f64, between: f64) -> (usize, usize) {
    let mut source = Source::seeded(17);
    let basis = Basis::for_runs(runs, runs);
    let (mut noise, mut any) = (0, 0);
    for _ in 0..trials {
        let sides = [1.0, scale].map(|scale| recordings(&mut source, runs, scale, between));
        let mut rows =
            place_rows(&sides.each_ref().map(|side| side.iter().collect()), true, RunScatter::for_whole(basis));
        rows[0].family = TestFamily::Headline;
        judge(&mut rows, basis);
        noise += usize::from(rows[0].verdict.is_difference());
        any += usize::from(rows.iter().any(|row| row.verdict.is_difference()));
    }
    (noise, any)
}

/// A machine whose runs differ by 5 % on their own. Measured: none of 500 pairs of single runs; of 1,000 pairs of three runs, 21 in noise and 22 in
/// any figure.
#[test]
fn equal_machines_whose_runs_differ_are_called_equal() {
    let (one, any) = differences(500, 1, 1.0, 0.05);
    assert!(one <= 30 && any <= 50, "one run a side: noise differs in {one} of 500, any figure in {any}");
    let (noise, any) = differences(1_000, 3, 1.0, 0.05);
    assert!(noise <= 60, "noise was called different in {noise} of 1,000");
    assert!(any <= 100, "any figure was called different in {any} of 1,000");
}

/// Measured in this order: 412, 399 and 205 of 500.
#[test]
fn several_runs_find_a_change_of_a_tenth() {
    for (runs, between, least) in [(3, 0.01, 390), (5, 0.03, 370), (3, 0.03, 180)] {
        let (noise, _) = differences(500, runs, 1.1, between);
        assert!(noise >= least, "{runs} runs a side that differ by {between}: found in {noise} of 500");
    }
}

#[test]
fn one_run_a_side_says_nothing_of_better_or_worse() {
    let mut source = Source::seeded(3);
    let [a, b] = [1.0, 2.0].map(|scale| recordings(&mut source, 3, scale, 0.0));
    let verdict = |a: &[DetourSample], b: &[DetourSample]| {
        let basis = Basis::for_runs(a.len(), b.len());
        let mut rows = place_rows(&[a.iter().collect(), b.iter().collect()], true, RunScatter::for_whole(basis));
        judge(&mut rows, basis);
        rows[0].verdict
    };
    assert_eq!((verdict(&a[..1], &b[..1]), verdict(&b[..1], &a[..1])), (Verdict::Higher, Verdict::Lower));
    assert_eq!((verdict(&a, &b), verdict(&b, &a)), (Verdict::Worse, Verdict::Better));
}

/// A certain difference that is too small to matter.
#[test]
fn a_difference_of_one_percent_is_none_that_matters() {
    let ticks = |length: i64| -> DetourSample {
        let detours: Vec<(i64, i64)> = (0..2_500).map(|tick| (tick * 4_000_000, length)).collect();
        sample(&detours, 10.0 * SECOND, 312_500_000)
    };
    let several_runs =
        |a: &DetourSample, b: &DetourSample| place_rows(&[vec![a; 3], vec![b; 3]], true, RunScatter::Shown);
    for (length, several, expected) in [
        (10_100, true, Verdict::NoDifferenceShown),
        (10_500, true, Verdict::Worse),
        // Recordings of one machine differ by as much.
        (10_500, false, Verdict::NoDifferenceShown),
        (15_000, false, Verdict::Higher),
    ] {
        let compared = if several { several_runs } else { two_runs };
        let mut rows = compared(&ticks(10_000), &ticks(length));
        judge(&mut rows, if several { Basis::BetweenRuns } else { Basis::WithinRuns });
        assert!(rows[0].p_value < Some(0.001) || !several, "{:?}", rows[0]);
        assert_eq!(rows[0].verdict, expected, "{length}");
    }
}

/// The cells of a host that drifts: multiples of its usual noise in each tenth of a second. One part differs from recording to recording, another
/// wanders within seconds (an Ornstein-Uhlenbeck process).
fn drifts(source: &mut Source, between: f64, wander: f64, seconds: f64) -> Vec<f64> {
    let recording = between * source.normal();
    let kept = (-0.1 / seconds).exp();
    let mut at = source.normal();
    let step = |_| {
        at = kept * at + (1.0 - kept * kept).sqrt() * source.normal();
        (recording + wander * at).exp()
    };
    (0..100).map(step).collect()
}

/// A recording of 10 s of such a host: a tick, and random detours whose number drifts. `planted` is the noise of added
/// regular detours, relative to the usual noise.
fn drifting_host(source: &mut Source, drift: [f64; 3], planted: f64) -> DetourSample {
    let [between, wander, seconds] = drift;
    let length = 10.0 * SECOND;
    // Half of the usual 0.25 % is the tick's.
    let mut detours: Vec<(i64, i64)> = (0..2_500).map(|tick| (tick * 4_000_000, 5_000)).collect();
    for (tenth, factor) in drifts(source, between, wander, seconds).into_iter().enumerate() {
        let begin = tenth as f64 * 0.1 * SECOND;
        let more = poisson(source, 0.1 * SECOND, 125.0 * factor, 10_000.0);
        detours.extend(more.into_iter().map(|(start, duration)| (begin as i64 + start, duration)));
    }
    let each = (0.0025 * planted * 10e6) as i64;
    detours.extend((0..if each > 0 { 1_000 } else { 0 }).map(|at| (at * 10_000_000 + 3_000_000, each)));
    detours.sort_unstable();
    sample(&detours, length, (length / 32.0) as i64)
}

/// Of 200 pairs: in how many the noise, and in how many any figure, is called different.
fn drifting_pairs(drift: [f64; 3], planted: f64) -> (u32, u32) {
    let mut source = Source::seeded(41);
    let (mut noise, mut any) = (0, 0);
    for _ in 0..200 {
        let a = drifting_host(&mut source, drift, 0.0);
        let b = drifting_host(&mut source, drift, planted);
        let mut rows = two_runs(&a, &b);
        rows[0].family = TestFamily::Headline;
        judge(&mut rows, Basis::WithinRuns);
        noise += u32::from(rows[0].verdict.is_difference());
        any += u32::from(rows.iter().any(|row| row.verdict.is_difference()));
    }
    (noise, any)
}

/// Pairs of recordings of a host with a load that drifts: equal pairs, and pairs with 50 % more noise in the second.
#[test]
fn recordings_of_a_drifting_host_are_called_equal_and_half_as_much_again_is_found() {
    for drift in [[0.0, 0.0, 1.0], [0.1, 0.15, 0.5], [0.15, 0.15, 2.0], [0.15, 0.15, 30.0]] {
        let (noise, any) = drifting_pairs(drift, 0.0);
        assert!(noise <= 20 && any <= 20, "{drift:?}: of 200 equal pairs {noise} differ in noise, {any} in any figure");
        let (found, _) = drifting_pairs(drift, 0.5);
        assert!(found >= 160, "{drift:?}: half as much again is found in {found} of 200");
    }
    // A host that drifts more hides more.
    for drift in [[0.1, 0.4, 5.0], [0.2, 0.4, 2.0]] {
        let (noise, any) = drifting_pairs(drift, 0.0);
        assert!(noise <= 20 && any <= 20, "{drift:?}: of 200 equal pairs {noise} differ in noise, {any} in any figure");
    }
}

/// The interval of the difference, that of the ratio, the p-value and the limit of 0 % all agree.
#[test]
fn intervals_and_tests_agree() {
    let mut source = Source::seeded(5);
    let mut found = 0;
    for scale in [0.5, 1.0, 2.0].repeat(20) {
        for row in trial(&LAWS[0], &mut source, [10.0 * SECOND; 2], scale).into_iter().take(3) {
            let (Some(low), Some(high), Some(p), Some(effect)) = (row.low, row.high, row.p_value, row.effect) else {
                panic!("{row:?}")
            };
            let zero_is_out = low > 0.0 || high < 0.0;
            let one_is_out = effect.ratio_low > Some(1.0) || effect.ratio_high.is_some_and(|high| high < 1.0);
            assert_eq!(zero_is_out, one_is_out, "{row:?}");
            assert_eq!(zero_is_out, p <= 0.05, "{row:?}");
            let judged = ComparedFigure { verdict: Verdict::NoDifferenceShown, ..row };
            assert_eq!(exceeds(&judged, 0.0) == Limit::Exceeded, low > 0.0, "{judged:?}");
            found += i32::from(zero_is_out);
        }
    }
    assert!(found > 20, "{found}");
}

/// Two fleets of 32 nodes; only the second has a slow node, and another threshold. Compared in full and in summary form.
fn fleets(threshold: Nanos, damaged: bool) -> (Comparison, Comparison) {
    let folder = tempfile::tempdir().unwrap();
    let [a, b] = ["a.becalm", "b.becalm"].map(|name| folder.path().join(name));
    write_fleet(&a, Planted::Nothing, 1);
    write_fleet_with(&b, Planted::SlowNode, 2, |_, doc| doc.cpus[0].threshold_ns = threshold);
    let all = Selection::default();
    let full = compare((&Bundle::open(&a).unwrap(), &all), (&Bundle::open(&b).unwrap(), &all)).unwrap();
    if damaged {
        std::fs::write(b.join("runs/node=n05.json"), "nothing").unwrap();
    }
    let [a, b] = [a, b].map(|path| StoredNodes::open(&path).unwrap());
    (full, compare_nodes(&[(&a, &all)], &[(&b, &all)]).unwrap())
}

fn node_rows(comparison: &Comparison) -> Vec<&ComparedFigure> {
    let is_noise = |row: &&ComparedFigure| row.family == TestFamily::Nodes && row.metric == Metric::NoiseRatio;
    comparison.rows.iter().filter(is_noise).collect()
}

/// Asserts that two figures differ by at most `error`.
#[track_caller]
fn near(full: Option<f64>, short: Option<f64>, error: f64, what: &str) {
    let (full, short) = (full.unwrap(), short.unwrap());
    assert!((full - short).abs() <= error * full.abs(), "{what}: {full} in full, {short} in summary form");
}

#[test]
fn nodes_are_compared_in_full_and_in_summary_form() {
    let (full, short) = fleets(Nanos::new(105), false);
    for comparison in [&full, &short] {
        let nodes = node_rows(comparison);
        let changed: Vec<&str> = nodes
            .iter()
            .filter(|row| row.verdict.is_difference())
            .map(|row| row.place.as_ref().unwrap().node.as_str())
            .collect();
        assert_eq!((nodes.len(), changed), (32, vec!["n17"]), "{nodes:?}");
        assert!(nodes[17].verdict == Verdict::Higher && nodes[17].effect.unwrap().ratio.unwrap() > 4.0);
        // The only CPU of each node is not listed again.
        assert!(comparison.rows.iter().all(|row| row.family != TestFamily::Cpus));
    }
    for (full, short) in full.rows.iter().zip(&short.rows) {
        let what = format!("{:?} of {:?} {:?}", short.metric, short.place, short.source);
        match short.metric {
            Metric::StretchMax => assert_eq!(short.doubt, Some(Doubt::SummaryForm), "{what}"),
            Metric::P99 | Metric::P999 => {
                near(full.a, short.a, 0.008, &what);
                assert_eq!(short.doubt, Some(Doubt::SummaryForm), "{what}");
            }
            _ => {
                near(full.a, short.a, 1e-9, &what);
                near(full.b, short.b, 1e-9, &what);
            }
        }
        let apart = short.source.is_some() && (full.metric, &full.source) != (short.metric, &short.source);
        assert!(!apart, "{what}: the sources are not those of the full recordings");
    }
    let codes: Vec<&str> = short.notes.iter().map(|note| note.code.as_str()).collect();
    assert_eq!((full.notes.len(), codes), (0, vec!["summary_form"]));
}

#[test]
fn a_threshold_is_applied_to_summary_forms_by_their_sums() {
    // Some detours of all nodes are shorter, and some are longer.
    let (full, short) = fleets(Nanos::new(24_022), false);
    let dropped = |comparison: &Comparison| comparison.a.runs[0].dropped as f64;
    assert!(dropped(&full) > 1_000.0);
    // The threshold is within a bucket of lengths.
    near(Some(dropped(&full)), Some(dropped(&short)), 0.05, "what is left out");
    for metric in [Metric::NoiseRatio, Metric::Rate, Metric::Mean] {
        near(full.total(metric).unwrap().a, short.total(metric).unwrap().a, 0.05, metric.name());
    }
}

#[test]
fn a_node_that_cannot_be_read_is_told_and_the_others_are_compared() {
    let (_, short) = fleets(Nanos::new(105), true);
    assert_eq!(node_rows(&short).len(), 31);
    let notes: Vec<&str> = short.notes.iter().map(|note| note.message.as_str()).collect();
    assert!(notes.iter().any(|note| note.starts_with("n05 of B is left out: ")), "{notes:?}");
    assert!(notes.iter().any(|note| note.contains("CPU 0 of n05, and not every run did")), "{notes:?}");
}

/// The drift may affect any figure, so no row has a verdict.
#[test]
fn a_recording_that_drifts_has_no_verdict_in_any_row() {
    let folder = tempfile::tempdir().unwrap();
    let [a, b] = ["a.becalm", "b.becalm"].map(|name| folder.path().join(name));
    let all = Selection::default();
    write_fleet(&a, Planted::Nothing, 1);
    write_fleet(&b, Planted::SlowNode, 2);
    let steady = compare((&Bundle::open(&a).unwrap(), &all), (&Bundle::open(&b).unwrap(), &all)).unwrap();
    let mut rows = steady.rows;
    assert!(rows.iter().any(|row| row.verdict.is_difference()));
    rows[0].doubt = Some(Doubt::LongTrains { block_ns: 1 });
    rows[0].p_value = None;
    super::row::refuse_drift(&mut rows, Basis::WithinRuns);
    rows.iter_mut().for_each(|row| row.verdict = Verdict::NotEnoughData);
    judge(&mut rows, Basis::WithinRuns);
    assert!(rows.iter().all(|row| row.verdict == Verdict::NotEnoughData));
    assert!(rows.iter().all(|row| row.doubt.is_some()));
}
