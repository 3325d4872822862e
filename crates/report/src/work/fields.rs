//! The figures of a run of work.

use becalm_analyze::work::{
    BaselineComparison, CpuWork, Cumulative, EventTotal, RepetitionRatios, Spread, SubtractionStep, TickPeaks, Tone,
};

use crate::catalogue;
use crate::form::field::fields;
use crate::form::figure::{Factor, Fine, Often, Rate, Ratio, Share, Time};

fields! {
    /// The fields of a CPU's samples.
    pub(super) CPU, cpu: CpuWork {
        NODE = catalogue::NODE, |row| row.node.clone();
        CPU = catalogue::CPU, |row| row.cpu;
        LOOP_BODY = "loop_body", "body", |row| row.loop_body.clone();
        SAMPLES = catalogue::SAMPLES, |row| row.spread.count;
        ITERATIONS = "iterations", "iterations", |row| row.iterations;
        CALIBRATED_NS = "calibrated_ns", "calibrated", |row| Fine(row.calibrated_ns);
        DURATION_NS = catalogue::OBSERVED_NS, |row| Time(row.duration_ns);
        MEAN_NS = catalogue::MEAN_NS, |row| Fine::rounded(row.spread.mean_ns);
        STDDEV_NS = catalogue::STDDEV_NS, |row| Time::rounded(row.spread.stddev_ns);
        MIN_NS = catalogue::MIN_NS, |row| Fine(row.spread.min_ns);
        P1_NS = "p1_ns", "p1", |row| Fine(row.spread.quantiles_ns[0]);
        P5_NS = "p5_ns", "p5", |row| Fine(row.spread.quantiles_ns[1]);
        P25_NS = "p25_ns", "p25", |row| Fine(row.spread.quantiles_ns[2]);
        MEDIAN_NS = catalogue::MEDIAN_NS, |row| Fine(row.spread.quantiles_ns[3]);
        P75_NS = "p75_ns", "p75", |row| Fine(row.spread.quantiles_ns[4]);
        P95_NS = catalogue::P95_NS, |row| Fine(row.spread.quantiles_ns[5]);
        P99_NS = catalogue::P99_NS, |row| Fine(row.spread.quantiles_ns[6]);
        P999_NS = catalogue::P999_NS, |row| Fine(row.spread.quantiles_ns[7]);
        P9999_NS = "p9999_ns", "p99.99", |row| Fine(row.spread.quantiles_ns[8]);
        MAX_NS = catalogue::MAX_NS, |row| Fine(row.spread.max_ns);
        BODY_LOW_NS = "body_low_ns", "body from", |row| Fine(row.body.low_ns);
        BODY_HIGH_NS = "body_high_ns", "body to", |row| Fine(row.body.high_ns);
        FASTIES = "fasties", "short outliers", |row| row.body.fasties;
        SLOWIES = "slowies", "long outliers", |row| row.body.slowies;
        CPI = "cpi", "CPI", |row| row.cpi.map(|cpi| Often(cpi.cycles));
        CPI_LOW = "cpi_low", "CPI from", |row| row.cpi.map(|cpi| Often(cpi.low));
        CPI_HIGH = "cpi_high", "CPI to", |row| row.cpi.map(|cpi| Often(cpi.high));
        CPI_FROM = "cpi_from", "CPI by", |row| row.cpi.map(|cpi| cpi.from.name());
        INCOMPLETE = "incomplete", "incomplete", |row| row.incomplete;
        ALL_ITERATIONS = "all_iterations", "all iterations", |row| row.all_iterations;
        ITERATION_NS = "iteration_ns", "an iteration", |row| match row.ns_per_iteration() {
            Some(ns) if ns >= 10_000.0 => Fine::rounded(ns),
            _ => None,
        };
    }
}

/// A line of the subtraction: the samples as measured, or without a source.
pub(super) struct Subtracted {
    pub step: Option<SubtractionStep>,
    pub left: Spread,
    /// The time of all samples, in nanoseconds.
    pub all_ns: i64,
}

fields! {
    /// The fields of a step of the subtraction.
    pub(super) STEP, step: Subtracted {
        SOURCE = "source", "minus",
            |row| row.step.as_ref().map_or("nothing".to_owned(), |step| step.source.clone());
        KIND = catalogue::KIND, |row| row.step.as_ref().and_then(|step| step.kind).map(|kind| kind.name());
        COUNT = catalogue::COUNT, |row| row.step.as_ref().map(|step| step.count);
        SAMPLES = catalogue::SAMPLES,
            |row| row.step.as_ref().map(|step| step.samples);
        TOTAL_NS = catalogue::TOTAL_NS,
            |row| row.step.as_ref().map(|step| Time(step.total_ns));
        SHARE_RATIO = "share_ratio", "of the time", |row| match &row.step {
            Some(step) if row.all_ns > 0 => Some(Ratio(step.total_ns as f64 / row.all_ns as f64)),
            _ => None,
        };
        MEAN_NS = catalogue::MEAN_NS, |row| Fine::rounded(row.left.mean_ns);
        STDDEV_NS = catalogue::STDDEV_NS, |row| Time::rounded(row.left.stddev_ns);
        MIN_NS = catalogue::MIN_NS, |row| Fine(row.left.min_ns);
        MEDIAN_NS = catalogue::MEDIAN_NS, |row| Fine(row.left.median_ns());
        P99_NS = catalogue::P99_NS, |row| Fine(row.left.quantiles_ns[6]);
        MAX_NS = catalogue::MAX_NS, |row| Fine(row.left.max_ns);
        SLOWIES = "slowies", "long outliers", |row| row.left.slowies;
        TOUCHED_MEAN_NS = "touched_mean_ns", "mean there", |row| {
            row.step.as_ref().and_then(|step| Fine::rounded(step.touched_mean_ns))
        };
        TOUCHED_STDDEV_NS = "touched_stddev_ns", "stddev there", |row| {
            row.step.as_ref().and_then(|step| Time::rounded(step.touched_stddev_ns))
        };
        TOUCHED_BACK = "touched_back", "in the body",
            |row| row.step.as_ref().map(|step| step.touched_back);
    }
}

fields! {
    /// The fields of the samples hit by the timer interrupt, compared with the others.
    pub(super) PEAKS, peaks: TickPeaks {
        HIT_RATIO = "hit_ratio", "hit", |row| Share(row.hit_ratio);
        EXPECTED_RATIO = "expected_ratio", "at equal distances", |row| Share(row.expected_ratio);
        HIT_MEDIAN_NS = "hit_median_ns", "median if hit", |row| Fine(row.hit_median_ns);
        MISSED_MEDIAN_NS = "missed_median_ns", "median if not", |row| Fine(row.missed_median_ns);
        ARE_APART = "are_apart", "two peaks", |row| row.are_apart;
    }
}

fields! {
    /// The figures of a frequency at which samples are longer.
    pub(super) TONE, tone: Tone {
        FREQUENCY_HZ = catalogue::FREQUENCY_HZ, |row| Rate(row.hz);
        PERIOD_NS = "period_ns", "period", |row| Time::rounded(1e9 / row.hz);
        AMPLITUDE_NS = "amplitude_ns", "amplitude", |row| Time::rounded(row.amplitude_ns);
        PROMINENCE_RATIO = "prominence_ratio", "above its surroundings", |row| Factor(row.prominence_ratio);
        FALSE_ALARM_RATIO = catalogue::FALSE_ALARM_RATIO, |row| Ratio(row.false_alarm);
        SOURCE = catalogue::SOURCE, |row| row.source.clone();
    }
}

fields! {
    /// The fields of one-second repetitions.
    pub(super) CUMULATIVE, cumulative: Cumulative {
        SAMPLES_EACH = "samples_each", "samples each", |row| row.samples_each;
        REPETITIONS = "repetitions", "repetitions", |row| row.spread.count;
        UNDISTURBED_NS = "undisturbed_ns", "undisturbed", |row| Fine(row.undisturbed_ns);
        MEAN_NS = catalogue::MEAN_NS, |row| Fine::rounded(row.spread.mean_ns);
        STDDEV_NS = catalogue::STDDEV_NS, |row| Time::rounded(row.spread.stddev_ns);
        MIN_NS = catalogue::MIN_NS, |row| Fine(row.spread.min_ns);
        MEDIAN_NS = catalogue::MEDIAN_NS, |row| Fine(row.spread.median_ns());
        P95_NS = catalogue::P95_NS, |row| Fine(row.spread.quantiles_ns[5]);
        MAX_NS = catalogue::MAX_NS, |row| Fine(row.spread.max_ns);
        COST_RATIO = "cost_ratio", "longer than undisturbed", |row| Ratio(row.cost_ratio());
    }
}

/// A count that may be an estimate or unknown.
fn whole(count: Option<f64>) -> Option<u64> {
    count.map(|count| count.round() as u64)
}

/// A count per sample.
pub(super) fn a_sample(count: Option<f64>) -> Option<Often> {
    count.map(Often)
}

fields! {
    /// The fields of a counted processor event.
    pub(super) COUNT, count: EventTotal {
        EVENT = catalogue::EVENT, |row| row.event.clone();
        USER = "user", "user", |row| whole(row.user);
        KERNEL = "kernel", "kernel", |row| whole(row.kernel);
        USER_PER_SAMPLE = "user_per_sample", "user, a sample", |row| a_sample(row.user_a_sample());
        KERNEL_PER_SAMPLE = "kernel_per_sample", "kernel, a sample", |row| a_sample(row.kernel_a_sample());
        COUNTED_RATIO = catalogue::COUNTED_RATIO, |row| Share(row.counted_ratio);
    }
}

fn repetition(row: &BaselineComparison, ratio: fn(&RepetitionRatios) -> f64) -> Option<Factor> {
    row.repetitions.as_ref().map(|found| Factor(ratio(found)))
}

fields! {
    /// The fields of a comparison with a baseline.
    pub(super) AGAINST, against: BaselineComparison {
        SCALE_RATIO = "scale_ratio", "scaled by", |row| Factor(row.scale);
        BASELINE_SAMPLES = "baseline_samples", "baseline's samples", |row| row.baseline.count;
        BASELINE_MEAN_NS = "baseline_mean_ns", "its mean", |row| Fine::rounded(row.baseline.mean_ns);
        BASELINE_MEDIAN_NS = "baseline_median_ns", "its median", |row| Fine(row.baseline.median_ns());
        BASELINE_P99_NS = "baseline_p99_ns", "its p99", |row| Fine(row.baseline.quantiles_ns[6]);
        BASELINE_MAX_NS = "baseline_max_ns", "its max", |row| Fine(row.baseline.max_ns);
        MEAN_RATIO = "mean_ratio", "mean", |row| Factor(row.mean_ratio);
        MEDIAN_RATIO = "median_ratio", "median", |row| Factor(row.median_ratio);
        P99_RATIO = "p99_ratio", "p99", |row| Factor(row.p99_ratio);
        MAX_RATIO = "max_ratio", "max", |row| Factor(row.max_ratio);
        DISTANCE_RATIO = "distance_ratio", "distance", |row| Ratio(row.distance_ratio);
        BEYOND = "beyond", "beyond its max", |row| row.beyond;
        REPETITION_MIN_RATIO = "repetition_min_ratio", "min", |row| repetition(row, |found| found.min_ratio);
        REPETITION_MEAN_RATIO = "repetition_mean_ratio", "mean", |row| repetition(row, |found| found.mean_ratio);
        REPETITION_MEDIAN_RATIO = "repetition_median_ratio", "median", |row| repetition(row, |found| found.median_ratio);
        REPETITION_MAX_RATIO = "repetition_max_ratio", "max", |row| repetition(row, |found| found.max_ratio);
    }
}
