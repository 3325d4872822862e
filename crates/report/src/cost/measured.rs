//! What the samples of a measured cost come to: the figures that clocks and probes have alike.

use becalm_analyze::cost::MeasuredCost;

use crate::Value;
use crate::catalogue;
use crate::form::field::fields;

fn ps(value: Option<i64>) -> Value {
    value.map_or(Value::Missing, Value::Picos)
}

fields! {
    /// The figures of a measured cost.
    pub(super) figures: MeasuredCost {
        MEDIAN_PS = "median_ps", "median", |measured| Value::Picos(measured.cost.median_ps);
        MEDIAN_LOW_PS = "median_low_ps", "low", |measured| ps(measured.cost.interval_ps.map(|ends| ends.0));
        MEDIAN_HIGH_PS = "median_high_ps", "high", |measured| ps(measured.cost.interval_ps.map(|ends| ends.1));
        MEAN_PS = "mean_ps", "mean", |measured| Value::Picos(measured.cost.mean_ps.round() as i64);
        STDDEV_PS = "stddev_ps", "stddev", |measured| Value::Picos(measured.cost.stddev_ps.round() as i64);
        MIN_PS = "min_ps", "min", |measured| Value::Picos(measured.cost.min_ps);
        P5_PS = "p5_ps", "p5", |measured| Value::Picos(measured.cost.p5_ps);
        P95_PS = "p95_ps", "p95", |measured| Value::Picos(measured.cost.p95_ps);
        MAX_PS = "max_ps", "max", |measured| Value::Picos(measured.cost.max_ps);
        PROCESSES = "processes", "processes", |measured| match measured.cost.processes {
            0 => Value::Missing,
            processes => Value::Count(processes),
        };
        SAMPLES = catalogue::SAMPLES, |measured| Value::Count(measured.cost.samples);
        BATCH = "batch", "each of", |measured| Value::Count(measured.cost.batch.into());
        SLOW = "slow", "slow", |measured| Value::Count(measured.cost.slow);
        INTERRUPTED = "interrupted", "interrupted", |measured| Value::Count(measured.cost.interrupted);
        INTERRUPTED_EXCESS_PS = "interrupted_excess_ps", "took",
            |measured| Value::Picos(measured.cost.interrupted_excess_ps);
        INTERRUPTS = "interrupts", "interrupts", |measured| measured.interrupts.map_or(Value::Missing, Value::Count);
        PREEMPTED = "preempted", "pre-empted", |measured| Value::Count(measured.preempted);
    }
}

/// A figure of what was measured of a row, which may be nothing: `measured!(ProbeCost, MEDIAN_PS)`. What is not measured as
/// the row's `measured` has its own name: `measured!(ClockCost, MEDIAN_PS of by_syscall, "syscall_median_ps", "by syscall")`.
macro_rules! measured {
    ($row:ty, $figure:ident) => {{
        use $crate::cost::measured::figures::$figure;
        measured!($row, $figure of measured, $figure.name, $figure.title)
    }};
    ($row:ty, $figure:ident of $part:ident, $name:expr, $title:expr) => {
        $crate::form::field::Field {
            name: $name,
            title: $title,
            get: |row: &$row| {
                row.$part.as_ref().map_or(Value::Missing, $crate::cost::measured::figures::$figure.get)
            },
        }
    };
}

pub(super) use measured;
