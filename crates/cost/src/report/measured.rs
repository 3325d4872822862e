//! The figures of a measured cost, which clocks and probes share.

use becalm_report::catalogue;
use becalm_report::form::field::fields;
use becalm_report::form::figure::{Picos, interval};

use crate::analysis::MeasuredCost;

fields! {
    /// The figures of a measured cost.
    pub(super) figures: MeasuredCost {
        MEDIAN_PS = "median_ps", "median", |measured| Picos(measured.cost.median_ps);
        MEDIAN_LOW_PS = "median_low_ps", "low", |measured| measured.cost.interval_ps.map(|ends| Picos(ends.0));
        MEDIAN_HIGH_PS = "median_high_ps", "high", |measured| measured.cost.interval_ps.map(|ends| Picos(ends.1));
        INTERVAL = "interval", "95 % CI",
            |measured| measured.cost.interval_ps.and_then(|(low, high)| interval(Some(Picos(low)), Some(Picos(high))));
        MEAN_PS = "mean_ps", "mean", |measured| Picos(measured.cost.mean_ps.round() as i64);
        STDDEV_PS = "stddev_ps", "stddev", |measured| Picos(measured.cost.stddev_ps.round() as i64);
        MIN_PS = "min_ps", "min", |measured| Picos(measured.cost.min_ps);
        P5_PS = "p5_ps", "p5", |measured| Picos(measured.cost.p5_ps);
        P95_PS = "p95_ps", "p95", |measured| Picos(measured.cost.p95_ps);
        MAX_PS = "max_ps", "max", |measured| Picos(measured.cost.max_ps);
        PROCESSES = "processes", "processes", |measured| match measured.cost.processes {
            0 => None,
            processes => Some(processes),
        };
        SAMPLES = catalogue::SAMPLES, |measured| measured.cost.samples;
        BATCH = "batch", "each of", |measured| measured.cost.batch;
        SLOW = "slow", "slow", |measured| measured.cost.slow;
        INTERRUPTED = "interrupted", "interrupted", |measured| measured.cost.interrupted;
        INTERRUPTED_EXCESS_PS = "interrupted_excess_ps", "took",
            |measured| Picos(measured.cost.interrupted_excess_ps);
        INTERRUPTS = "interrupts", "interrupts", |measured| measured.interrupts;
        PREEMPTED = "preempted", "preempted", |measured| measured.preempted;
    }
}

/// A figure of a row's measurement, which may be missing: `measured!(ProbeCost, MEDIAN_PS)`. Figures of other fields than `measured` have
/// their own names: `measured!(ClockCost, MEDIAN_PS of by_syscall, "syscall_median_ps", "by syscall")`.
macro_rules! measured {
    ($row:ty, $figure:ident) => {{
        use $crate::report::measured::figures::$figure;
        measured!($row, $figure of measured, $figure.name, $figure.title)
    }};
    ($row:ty, $figure:ident of $part:ident, $name:expr, $title:expr) => {
        becalm_report::form::field::Field {
            name: $name,
            title: $title,
            json: becalm_report::form::figure::JsonType { or_null: true, ..$crate::report::measured::figures::$figure.json },
            get: |row: &$row| {
                row.$part.as_ref().map_or(becalm_report::Value::Missing, $crate::report::measured::figures::$figure.get)
            },
        }
    };
}

pub(super) use measured;
