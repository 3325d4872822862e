//! Repetitions in words.

use becalm_report::form::value::{three_digits, time};
use becalm_units::{counted, cpus};

use super::{BenchReport, SeenBy};
use crate::bench::repetitions::{Judged, LEAST_RUNS, SpreadVerdict};

/// The verdict's name in documents.
pub(super) const fn verdict_name(verdict: SpreadVerdict) -> &'static str {
    match verdict {
        SpreadVerdict::TooFew => "too_few_runs",
        SpreadVerdict::Steady(_) => "steady",
        SpreadVerdict::Unknown => "unknown",
        SpreadVerdict::Machines(_) => "machine",
        SpreadVerdict::Programs(_) => "program",
    }
}

/// The first line: the time, what noise took, and the cause of the spread.
pub(super) fn verdict(report: &BenchReport<'_>) -> String {
    let Judged { all, touched, verdict, .. } = report.judged;
    let spread = all.stddev_ns.map_or_else(String::new, |stddev| format!(" +- {}", time(stddev.round() as i64)));
    let runs = counted(all.runs as u64, "run", "runs");
    let mean = format!("{}{spread} ({runs})", time(all.mean_ns.round() as i64));
    let noise = report.judged.usual_lost_ns.map_or_else(
        || "The time lost to noise is unknown".to_owned(),
        |usual| {
            let share = if all.median_ns > 0 { usual as f64 / all.median_ns as f64 } else { 0.0 };
            let share = three_digits(share * 100.0);
            let more = match touched.iter().filter(|touched| **touched).count() {
                0 => String::new(),
                more => format!(", and much more of {more}"),
            };
            format!("Noise took about {} ({share}%) of each run{more}", time(usual))
        },
    );
    let variance = |share: f64| format!("{}% of the variance", (share.clamp(0.0, 1.0) * 100.0).round());
    let whose = match verdict {
        SpreadVerdict::TooFew => format!(". Too few runs to explain the spread: {LEAST_RUNS} are needed"),
        SpreadVerdict::Steady(ratio) => format!(". The runs differ by only {}%", three_digits(ratio * 100.0)),
        SpreadVerdict::Unknown => ", so the spread cannot be explained".to_owned(),
        SpreadVerdict::Machines(share) => format!(", which explains the spread ({})", variance(*share)),
        SpreadVerdict::Programs(share) => format!(", so it does not explain the spread ({})", variance(*share)),
    };
    format!("{mean}. {noise}{whose}.")
}

/// The CPUs, and the method of observation.
pub(super) fn place(report: &BenchReport<'_>) -> String {
    let place = cpus(report.cpus);
    let tuned = if report.is_tuned { "isolated for the runs" } else { "not tuned" };
    let seen = match report.seen_by {
        SeenBy::Trace => "interruptions from the kernel's trace",
        SeenBy::Counters => "waiting time from the kernel's counters, without sources",
    };
    let warmup = match report.warmup {
        0 => String::new(),
        warmup => format!("; after {}", counted(warmup, "warm-up run", "warm-up runs")),
    };
    format!("on {place}, {tuned}; {seen}{warmup}")
}
