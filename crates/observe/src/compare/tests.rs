//! Comparisons of small recordings whose figures are found again by plain sums.

use std::path::{Path, PathBuf};

use becalm_analyze::compare::{Basis, Verdict};
use becalm_bundle::{ObservedSegment, ObservedWriter, ThreadRow};
use becalm_model::node::{Ended, TracingDoc};
use becalm_model::observed::{LifePart, ObservedRows, OwnedActivity, Owner, Stay, StayReason, ThreadDetour, ThreadId};
use becalm_model::{Kind, Label, Labels};
use becalm_report::text;
use becalm_stats::{student_quantile, student_tail};
use becalm_units::{CpuId, Nanos};
use proptest::prelude::*;

use super::document::{LivesDoc, document};
use super::question::{are_observed, refuse_repeated};
use super::report::{CompareObservedReport, headline, notes};
use super::series::TakerKey;
use super::sides::{Compared, ReadRun, Sides};
use crate::document::{ObservedDoc, PartDoc, TakerDoc, ThreadDoc};

/// A part of a life.
#[derive(Clone, Copy, Debug)]
enum Step {
    Runs(i64),
    /// It runs with an interrupt on top at the start.
    Ticked(i64, i64),
    OnTheWay(i64),
    /// It waits for another program, and for a thread of its own process.
    Waits(i64, i64),
    Sleeps(i64),
}

/// A thread, by its name, and its life.
type Life = (&'static str, Vec<Step>);

/// Writes a recording of these threads, which all start at once.
fn write(bundle: &Path, lives: &[Life]) {
    let mut labels = Labels::new();
    labels.intern("");
    let [others, own, tick] = ["grem1", "worker", "tick"].map(|name| labels.intern(name));
    let mut segment = ObservedSegment::default();
    let (mut threads, mut rows) = (Vec::new(), Vec::new());
    for (place, (name, steps)) in lives.iter().enumerate() {
        let (thread, cpu) = (ThreadId(place as u32), CpuId::new(1));
        let mut now = 0;
        let mut doc =
            ThreadDoc { tid: 100 + place as i32, process: 100, name: (*name).to_owned(), ..ThreadDoc::default() };
        let (mut ticks, mut taken) = (0, [0; 2]);
        for step in steps {
            let (part, length) = match *step {
                Step::Runs(length) | Step::Ticked(length, _) => (LifePart::Ran, length),
                Step::OnTheWay(length) => (LifePart::OnTheWay, length),
                Step::Waits(one, other) => (LifePart::Queued, one + other),
                Step::Sleeps(length) => (LifePart::Asleep, length),
            };
            let (start, duration) = (Nanos::new(now), Nanos::new(length));
            let (reason, context) = (StayReason::None, Label::EMPTY);
            segment.stays.push(Stay { thread, cpu, start, duration, part, reason, context, by: None });
            let activities = match *step {
                Step::Ticked(_, tick_ns) => vec![(Owner::Interrupt, Kind::Irq, tick, tick_ns)],
                Step::Waits(one, other) => {
                    vec![(Owner::Others, Kind::Task, others, one), (Owner::Process, Kind::Task, own, other)]
                }
                _ => Vec::new(),
            };
            if !activities.is_empty() {
                let length = activities.iter().map(|row| row.3).sum();
                let detour = segment.detours.len();
                segment.detours.push(ThreadDetour { thread, cpu, start, duration: Nanos::new(length) });
                let row = |(owner, kind, source, time)| {
                    (detour, OwnedActivity { owner, kind, source, thread: None, time: Nanos::new(time), visits: 1 })
                };
                segment.activities.extend(activities.into_iter().map(row));
            }
            match *step {
                Step::Ticked(_, tick_ns) => ticks += tick_ns,
                Step::Waits(one, other) => taken = [taken[0] + one, taken[1] + other],
                _ => {}
            }
            let sum = match part {
                LifePart::Ran => &mut doc.ran_ns,
                LifePart::OnTheWay => &mut doc.on_the_way_ns,
                LifePart::Queued => &mut doc.queued_ns,
                _ => &mut doc.asleep_ns,
            };
            *sum += duration;
            now += length;
        }
        doc.wall_ns = Nanos::new(now);
        doc.waited_ns = doc.queued_ns + doc.on_the_way_ns;
        doc.ran = vec![PartDoc { kind: "irq".to_owned(), source: "tick".to_owned(), ns: Nanos::new(ticks), count: 1 }];
        let taker = |source: &str, owner, ns| TakerDoc {
            kind: Kind::Task,
            source: source.to_owned(),
            owner,
            ns: Nanos::new(ns),
            count: 1,
            longest_ns: Nanos::ZERO,
            process: None,
            command: String::new(),
            cgroup: String::new(),
        };
        doc.takers = vec![taker("grem1", Owner::Others, taken[0]), taker("worker", Owner::Process, taken[1])];
        rows.push(ThreadRow {
            thread: place as i32,
            tid: doc.tid,
            process: 100,
            parent: -1,
            name: labels.intern(name),
            command: Label::EMPTY,
            group: Label::EMPTY,
            start_ns: 0,
            end_ns: now,
            chosen: true,
            kernel: false,
        });
        threads.push(doc);
    }
    let mut doc = ObservedDoc::new("node1".to_owned(), "becalm".to_owned());
    doc.ended = Some(Ended::Duration);
    doc.tracing = Some(TracingDoc::default());
    doc.duration_ns = threads.iter().map(|thread| thread.wall_ns).max().unwrap();
    doc.threads = threads;
    let mut writer = ObservedWriter::create(bundle, &doc).unwrap();
    writer.write_segment(&segment, &labels).unwrap();
    doc.rows = ObservedRows { threads: rows.len() as u64, ..writer.rows() };
    writer.finish(&doc, &rows, &labels).unwrap();
}

/// Writes and compares two recordings.
fn compared(a: &[Life], b: &[Life]) -> becalm_units::fault::Result<Compared> {
    compared_sides([&[a], &[b]])
}

/// Writes and compares several recordings per side.
fn compared_sides(sides: [&[&[Life]]; 2]) -> becalm_units::fault::Result<Compared> {
    let folder = tempfile::tempdir().unwrap();
    let read = |side: usize| {
        let read = |(number, lives): (usize, &&[Life])| {
            let bundle = folder.path().join(format!("{side}-{number}.becalm"));
            write(&bundle, lives);
            ReadRun::read(&bundle, None).unwrap()
        };
        sides[side].iter().enumerate().map(read).collect()
    };
    Sides::new([read(0), read(1)])?.compared()
}

/// A life with a wait in each of 200 steps, of changing length.
fn waiting(wait: i64) -> Vec<Step> {
    let step = |number: i64| {
        [
            Step::Ticked(1_000_000 + number % 3 * 1_000, 5_000),
            Step::Waits(wait + number % 5 * 100, 700),
            Step::OnTheWay(50),
        ]
    };
    (0..200).flat_map(step).collect()
}

/// The lengths of steps that `of` picks, by a plain sum.
fn sum(lives: &[Life], of: impl Fn(&Step) -> i64) -> i64 {
    lives.iter().flat_map(|(_, steps)| steps).map(of).sum()
}

fn lost(step: &Step) -> i64 {
    match step {
        Step::Ticked(_, tick) => *tick,
        Step::OnTheWay(length) | Step::Waits(length, _) => *length,
        Step::Runs(_) | Step::Sleeps(_) => 0,
    }
}

fn wall(step: &Step) -> i64 {
    match step {
        Step::Runs(length) | Step::Ticked(length, _) | Step::OnTheWay(length) | Step::Sleeps(length) => *length,
        Step::Waits(one, other) => one + other,
    }
}

#[test]
fn figures_are_the_plain_sums() {
    let a = [
        ("solver", waiting(60_000)),
        ("solver", waiting(80_000)),
        ("logger", vec![Step::Sleeps(9_000_000), Step::Runs(9)]),
    ];
    let b = [("solver", waiting(2_000)), ("logger", vec![Step::Sleeps(5_000_000)]), ("extra", waiting(1))];
    let found = compared(&a, &b).unwrap();
    let total = &found.lives.total;
    for (side, lives, share) in [(0, &a[..2], total.a), (1, &b[..1], total.b)] {
        let expected = sum(lives, lost) as f64 / sum(lives, wall) as f64;
        assert!((share.unwrap() / expected - 1.0).abs() < 1e-12, "{share:?} {expected}");
        let doc = LivesDoc::from(&found.sides.totals(side, None));
        assert_eq!((doc.lost_ns.get(), doc.wall_ns.get()), (sum(lives, lost), sum(lives, wall)));
        // Both sums are exact.
        assert_eq!(doc.ran_ns + doc.waited_ns + doc.asleep_ns + doc.unknown_ns, doc.wall_ns);
        let taken: i64 = found.takers.iter().map(|(_, times)| times[side]).sum();
        assert_eq!(Nanos::new(taken), doc.queued_ns + doc.quota_ns + doc.interrupts_ns + doc.host_ns);
    }
    assert_eq!(total.verdict, Verdict::Lower);
    let time = |source: &str, on_top: bool| {
        let key = |(key, _): &&(TakerKey, [i64; 2])| key.source == source && key.on_top == on_top;
        found.takers.iter().find(key).unwrap().1
    };
    let waits = |step: &Step| if let Step::Waits(one, _) = step { *one } else { 0 };
    assert_eq!(time("grem1", false), [sum(&a[..2], waits), sum(&b[..1], waits)]);
    assert_eq!(time("tick", true), [400 * 5_000, 200 * 5_000]);
    assert_eq!(found.takers[0].0.source, "grem1", "the largest difference is first");
    assert_eq!(found.sides.shown, [true, false]);
    assert_eq!(found.sides.alone, [vec![], vec!["extra".to_owned()]]);
}

/// The same figures by the textbook: geometric means, and Welch's test of the logarithms of one share per recording.
#[test]
fn several_recordings_are_compared_by_one_share_each() {
    // Recordings of one side differ by far more than the steps within them.
    let [before, after] = [vec![60_000, 90_000, 70_000, 50_000], vec![20_000, 30_000, 26_000]].map(|waits| {
        waits.into_iter().map(|wait| vec![("solver", waiting(wait)), ("solver", waiting(wait / 2))]).collect::<Vec<_>>()
    });
    let [a, b] = [&before, &after].map(|side| side.iter().map(Vec::as_slice).collect::<Vec<_>>());
    let found = compared_sides([&a, &b]).unwrap();
    assert_eq!(found.lives.basis, Basis::BetweenRuns);
    let waits = |step: &Step| if let Step::Waits(one, _) = step { *one } else { 0 };
    let taker = found.takers.iter().position(|(key, _)| key.source == "grem1").unwrap();
    for (row, of) in [(&found.lives.total, lost as fn(&Step) -> i64), (&found.lives.takers[taker], waits)] {
        // The mean of the logarithms, the variance of that mean, and its degrees of freedom.
        let side = |runs: &[&[Life]]| {
            let logs: Vec<f64> = runs.iter().map(|run| (sum(run, of) as f64 / sum(run, wall) as f64).ln()).collect();
            let n = logs.len() as f64;
            let mean = logs.iter().sum::<f64>() / n;
            (mean, logs.iter().map(|log| (log - mean).powi(2)).sum::<f64>() / (n - 1.0) / n, n - 1.0)
        };
        let ((mean_a, variance_a, free_a), (mean_b, variance_b, free_b)) = (side(&a), side(&b));
        let variance = variance_a + variance_b;
        let freedom = variance.powi(2) / (variance_a.powi(2) / free_a + variance_b.powi(2) / free_b);
        let half = student_quantile(0.025, freedom) * variance.sqrt();
        let effect = row.effect.unwrap();
        let shown = [row.a, row.b, effect.ratio, effect.ratio_low, effect.ratio_high].map(Option::unwrap);
        let difference = mean_b - mean_a;
        let expected = [mean_a, mean_b, difference, difference - half, difference + half].map(f64::exp);
        for (shown, expected) in shown.into_iter().zip(expected) {
            assert!((shown / expected - 1.0).abs() < 1e-9, "{shown} {expected}");
        }
        let p_value = 2.0 * student_tail(difference.abs() / variance.sqrt(), freedom);
        assert!((row.p_value.unwrap() / p_value - 1.0).abs() < 1e-9, "{row:?} {p_value}");
        assert_eq!(row.verdict, Verdict::Better);
    }
    // Times are sums over all recordings of a side.
    for (side, runs) in [(0, &a), (1, &b)] {
        let doc = LivesDoc::from(&found.sides.totals(side, None));
        let all = |of: fn(&Step) -> i64| runs.iter().map(|run| sum(run, of)).sum::<i64>();
        assert_eq!((doc.threads, doc.lost_ns.get(), doc.wall_ns.get()), (2 * runs.len() as u64, all(lost), all(wall)));
        assert_eq!(found.takers[taker].1[side], all(waits));
    }
    let shown = text_of(&CompareObservedReport { compared: &found, limited: None });
    let told = |name: &str| shown.lines().any(|line| line.contains(name));
    assert!(["0-0.becalm", "0-3.becalm", "1-2.becalm"].into_iter().all(told), "{shown}");
}

#[test]
fn the_answer_names_the_cause() {
    let (a, b) = ([("solver", waiting(60_000))], [("solver", waiting(2_000))]);
    let there = compared(&a, &b).unwrap();
    let share = |lives: &[Life], of: fn(&Step) -> i64| 100.0 * sum(lives, of) as f64 / sum(lives, wall) as f64;
    let text = headline(&there);
    assert!(text.contains("better, mostly grem1 ("), "{text}");
    assert!(text.starts_with(&format!("others took {:.2}% of solver's time in A and ", share(&a, lost))), "{text}");
    assert!(headline(&compared(&b, &a).unwrap()).contains("worse, mostly grem1 ("));
    let report = CompareObservedReport { compared: &there, limited: None };
    let shown = text_of(&report);
    assert!(shown.contains("grem1 (others)") && shown.contains("tick (interrupt, on top)"), "{shown}");
    assert_eq!(document(&report).headline, text);
}

/// Ticks take nearly as much as the other program that is gone.
#[test]
fn takers_that_changed_are_named_if_their_sum_did_not() {
    let life = |wait: i64, tick: i64| {
        let step = |number: i64| {
            [
                Step::Ticked(1_000_000 + number % 3 * 1_000, tick),
                Step::Waits(wait + number % 5 * 100, 700),
                Step::OnTheWay(50),
            ]
        };
        [("solver", (0..200).flat_map(step).collect())]
    };
    let text = headline(&compared(&life(120_000, 60_000), &life(0, 60_000)).unwrap());
    assert!(text.contains("no significant change of the sum, but grem1 from 10.7% to "), "{text}");
    assert!(!text.contains("tick"), "{text}");
}

fn text_of(report: &CompareObservedReport<'_>) -> String {
    text(report, becalm_report::Form::default())
}

#[test]
fn threads_of_one_side_are_named_and_strangers_refused() {
    let both = compared(&[("solver", waiting(9)), ("old", waiting(9))], &[("solver", waiting(9)), ("new", waiting(9))]);
    let told = notes(&both.unwrap()).join("\n");
    assert!(told.contains("only A has threads of these names, which are not compared: old"), "{told}");
    assert!(told.contains("only B has threads of these names, which are not compared: new"), "{told}");
    let error = compared(&[("solver", waiting(9))], &[("printer", waiting(9))]).unwrap_err().to_string();
    assert!(error.contains("no thread of the same name: A has solver, and B has printer"), "{error}");
}

#[test]
fn other_recordings_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    becalm_fixtures::write_all(folder.path());
    becalm_fixtures::observed::write_observed(folder.path());
    let path = |name: &str| folder.path().join(name);
    let all = |names: [&str; 2]| -> Vec<PathBuf> { names.map(path).to_vec() };
    assert!(are_observed(&all(["observed", "missing"])).unwrap());
    assert!(!are_observed(&all(["pair", "busy"])).unwrap());
    let error = are_observed(&all(["pair", "observed"])).unwrap_err().to_string();
    assert!(error.contains("have no figures in common; compare two recordings of becalm observe"), "{error}");
    let run = || vec![ReadRun::read(&path("observed"), None).unwrap()];
    assert!(refuse_repeated(&[run(), run()]).unwrap_err().to_string().contains("hold the same recording"));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    /// A recording has no difference from itself, and the sums of its parts are exact.
    #[test]
    fn itself_is_no_different(waits in proptest::collection::vec((0_i64..90_000, 0_i64..9_000, 1_i64..900_000), 1..200)) {
        let steps = waits.into_iter().flat_map(|(one, other, runs)| {
            [Step::Ticked(runs + 10, 10), Step::Waits(one, other + 1), Step::Sleeps(runs), Step::OnTheWay(7)]
        });
        let lives = [("solver", steps.collect::<Vec<Step>>())];
        let found = compared(&lives, &lives).unwrap();
        let rows = [&found.lives.total].into_iter().chain(&found.lives.groups).chain(&found.lives.takers);
        for row in rows {
            prop_assert_eq!(row.difference, Some(0.0));
            prop_assert!(!row.verdict.is_difference());
        }
        for (_, [a, b]) in &found.takers {
            prop_assert_eq!(a, b);
        }
        let [a, b] = [0, 1].map(|side| LivesDoc::from(&found.sides.totals(side, None)));
        prop_assert_eq!(a, b);
        prop_assert_eq!(a.ran_ns + a.waited_ns + a.asleep_ns + a.unknown_ns, a.wall_ns);
        prop_assert_eq!(a.queued_ns + a.on_the_way_ns + a.quota_ns, a.waited_ns);
    }
}
