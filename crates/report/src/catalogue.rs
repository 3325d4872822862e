//! Figures that several reports have, each under one name and one title.
//!
//! A figure is here if it means the same in all of them. Names that only happen to be alike, as the family of a knob and the
//! family of tests, are not.

use crate::form::field::Title;

/// The host where something was measured.
pub(crate) const NODE: Title = Title::new("node", "node");
/// The number of a CPU.
pub(crate) const CPU: Title = Title::new("cpu", "cpu");
/// Several CPUs, as a list.
pub(crate) const CPUS: Title = Title::new("cpus", "cpus");
/// The stable name of what took time.
pub(crate) const SOURCE: Title = Title::new("source", "source");
/// The kind of a source.
pub(crate) const KIND: Title = Title::new("kind", "kind");
/// How often a source ran.
pub(crate) const COUNT: Title = Title::new("count", "count");
/// How much time was taken in all, in nanoseconds.
pub(crate) const TOTAL_NS: Title = Title::new("total_ns", "total");
/// Which share of the time was taken by a source.
pub(crate) const TIME_RATIO: Title = Title::new("time_ratio", "of time");
/// Which share of the time was taken by all noise.
pub(crate) const NOISE_RATIO: Title = Title::new("noise_ratio", "noise");
/// How often something came in a second.
pub(crate) const RATE_HZ: Title = Title::new("rate_hz", "rate");
/// The frequency of a chart of frequencies.
pub(crate) const FREQUENCY_HZ: Title = Title::new("frequency_hz", "frequency");
/// From one start to the next, in nanoseconds.
pub(crate) const INTERVAL_NS: Title = Title::new("interval_ns", "interval");
/// How likely chance alone shows such a period.
pub(crate) const FALSE_ALARM_RATIO: Title = Title::new("false_alarm_ratio", "by chance");
/// For how long a loop ran, in nanoseconds.
pub(crate) const OBSERVED_NS: Title = Title::new("duration_ns", "observed");
/// How long a detour lasted, in nanoseconds.
pub(crate) const DURATION_NS: Title = Title::new("duration_ns", "duration");
/// How long the detours of a chart or of an injection are, in nanoseconds.
pub(crate) const LENGTH_NS: Title = Title::new("length_ns", "length");
/// The number of a detour on its CPU.
pub(crate) const DETOUR: Title = Title::new("detour", "detour");
/// When a detour began, since the run did.
pub(crate) const START_NS: Title = Title::new("start_ns", "start");

/// How many samples there are.
pub(crate) const SAMPLES: Title = Title::new("samples", "samples");
/// The samples that took much longer than the others.
pub(crate) const SLOWIES: Title = Title::new("slowies", "slowies");
/// The mean of times, in nanoseconds.
pub(crate) const MEAN_NS: Title = Title::new("mean_ns", "mean");
/// The standard deviation of times, in nanoseconds.
pub(crate) const STDDEV_NS: Title = Title::new("stddev_ns", "stddev");
/// The shortest time, in nanoseconds.
pub(crate) const MIN_NS: Title = Title::new("min_ns", "min");
/// The median of times, in nanoseconds.
pub(crate) const MEDIAN_NS: Title = Title::new("median_ns", "median");
/// The 95th percentile of times, in nanoseconds.
pub(crate) const P95_NS: Title = Title::new("p95_ns", "p95");
/// The 99th percentile of times, in nanoseconds.
pub(crate) const P99_NS: Title = Title::new("p99_ns", "p99");
/// The 99.9th percentile of times, in nanoseconds.
pub(crate) const P999_NS: Title = Title::new("p999_ns", "p99.9");
/// The longest time, in nanoseconds.
pub(crate) const MAX_NS: Title = Title::new("max_ns", "max");

/// An event that the processor counts.
pub(crate) const EVENT: Title = Title::new("event", "event");
/// For which share of the time an event was counted.
pub(crate) const COUNTED_RATIO: Title = Title::new("counted_ratio", "counted");
/// Kernel events that were lost, since a buffer was full.
pub(crate) const LOST_EVENTS: Title = Title::new("lost_events", "lost events");

/// The ranks of a job.
pub(crate) const RANKS: Title = Title::new("ranks", "ranks");
/// How many times as long a job takes as without noise.
pub(crate) const SLOWDOWN_RATIO: Title = Title::new("slowdown_ratio", "slowdown");

/// What a knob of the machine belongs to.
pub(crate) const FAMILY: Title = Title::new("family", "family");
/// What can be changed on the machine.
pub(crate) const KNOB: Title = Title::new("knob", "knob");
