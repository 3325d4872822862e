//! Repetitions in words.

use becalm_report::form::value::{three_digits, time};
use becalm_units::{counted, cpus};

use super::{RunQuietReport, SeenBy};
use crate::run_quiet::repetitions::{Judged, LEAST_RUNS, SpreadVerdict};

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

/// The first line: the time, the disturbed repetitions, and the cause of the spread.
pub(super) fn verdict(report: &RunQuietReport<'_>) -> String {
    let Judged { all, touched, verdict, .. } = report.judged;
    let spread = all.stddev_ns.map_or_else(String::new, |stddev| format!(" +- {}", time(stddev.round() as i64)));
    let mean = format!("{}{spread} in {}", time(all.mean_ns.round() as i64), counted(all.runs as u64, "run", "runs"));
    let touched = touched.iter().filter(|touched| **touched).count();
    let noise = match (report.judged.usual_lost_ns, touched) {
        (None, _) => "what noise took could not be seen".to_owned(),
        (Some(usual), touched) => {
            let share = if all.median_ns > 0 { usual as f64 / all.median_ns as f64 } else { 0.0 };
            let more = if touched == 0 { "none".to_owned() } else { format!("{touched} of them") };
            format!(
                "noise usually takes {} of one ({}%), and much more of {more}",
                time(usual),
                three_digits(share * 100.0)
            )
        }
    };
    let percent = |share: f64| format!("{} %", (share.clamp(0.0, 1.0) * 100.0).round());
    let whose = match verdict {
        SpreadVerdict::TooFew => {
            format!(
                "of fewer than {LEAST_RUNS} runs it cannot be said whether the machine or the program makes them differ"
            )
        }
        SpreadVerdict::Steady(ratio) => format!("they differ by {} % only", three_digits(ratio * 100.0)),
        SpreadVerdict::Unknown => {
            "so it cannot be said whether the machine or the program makes them differ".to_owned()
        }
        SpreadVerdict::Machines(share) => {
            format!("the machine makes them differ: {} of the variance goes with what was lost", percent(*share))
        }
        SpreadVerdict::Programs(share) => format!(
            "the program makes them differ, or what is not seen, as caches and clock frequency: only {} of the variance goes with what was \
             lost",
            percent(*share)
        ),
    };
    format!("{mean}; {noise}; {whose}.")
}

/// The CPUs, and the method of observation.
pub(super) fn place(report: &RunQuietReport<'_>) -> String {
    let place = cpus(report.cpus);
    let tuned = if report.is_tuned { "made quiet meanwhile" } else { "left as it is" };
    let seen = match report.seen_by {
        SeenBy::Trace => "the kernel's trace tells what interrupted it",
        SeenBy::Counters => "the kernel's counters tell how long it waited, not for whom",
    };
    let warmup = match report.warmup {
        0 => String::new(),
        warmup => format!("; {} before", counted(warmup, "warm-up run", "warm-up runs")),
    };
    format!("on {place}, {tuned}; {seen}{warmup}")
}
