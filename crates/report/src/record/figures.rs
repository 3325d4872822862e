//! The fields of CPUs, sources and counters.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use becalm_analyze::summary::{
    CategoryTotal, CpuSummary, Figures, NodeSummary, Observed, Origin, OutlierSummary, Part, PartFigures, PeersSummary,
    PeriodSummary, SourceSummary, Summary,
};
use becalm_model::node::CounterGrowth;
use becalm_stats::{Interval, ReturnLevel, Tail, TooLittle, run_for_blocks};
use becalm_units::{CpuId, Nanos};

use crate::Value;
use crate::catalogue;
use crate::form::field::fields;
use crate::form::value::{self, three_digits};
use crate::record::tails;

/// A CPU, or all together where there is none.
pub(crate) struct CpuRow {
    pub(crate) place: Option<(String, CpuId)>,
    pub(crate) figures: Figures,
}

impl CpuRow {
    pub(crate) fn new(cpu: &CpuSummary) -> Self {
        Self { place: Some((cpu.node.clone(), cpu.cpu)), figures: cpu.figures.clone() }
    }

    pub(crate) fn total(summary: &Summary) -> Self {
        Self { place: None, figures: summary.total.clone() }
    }
}

/// Growth of one of the kernel's counters, on a CPU or on all.
pub(crate) struct CounterRow {
    pub(crate) node: String,
    pub(crate) cpu: Option<u32>,
    pub(crate) name: String,
    pub(crate) growth: u64,
    pub(crate) observed_ns: Option<i64>,
}

fn time(ns: Option<i64>) -> Value {
    ns.map_or(Value::Missing, Value::Time)
}

fn mean(ns: Option<f64>) -> Value {
    ns.map_or(Value::Missing, Value::time)
}

fn ratio(ratio: Option<f64>) -> Value {
    ratio.map_or(Value::Missing, Value::Ratio)
}

fn share(share: Option<f64>) -> Value {
    share.map_or(Value::Missing, Value::Share)
}

fn text(text: Option<&str>) -> Value {
    text.map_or(Value::Missing, |text| Value::Text(text.to_owned()))
}

fn count(count: Option<u64>) -> Value {
    count.map_or(Value::Missing, Value::Count)
}

fn number(number: Option<u64>) -> Value {
    number.map_or(Value::Missing, Value::Number)
}

fn real(number: Option<f64>) -> Value {
    number.map_or(Value::Missing, Value::Real)
}

fn level(row: &CpuRow) -> Option<ReturnLevel> {
    row.figures.tail.as_ref()?.as_ref().ok().map(|tail| tail.level)
}

fn tail(row: &CpuRow) -> Option<&Tail> {
    row.figures.tail.as_ref()?.as_ref().ok().map(|tail| &tail.tail)
}

fn rate(hz: Option<f64>) -> Value {
    hz.map_or(Value::Missing, Value::Rate)
}

fields! {
    /// The figures of a CPU, or of all together.
    pub(crate) CPU, cpu: CpuRow {
        NODE = catalogue::NODE, |row| text(row.place.as_ref().map(|(node, _)| node.as_str()));
        CPU = catalogue::CPU, |row| number(row.place.as_ref().map(|(_, cpu)| u64::from(cpu.get())));
        DURATION_NS = catalogue::OBSERVED_NS, |row| time(row.figures.duration_ns);
        DURATION_FROM = "duration_from", "observed until", |row| Value::Text(match row.figures.observed {
            Observed::Document => "end",
            Observed::LastDetour => "last_detour",
        }.to_owned());
        ITERATIONS = "iterations", "steps", |row| count(row.figures.iterations);
        T_MIN_NS = "t_min_ns", "t_min", |row| time(row.figures.t_min_ns);
        THRESHOLD_NS = "threshold_ns", "threshold", |row| time(row.figures.threshold_ns);
        DETOURS = "detours", "detours", |row| Value::Count(row.figures.detours());
        RATE_HZ = catalogue::RATE_HZ, |row| rate(row.figures.rate_hz());
        RATE_LOW_HZ = "rate_low_hz", "low", |row| rate(row.figures.rate_interval.and_then(Interval::low));
        RATE_HIGH_HZ = "rate_high_hz", "high", |row| rate(row.figures.rate_interval.and_then(Interval::high));
        NOISE_RATIO = catalogue::NOISE_RATIO, |row| ratio(row.figures.noise_ratio());
        NOISE_RATIO_LOW = "noise_ratio_low", "low", |row| ratio(row.figures.interval.and_then(Interval::low));
        NOISE_RATIO_HIGH = "noise_ratio_high", "high", |row| ratio(row.figures.interval.and_then(Interval::high));
        NOISE_RATIO_NOTE = "noise_ratio_note", "note", |row| text(interval_note(&row.figures).as_deref());
        LONG_NOISE_RATIO = "noise_1us_ratio", "from 1 us", |row| ratio(row.figures.long_noise_ratio());
        LONG_RATE_HZ = "rate_1us_hz", "from 1 us", |row| rate(row.figures.long_rate_hz());
        LONG_MEDIAN_NS = "median_1us_ns", "median from 1 us", |row| time(row.figures.long_median_ns);
        OWN_NS = "self_ns", "becalm", |row| time(row.figures.own_ns);
        OWN_RATIO = "self_ratio", "becalm", |row| ratio(row.figures.own_ratio());
        OWN_LONGEST_NS = "self_longest_ns", "longest of becalm", |row| time(row.figures.own_longest_ns);
        TOTAL_NS = catalogue::TOTAL_NS, |row| Value::Time(row.figures.durations.total());
        MAX_NS = catalogue::MAX_NS, |row| time(row.figures.durations.max());
        MEAN_NS = catalogue::MEAN_NS, |row| mean(row.figures.durations.mean());
        MEDIAN_NS = catalogue::MEDIAN_NS, |row| time(row.figures.median_ns);
        MEDIAN_LOW_NS = "median_low_ns", "low", |row| time(row.figures.median_bounds.low);
        MEDIAN_HIGH_NS = "median_high_ns", "high", |row| time(row.figures.median_bounds.high);
        P99_NS = catalogue::P99_NS, |row| time(row.figures.p99_ns);
        P99_LOW_NS = "p99_low_ns", "low", |row| time(row.figures.p99_bounds.low);
        P99_HIGH_NS = "p99_high_ns", "high", |row| time(row.figures.p99_bounds.high);
        P999_NS = catalogue::P999_NS, |row| time(row.figures.p999_ns);
        P999_LOW_NS = "p999_low_ns", "low", |row| time(row.figures.p999_bounds.low);
        P999_HIGH_NS = "p999_high_ns", "high", |row| time(row.figures.p999_bounds.high);
        RETURN_PERIOD_NS = "return_period_ns", "once in", |row| time(level(row).map(|level| level.period_ns));
        RETURN_LEVEL_NS = "return_level_ns", "over", |row| time(level(row).map(|level| level.level_ns));
        RETURN_LEVEL_LOW_NS = "return_level_low_ns", "low", |row| time(level(row).map(|level| level.low_ns));
        RETURN_LEVEL_HIGH_NS = "return_level_high_ns", "high", |row| time(level(row).map(|level| level.high_ns));
        TAIL_VERDICT = "tail_verdict", "verdict", |row| text(row.figures.tail.as_ref().map(tails::verdict));
        TAIL_THRESHOLD_NS = "tail_threshold_ns", "threshold", |row| time(tail(row).map(|tail| tail.threshold_ns));
        TAIL_EXCEEDANCES = "tail_exceedances", "exceedances",
            |row| count(tail(row).map(|tail| tail.exceedances as u64));
        TAIL_CLUSTERS = "tail_clusters", "clusters", |row| count(tail(row).map(|tail| tail.clusters as u64));
        TAIL_EXTREMAL_INDEX = "tail_extremal_index", "independent",
            |row| real(tail(row).map(|tail| tail.extremal_index));
        TAIL_SHAPE = "tail_shape", "shape", |row| real(tail(row).map(|tail| tail.shape));
        TAIL_SHAPE_ERROR = "tail_shape_error", "error", |row| real(tail(row).map(|tail| tail.shape_error));
        TAIL_SCALE_NS = "tail_scale_ns", "scale", |row| mean(tail(row).map(|tail| tail.scale_ns));
        TAIL_MISFIT = "tail_misfit", "misfit", |row| real(tail(row).map(|tail| tail.misfit));
        TAIL_MISFIT_LIMIT = "tail_misfit_limit", "limit", |row| real(tail(row).map(|tail| tail.misfit_limit));
        TAIL_NOTE = "tail_note", "note", |row| text(row.figures.tail.as_ref().and_then(tails::note).as_deref());
        RAREST_SEEN_NS = "rarest_seen_ns", "seen if every", |row| time(row.figures.rarest_seen_ns);
        INCOMPLETE = "incomplete", "incomplete", |row| Value::Count(row.figures.incomplete);
        LOST_EVENTS = catalogue::LOST_EVENTS, |row| count(row.figures.lost_events);
        UNSEEN_NS = "unseen_ns", "unseen", |row| time(row.figures.unseen_ns);
        STEAL_NS = "steal_ns", "steal", |row| time(row.figures.steal_ns);
        CUT_SHORT = "cut_short", "cut short", |row| Value::Flag(row.figures.cut_short);
    }
}

fields! {
    /// The figures of a source of noise.
    pub(crate) SOURCE, source: SourceSummary {
        NODE = catalogue::NODE, |row| text(row.place.as_ref().map(|(node, _)| node.as_str()));
        CPU = catalogue::CPU, |row| number(row.place.as_ref().map(|(_, cpu)| u64::from(cpu.get())));
        SOURCE = catalogue::SOURCE, |row| Value::Text(row.source.clone());
        KIND = catalogue::KIND, |row| Value::Text(row.kind.name().to_owned());
        COUNT = catalogue::COUNT, |row| Value::Count(row.times.count());
        MIN_NS = "min_ns", "lowest", |row| time(row.times.min());
        MAX_NS = "max_ns", "highest", |row| time(row.times.max());
        MEAN_NS = catalogue::MEAN_NS, |row| mean(row.times.mean());
        STDDEV_NS = catalogue::STDDEV_NS, |row| mean(row.times.stddev());
        TOTAL_NS = catalogue::TOTAL_NS, |row| Value::Time(row.times.total());
        WHOLE_NS = "whole_ns", "whole", |row| Value::Time(row.whole_ns);
        WHOLE_MEAN_NS = "whole_mean_ns", "whole each", |row| mean(row.whole_mean_ns());
        SHARE_RATIO = "share_ratio", "of noise", |row| share(row.share);
        TIME_RATIO = catalogue::TIME_RATIO, |row| ratio(row.time_ratio);
        RUN_AT_LEAST_NS = "run_at_least_ns", "run at least", |row| time(row.run_at_least_ns);
    }
}

fields! {
    /// What a category of sources took.
    pub(crate) CATEGORY, category: CategoryTotal {
        CATEGORY = "category", "category", |row| Value::Text(row.category.name().to_owned());
        SOURCES = "sources", "sources", |row| Value::Count(row.sources);
        COUNT = catalogue::COUNT, |row| Value::Count(row.count);
        TOTAL_NS = catalogue::TOTAL_NS, |row| Value::Time(row.total_ns);
        SHARE_RATIO = "share_ratio", "of noise", |row| share(row.share);
    }
}

fields! {
    /// Of a part of one occurrence of an interrupt.
    pub(crate) PART, part: PartFigures {
        PART = "part", "part", |row| Value::Text(row.part.map_or("all", Part::name).to_owned());
        COUNT = catalogue::COUNT, |row| Value::Count(row.times.count());
        MEAN_NS = catalogue::MEAN_NS, |row| mean(row.times.mean());
        MEDIAN_NS = catalogue::MEDIAN_NS, |row| time(row.median_ns);
        P99_NS = catalogue::P99_NS, |row| time(row.p99_ns);
        MAX_NS = catalogue::MAX_NS, |row| time(row.times.max());
    }
}

fields! {
    /// Of a period on a CPU.
    pub(crate) PERIOD, period: PeriodSummary {
        NODE = catalogue::NODE, |row| text(Some(&row.node));
        CPU = catalogue::CPU, |row| number(Some(u64::from(row.cpu.get())));
        SOURCE = catalogue::SOURCE, |row| match &row.origin {
            Origin::Source { source, .. } => text(Some(source)),
            Origin::Detours { .. } => Value::Missing,
        };
        KIND = catalogue::KIND, |row| match &row.origin {
            Origin::Source { kind, .. } => text(Some(kind.name())),
            Origin::Detours { .. } => Value::Missing,
        };
        FROM_NS = "from_ns", "from", |row| match row.origin {
            Origin::Source { .. } => Value::Missing,
            Origin::Detours { from_ns, .. } => Value::Time(from_ns),
        };
        BELOW_NS = "below_ns", "below", |row| match row.origin {
            Origin::Source { .. } => Value::Missing,
            Origin::Detours { below_ns, .. } => Value::Time(below_ns),
        };
        INTERVAL_NS = "interval_ns", "every", |row| Value::time(row.period.interval_ns);
        INTERVAL_ERROR_NS = "interval_error_ns", "error", |row| Value::time(row.period.interval_error_ns);
        FREQUENCY_HZ = "frequency_hz", "rate", |row| Value::Rate(row.period.frequency_hz());
        JITTER_NS = "jitter_ns", "jitter", |row| Value::time(row.period.jitter_ns);
        EVENTS = "events", "events", |row| Value::Count(row.period.events);
        BEATS = "beats", "beats", |row| Value::Count(row.period.beats);
        SEEN_RATIO = "seen_ratio", "of beats",
            |row| Value::Share(row.period.events as f64 / row.period.beats.max(1) as f64);
        FALSE_ALARM_RATIO = catalogue::FALSE_ALARM_RATIO, |row| Value::Ratio(row.period.false_alarm);
        LABEL = "label", "what", |row| Value::Text(row.label());
    }
}

fields! {
    /// Of a CPU or a node that differs from its equals.
    pub(crate) OUTLIER, outlier: OutlierSummary {
        NODE = catalogue::NODE, |row| text(Some(&row.node));
        CPU = catalogue::CPU, |row| number(row.cpu.map(|cpu| u64::from(cpu.get())));
        MEDIAN_FACTOR = "median_factor", "of the median", |row| Value::Factor(row.outlier.factor);
        CHANCE_RATIO = "chance_ratio", "by chance", |row| Value::Ratio(row.outlier.chance);
    }
}

fields! {
    /// Of equals that were compared: the CPUs of a node, or the nodes where there is no name.
    pub(crate) PEERS, peers: PeersSummary {
        NODE = catalogue::NODE, |row| text(row.node.as_deref());
        COMPARED = "compared", "compared", |row| Value::Count(row.compared as u64);
        ENOUGH = "enough", "enough", |row| Value::Flag(row.enough);
    }
}

fields! {
    /// Of a counter. Those of `stat/` are times.
    pub(crate) COUNTER, counter: CounterRow {
        NODE = catalogue::NODE, |row| text(Some(&row.node));
        CPU = catalogue::CPU, |row| number(row.cpu.map(u64::from));
        NAME = "name", "counter", |row| Value::Text(row.name.clone());
        GROWTH = "growth", "grew by", |row| match is_time(&row.name) {
            true => Value::Time(i64::try_from(row.growth).unwrap_or(i64::MAX)),
            false => Value::Count(row.growth),
        };
        RATE_HZ = catalogue::RATE_HZ, |row| match is_time(&row.name) {
            true => Value::Missing,
            false => rate(per_second(row.growth, row.observed_ns)),
        };
    }
}

/// The counters of a node that grew, over all of its selected CPUs or for each; the fastest first, times before counts.
pub(crate) fn counters(node: &NodeSummary, per_cpu: bool) -> Vec<CounterRow> {
    // All loops start together, so the longest is the time over which the counters grew.
    let observed_ns = node.doc.cpus.iter().map(|cpu| cpu.duration_ns.get()).max();
    counter_rows(&node.doc.node, &node.doc.counters, observed_ns, per_cpu)
}

/// The same of counters that no document holds yet.
pub(crate) fn counter_rows(
    node: &str,
    counters: &[CounterGrowth],
    observed_ns: Option<i64>,
    per_cpu: bool,
) -> Vec<CounterRow> {
    let mut growth: BTreeMap<(Option<CpuId>, &str), u64> = BTreeMap::new();
    for counter in counters {
        let sum = growth.entry((per_cpu.then_some(counter.cpu), counter.name.as_str())).or_default();
        *sum = sum.saturating_add(counter.growth);
    }
    let mut rows: Vec<CounterRow> = growth
        .into_iter()
        .filter(|(_, growth)| *growth > 0)
        .map(|((cpu, name), growth)| CounterRow {
            node: node.to_owned(),
            cpu: cpu.map(CpuId::get),
            name: name.to_owned(),
            growth,
            observed_ns,
        })
        .collect();
    rows.sort_by_key(|row| (row.cpu, !is_time(&row.name), Reverse(row.growth)));
    rows
}

/// Whether the counter is one of time, in nanoseconds.
fn is_time(counter: &str) -> bool {
    counter.starts_with("stat/") && counter != "stat/ctxt" && counter != "stat/intr"
}

fn per_second(growth: u64, observed_ns: Option<i64>) -> Option<f64> {
    observed_ns.filter(|ns| *ns > 0).map(|ns| growth as f64 / (ns as f64 / 1e9))
}

/// Why the noise ratio has no interval, or only its lower end, or a rough one; with the length of a run that has a good one.
pub(crate) fn interval_note(figures: &Figures) -> Option<String> {
    match figures.interval {
        None if figures.unstored > 0 => Some("it is not known when the detours were that were only counted".to_owned()),
        None => Some("it is not known how long the loop ran".to_owned()),
        Some(Interval::Between { .. }) => None,
        Some(Interval::Rough { needed_ns, .. }) => Some(format!(
            "the interval is rough, as the noise drifts; a good one takes about {}",
            value::time(needed_ns)
        )),
        Some(Interval::Unknown(why)) => Some(match why {
            TooLittle::NoDetour => match figures.duration_ns {
                // With 95 % probability fewer than one a T/3, as exp(-3) = 5 %.
                Some(ns) if ns > 0 => format!(
                    "no detour was seen: they come less often than {} a second, but nothing bounds how long one is",
                    three_digits(3.0 / (ns as f64 / 1e9))
                ),
                _ => "the loop did not run".to_owned(),
            },
            TooLittle::FewTrains { trains, needed_ns } => format!(
                "the noise rests on about {} stretches of the run, fewer than 10; record about {}",
                three_digits(trains),
                value::time(needed_ns)
            ),
            TooLittle::LongTrains { block_ns } => format!(
                "the noise drifts over stretches of about {}, of which fewer than 8 fit; record about {}",
                Nanos::new(block_ns),
                value::time(run_for_blocks(block_ns))
            ),
            TooLittle::ShortRun => "the run is too short to be cut into 20 parts".to_owned(),
        }),
    }
}
