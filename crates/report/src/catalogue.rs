//! Figures of several reports, each with one name and one title.
//!
//! A figure is listed here if it means the same in all reports. Names that coincide by chance, such as the family of a knob and the family of tests,
//! are not.

use crate::form::field::Title;

/// The host of a measurement.
pub const NODE: Title = Title::new("node", "node");
/// The number of a CPU.
pub const CPU: Title = Title::new("cpu", "cpu");
/// A list of CPUs.
pub const CPUS: Title = Title::new("cpus", "cpus");
/// The stable name of a noise source.
pub const SOURCE: Title = Title::new("source", "source");
/// The kind of a source.
pub const KIND: Title = Title::new("kind", "kind");
/// How often a source ran.
pub const COUNT: Title = Title::new("count", "count");
/// Time taken in total, in nanoseconds.
pub const TOTAL_NS: Title = Title::new("total_ns", "total");
/// The share of the time taken by a source.
pub const TIME_RATIO: Title = Title::new("time_ratio", "of time");
/// The share of the time taken by all noise.
pub const NOISE_RATIO: Title = Title::new("noise_ratio", "noise");
/// Events per second.
pub const RATE_HZ: Title = Title::new("rate_hz", "rate");
/// The frequency in a spectrum.
pub const FREQUENCY_HZ: Title = Title::new("frequency_hz", "frequency");
/// The time from one start to the next, in nanoseconds.
pub const INTERVAL_NS: Title = Title::new("interval_ns", "interval");
/// The probability that chance alone shows such a period.
pub const FALSE_ALARM_RATIO: Title = Title::new("false_alarm_ratio", "by chance");
/// The time that a loop ran, in nanoseconds.
pub const OBSERVED_NS: Title = Title::new("duration_ns", "observed");
/// The length of a detour, in nanoseconds.
pub const DURATION_NS: Title = Title::new("duration_ns", "duration");
/// The length of the detours in a chart or of an injection, in nanoseconds.
pub const LENGTH_NS: Title = Title::new("length_ns", "length");
/// The number of a detour on its CPU.
pub const DETOUR: Title = Title::new("detour", "detour");
/// The start of a detour, in nanoseconds since the start of the recording.
pub const START_NS: Title = Title::new("start_ns", "start");

/// The number of samples.
pub const SAMPLES: Title = Title::new("samples", "samples");
/// The samples that took much longer than the others.
pub const SLOWIES: Title = Title::new("slowies", "slowies");
/// The mean of times, in nanoseconds.
pub const MEAN_NS: Title = Title::new("mean_ns", "mean");
/// The standard deviation of times, in nanoseconds.
pub const STDDEV_NS: Title = Title::new("stddev_ns", "stddev");
/// The shortest time, in nanoseconds.
pub const MIN_NS: Title = Title::new("min_ns", "min");
/// The median of times, in nanoseconds.
pub const MEDIAN_NS: Title = Title::new("median_ns", "median");
/// The 95th percentile of times, in nanoseconds.
pub const P95_NS: Title = Title::new("p95_ns", "p95");
/// The 99th percentile of times, in nanoseconds.
pub const P99_NS: Title = Title::new("p99_ns", "p99");
/// The 99.9th percentile of times, in nanoseconds.
pub const P999_NS: Title = Title::new("p999_ns", "p99.9");
/// The longest time, in nanoseconds.
pub const MAX_NS: Title = Title::new("max_ns", "max");

/// A processor event that is counted.
pub const EVENT: Title = Title::new("event", "event");
/// The share of the time while an event was counted.
pub const COUNTED_RATIO: Title = Title::new("counted_ratio", "counted");
/// Kernel events that were dropped because a buffer was full.
pub const LOST_EVENTS: Title = Title::new("lost_events", "lost events");

/// The number of ranks of a job.
pub const RANKS: Title = Title::new("ranks", "ranks");
/// The run time of a job with noise over that without.
pub const SLOWDOWN_RATIO: Title = Title::new("slowdown_ratio", "slowdown");

/// The family of a knob.
pub const FAMILY: Title = Title::new("family", "family");
/// A setting of the machine.
pub const KNOB: Title = Title::new("knob", "knob");
