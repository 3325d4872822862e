use becalm_model::Kind;
use becalm_tune::{BenchReport, Judged, LostTo, Repetition, SeenBy, judge};
use becalm_units::CpuList;

use crate::{check, check_forms};

fn run(time_us: i64, lost_us: Option<i64>, kind: Option<Kind>, source: &str) -> Repetition {
    Repetition {
        time_ns: time_us * 1_000,
        user_ns: 90_000_000,
        system_ns: 1_000_000,
        lost_ns: lost_us.map(|lost| lost * 1_000),
        interruptions: lost_us.map(|lost| lost as u64 / 10),
        lost_events: 0,
        sources: vec![LostTo { kind, source: source.to_owned(), ns: lost_us.unwrap_or(0) * 900 }],
        exit_code: 0,
    }
}

/// The report of repetitions on tuned CPUs that the kernel's trace saw.
fn traced<'a>(cpus: &'a CpuList, runs: &'a [Repetition], judged: &'a Judged) -> BenchReport<'a> {
    BenchReport { command: &[], cpus, is_tuned: true, seen_by: SeenBy::Trace, not_done: &[], warmup: 1, runs, judged }
}

#[test]
fn repetitions_of_which_noise_touched_one() {
    let times = [(100_000, 500), (100_300, 510), (131_000, 31_000), (99_900, 490), (100_100, 505), (100_050, 500)];
    let runs: Vec<_> = times
        .map(|(time, lost)| match lost {
            // As others may name their threads.
            31_000 => run(time, Some(lost), Some(Kind::Task), "gremlin\u{1b}[2J"),
            _ => run(time, Some(lost), Some(Kind::Irq), "tick"),
        })
        .into();
    let (judged, cpu) = (judge(&runs, 1), "1".parse().unwrap());
    let report = BenchReport { command: &["bench".to_owned(), "--size".to_owned()], ..traced(&cpu, &runs, &judged) };
    check("bench", &report);
    check_forms("bench", &report);
    insta::assert_snapshot!("bench_hyperfine", report.hyperfine());
}

#[test]
fn repetitions_that_only_counters_saw() {
    let runs: Vec<_> = [100_000, 150_000, 101_000].map(|time| run(time, None, None, "waiting for the CPU")).into();
    let judged = judge(&runs, 2);
    let not_done = ["the CPUs are not made quiet: changing settings needs root".to_owned()];
    let report = BenchReport {
        command: &["bench".to_owned()],
        cpus: &"0-1".parse().unwrap(),
        is_tuned: false,
        seen_by: SeenBy::Counters,
        not_done: &not_done,
        warmup: 0,
        runs: &runs,
        judged: &judged,
    };
    check("bench_counters", &report);
}

#[test]
fn slow_ones_of_many_repetitions() {
    let runs: Vec<_> = (0..30)
        .map(|number| match number % 9 {
            4 => run(110_000 + number, Some(10_500), Some(Kind::Task), "gremlin"),
            _ => run(100_000 + number, Some(500), Some(Kind::Irq), "tick"),
        })
        .collect();
    let (judged, cpu) = (judge(&runs, 1), "1".parse().unwrap());
    let report = traced(&cpu, &runs, &judged);
    let text = becalm_report::text(&report, becalm_report::Form::within(Some(100)));
    let (_, slow) = text.split_once("Slow runs").expect("there are enough");
    insta::assert_snapshot!("bench_slow", slow);
    assert!(becalm_report::json(&report).contains("\"verdict\": \"system\""));
    // The losses of several CPUs are not those of the program.
    assert_eq!(judge(&runs, 2).explained, None);
}
