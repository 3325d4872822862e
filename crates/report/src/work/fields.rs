//! The figures of a run of work.

use becalm_analyze::work::{Against, CpuWork, Cumulative, EventCount, Repetitions, Spread, Step, Tone};

use crate::Value;
use crate::form::field::Field;

macro_rules! fields {
    ($(#[$doc:meta])* $list:ident of $row:ty { $($name:literal, $title:literal, $get:expr;)+ }) => {
        $(#[$doc])*
        pub(super) const $list: &[Field<$row>] = &[$(Field { name: $name, title: $title, get: $get },)+];
    };
}

fields! {
    /// Of a CPU's samples.
    CPU of CpuWork {
        "node", "node", |row| Value::Text(row.node.clone());
        "cpu", "cpu", |row| Value::Number(u64::from(row.cpu.get()));
        "samples", "samples", |row| Value::Count(row.spread.count);
        "iterations", "iterations", |row| Value::Count(row.iterations);
        "calibrated_ns", "calibrated", |row| Value::Fine(row.calibrated_ns);
        "duration_ns", "observed", |row| Value::Time(row.duration_ns);
        "mean_ns", "mean", |row| Value::fine(row.spread.mean_ns);
        "stddev_ns", "stddev", |row| Value::time(row.spread.stddev_ns);
        "min_ns", "min", |row| Value::Fine(row.spread.min_ns);
        "p1_ns", "p1", |row| Value::Fine(row.spread.quantiles_ns[0]);
        "p5_ns", "p5", |row| Value::Fine(row.spread.quantiles_ns[1]);
        "p25_ns", "p25", |row| Value::Fine(row.spread.quantiles_ns[2]);
        "median_ns", "median", |row| Value::Fine(row.spread.quantiles_ns[3]);
        "p75_ns", "p75", |row| Value::Fine(row.spread.quantiles_ns[4]);
        "p95_ns", "p95", |row| Value::Fine(row.spread.quantiles_ns[5]);
        "p99_ns", "p99", |row| Value::Fine(row.spread.quantiles_ns[6]);
        "p999_ns", "p99.9", |row| Value::Fine(row.spread.quantiles_ns[7]);
        "p9999_ns", "p99.99", |row| Value::Fine(row.spread.quantiles_ns[8]);
        "max_ns", "max", |row| Value::Fine(row.spread.max_ns);
        "body_low_ns", "body from", |row| Value::Fine(row.body.low_ns);
        "body_high_ns", "body to", |row| Value::Fine(row.body.high_ns);
        "fasties", "fasties", |row| Value::Count(row.body.fasties);
        "slowies", "slowies", |row| Value::Count(row.body.slowies);
        "incomplete", "incomplete", |row| Value::Count(row.incomplete);
        "all_iterations", "all iterations", |row| Value::Count(row.all_iterations);
        "iteration_ns", "an iteration", |row| match row.ns_per_iteration() {
            Some(ns) if ns >= 10_000.0 => Value::fine(ns),
            _ => Value::Missing,
        };
    }
}

/// A line of the subtraction: the samples as they were, or after a source.
pub(super) struct Line {
    pub step: Option<Step>,
    pub left: Spread,
}

fields! {
    /// Of the subtraction.
    STEP of Line {
        "source", "minus", |row| Value::Text(row.step.as_ref().map_or("nothing".to_owned(), |step| step.source.clone()));
        "kind", "kind", |row| match row.step.as_ref().and_then(|step| step.kind) {
            Some(kind) => Value::Text(kind.name().to_owned()),
            None => Value::Missing,
        };
        "count", "count", |row| row.step.as_ref().map_or(Value::Missing, |step| Value::Count(step.count));
        "samples", "samples", |row| row.step.as_ref().map_or(Value::Missing, |step| Value::Count(step.samples));
        "total_ns", "total", |row| row.step.as_ref().map_or(Value::Missing, |step| Value::Time(step.total_ns));
        "mean_ns", "mean", |row| Value::fine(row.left.mean_ns);
        "stddev_ns", "stddev", |row| Value::time(row.left.stddev_ns);
        "min_ns", "min", |row| Value::Fine(row.left.min_ns);
        "median_ns", "median", |row| Value::Fine(row.left.median_ns());
        "p99_ns", "p99", |row| Value::Fine(row.left.quantiles_ns[6]);
        "max_ns", "max", |row| Value::Fine(row.left.max_ns);
        "slowies", "slowies", |row| Value::Count(row.left.slowies);
        "touched_mean_ns", "mean there", |row| {
            row.step.as_ref().map_or(Value::Missing, |step| Value::fine(step.touched_mean_ns))
        };
        "touched_stddev_ns", "stddev there", |row| {
            row.step.as_ref().map_or(Value::Missing, |step| Value::time(step.touched_stddev_ns))
        };
        "touched_back", "in the body", |row| row.step.as_ref().map_or(Value::Missing, |step| Value::Count(step.touched_back));
    }
}

fields! {
    /// Of a frequency.
    TONE of Tone {
        "frequency_hz", "frequency", |row| Value::Rate(row.hz);
        "period_ns", "period", |row| Value::time(1e9 / row.hz);
        "amplitude_ns", "amplitude", |row| Value::time(row.amplitude_ns);
        "prominence_ratio", "above its surroundings", |row| Value::Factor(row.prominence_ratio);
        "false_alarm_ratio", "by chance", |row| Value::Ratio(row.false_alarm);
        "source", "source", |row| row.source.clone().map_or(Value::Missing, Value::Text);
    }
}

fields! {
    /// Of repetitions of a second.
    CUMULATIVE of Cumulative {
        "samples_each", "samples each", |row| Value::Count(row.samples_each);
        "repetitions", "repetitions", |row| Value::Count(row.spread.count);
        "undisturbed_ns", "undisturbed", |row| Value::Fine(row.undisturbed_ns);
        "mean_ns", "mean", |row| Value::fine(row.spread.mean_ns);
        "stddev_ns", "stddev", |row| Value::time(row.spread.stddev_ns);
        "min_ns", "min", |row| Value::Fine(row.spread.min_ns);
        "median_ns", "median", |row| Value::Fine(row.spread.median_ns());
        "p95_ns", "p95", |row| Value::Fine(row.spread.quantiles_ns[5]);
        "max_ns", "max", |row| Value::Fine(row.spread.max_ns);
        "cost_ratio", "longer than undisturbed", |row| Value::Ratio(row.cost_ratio());
    }
}

/// A count that may be an estimate, or not known.
fn counted(count: Option<f64>) -> Value {
    count.map_or(Value::Missing, |count| Value::Count(count.round() as u64))
}

/// A count in a sample.
fn a_sample(count: Option<f64>) -> Value {
    count.map_or(Value::Missing, Value::Often)
}

fields! {
    /// Of an event that the processor counted.
    COUNT of EventCount {
        "event", "event", |row| Value::Text(row.event.clone());
        "user", "user", |row| counted(row.user);
        "kernel", "kernel", |row| counted(row.kernel);
        "user_per_sample", "user, a sample", |row| a_sample(row.user_a_sample());
        "kernel_per_sample", "kernel, a sample", |row| a_sample(row.kernel_a_sample());
        "counted_ratio", "counted", |row| Value::Share(row.counted_ratio);
    }
}

fn repetition(row: &Against, ratio: fn(&Repetitions) -> f64) -> Value {
    row.repetitions.as_ref().map_or(Value::Missing, |of| Value::Factor(ratio(of)))
}

fields! {
    /// Against a baseline.
    AGAINST of Against {
        "scale_ratio", "scaled by", |row| Value::Factor(row.scale);
        "baseline_samples", "baseline's samples", |row| Value::Count(row.baseline.count);
        "baseline_mean_ns", "its mean", |row| Value::fine(row.baseline.mean_ns);
        "baseline_median_ns", "its median", |row| Value::Fine(row.baseline.median_ns());
        "baseline_p99_ns", "its p99", |row| Value::Fine(row.baseline.quantiles_ns[6]);
        "baseline_max_ns", "its max", |row| Value::Fine(row.baseline.max_ns);
        "mean_ratio", "mean", |row| Value::Factor(row.mean_ratio);
        "median_ratio", "median", |row| Value::Factor(row.median_ratio);
        "p99_ratio", "p99", |row| Value::Factor(row.p99_ratio);
        "max_ratio", "max", |row| Value::Factor(row.max_ratio);
        "distance_ratio", "distance", |row| Value::Ratio(row.distance_ratio);
        "beyond", "beyond its max", |row| Value::Count(row.beyond);
        "repetition_min_ratio", "min", |row| repetition(row, |of| of.min_ratio);
        "repetition_mean_ratio", "mean", |row| repetition(row, |of| of.mean_ratio);
        "repetition_median_ratio", "median", |row| repetition(row, |of| of.median_ratio);
        "repetition_max_ratio", "max", |row| repetition(row, |of| of.max_ratio);
    }
}
