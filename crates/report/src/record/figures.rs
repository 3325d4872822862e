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
use crate::form::figure::{Factor, Figure, JsonType, Number, Rate, Ratio, Real, Share, Time};
use crate::form::value::{self, three_digits};
use crate::record::tails;

/// A CPU, or all together.
pub struct CpuRow {
    /// The node and the number of the CPU; `None` for all together.
    pub place: Option<(String, CpuId)>,
    /// The figures.
    pub figures: Figures,
}

impl CpuRow {
    pub(crate) fn new(cpu: &CpuSummary) -> Self {
        Self { place: Some((cpu.node.clone(), cpu.cpu)), figures: cpu.figures.clone() }
    }

    pub(crate) fn total(summary: &Summary) -> Self {
        Self { place: None, figures: summary.total.clone() }
    }
}

/// The growth of a kernel counter, on a CPU or on all.
pub struct CounterRow {
    pub(crate) node: String,
    pub(crate) cpu: Option<u32>,
    pub(crate) name: String,
    pub(crate) growth: u64,
    pub(crate) observed_ns: Option<i64>,
}

fn level(row: &CpuRow) -> Option<ReturnLevel> {
    row.figures.tail.as_ref()?.as_ref().ok().map(|tail| tail.level)
}

fn tail(row: &CpuRow) -> Option<&Tail> {
    row.figures.tail.as_ref()?.as_ref().ok().map(|tail| &tail.tail)
}

fields! {
    /// The figures of a CPU, or of all together.
    pub CPU, cpu: CpuRow {
        NODE = catalogue::NODE, |row| row.place.as_ref().map(|(node, _)| node.clone());
        CPU = catalogue::CPU, |row| row.place.as_ref().map(|(_, cpu)| *cpu);
        DURATION_NS = catalogue::OBSERVED_NS, |row| row.figures.duration_ns.map(Time);
        DURATION_FROM = "duration_from", "observed until", |row| match row.figures.observed {
            Observed::Document => "end",
            Observed::LastDetour => "last_detour",
        }.to_owned();
        ITERATIONS = "iterations", "steps", |row| row.figures.iterations;
        T_MIN_NS = "t_min_ns", "t_min", |row| row.figures.t_min_ns.map(Time);
        THRESHOLD_NS = "threshold_ns", "threshold", |row| row.figures.threshold_ns.map(Time);
        DETOURS = "detours", "detours", |row| row.figures.detours();
        RATE_HZ = catalogue::RATE_HZ, |row| row.figures.rate_hz().map(Rate);
        RATE_LOW_HZ = "rate_low_hz", "low", |row| row.figures.rate_interval.and_then(Interval::low).map(Rate);
        RATE_HIGH_HZ = "rate_high_hz", "high", |row| row.figures.rate_interval.and_then(Interval::high).map(Rate);
        NOISE_RATIO = catalogue::NOISE_RATIO, |row| row.figures.noise_ratio().map(Ratio);
        NOISE_RATIO_LOW = "noise_ratio_low", "low", |row| row.figures.interval.and_then(Interval::low).map(Ratio);
        NOISE_RATIO_HIGH = "noise_ratio_high", "high", |row| row.figures.interval.and_then(Interval::high).map(Ratio);
        NOISE_RATIO_NOTE = "noise_ratio_note", "note", |row| interval_note(&row.figures);
        LONG_NOISE_RATIO = "noise_1us_ratio", "from 1 us", |row| row.figures.long_noise_ratio().map(Ratio);
        LONG_RATE_HZ = "rate_1us_hz", "from 1 us", |row| row.figures.long_rate_hz().map(Rate);
        LONG_MEDIAN_NS = "median_1us_ns", "median from 1 us", |row| row.figures.long_median_ns.map(Time);
        OWN_NS = "self_ns", "becalm", |row| row.figures.own_ns.map(Time);
        OWN_RATIO = "self_ratio", "becalm", |row| row.figures.own_ratio().map(Ratio);
        OWN_LONGEST_NS = "self_longest_ns", "longest of becalm", |row| row.figures.own_longest_ns.map(Time);
        WORK_P99_NS = "work_1ms_p99_ns", "1ms takes (p99)", |row| row.figures.work_p99_ns.map(Time);
        TOTAL_NS = catalogue::TOTAL_NS, |row| Time(row.figures.durations.total());
        MAX_NS = catalogue::MAX_NS, |row| row.figures.durations.max().map(Time);
        MEAN_NS = catalogue::MEAN_NS, |row| row.figures.durations.mean().and_then(Time::rounded);
        MEDIAN_NS = catalogue::MEDIAN_NS, |row| row.figures.median_ns.map(Time);
        MEDIAN_LOW_NS = "median_low_ns", "low", |row| row.figures.median_bounds.low.map(Time);
        MEDIAN_HIGH_NS = "median_high_ns", "high", |row| row.figures.median_bounds.high.map(Time);
        P99_NS = catalogue::P99_NS, |row| row.figures.p99_ns.map(Time);
        P99_LOW_NS = "p99_low_ns", "low", |row| row.figures.p99_bounds.low.map(Time);
        P99_HIGH_NS = "p99_high_ns", "high", |row| row.figures.p99_bounds.high.map(Time);
        P999_NS = catalogue::P999_NS, |row| row.figures.p999_ns.map(Time);
        P999_LOW_NS = "p999_low_ns", "low", |row| row.figures.p999_bounds.low.map(Time);
        P999_HIGH_NS = "p999_high_ns", "high", |row| row.figures.p999_bounds.high.map(Time);
        RETURN_PERIOD_NS = "return_period_ns", "once in", |row| level(row).map(|level| level.period_ns).map(Time);
        RETURN_LEVEL_NS = "return_level_ns", "over", |row| level(row).map(|level| level.level_ns).map(Time);
        RETURN_LEVEL_LOW_NS = "return_level_low_ns", "low", |row| level(row).map(|level| level.low_ns).map(Time);
        RETURN_LEVEL_HIGH_NS = "return_level_high_ns", "high", |row| level(row).map(|level| level.high_ns).map(Time);
        TAIL_VERDICT = "tail_verdict", "verdict", |row| row.figures.tail.as_ref().map(tails::verdict);
        TAIL_THRESHOLD_NS = "tail_threshold_ns", "threshold", |row| tail(row).map(|tail| tail.threshold_ns).map(Time);
        TAIL_EXCEEDANCES = "tail_exceedances", "exceedances",
            |row| tail(row).map(|tail| tail.exceedances as u64);
        TAIL_CLUSTERS = "tail_clusters", "clusters", |row| tail(row).map(|tail| tail.clusters as u64);
        TAIL_EXTREMAL_INDEX = "tail_extremal_index", "independent",
            |row| tail(row).map(|tail| tail.extremal_index).map(Real);
        TAIL_SHAPE = "tail_shape", "shape", |row| tail(row).map(|tail| tail.shape).map(Real);
        TAIL_SHAPE_ERROR = "tail_shape_error", "error", |row| tail(row).map(|tail| tail.shape_error).map(Real);
        TAIL_SCALE_NS = "tail_scale_ns", "scale", |row| tail(row).map(|tail| tail.scale_ns).and_then(Time::rounded);
        TAIL_MISFIT = "tail_misfit", "misfit", |row| tail(row).map(|tail| tail.misfit).map(Real);
        TAIL_MISFIT_LIMIT = "tail_misfit_limit", "limit", |row| tail(row).map(|tail| tail.misfit_limit).map(Real);
        TAIL_NOTE = "tail_note", "note", |row| row.figures.tail.as_ref().and_then(tails::note);
        RAREST_SEEN_NS = "rarest_seen_ns", "seen if every", |row| row.figures.rarest_seen_ns.map(Time);
        INCOMPLETE = "incomplete", "incomplete", |row| row.figures.incomplete;
        LOST_EVENTS = catalogue::LOST_EVENTS, |row| row.figures.lost_events;
        UNSEEN_NS = "unseen_ns", "unseen", |row| row.figures.unseen_ns.map(Time);
        STEAL_NS = "steal_ns", "steal", |row| row.figures.steal_ns.map(Time);
        CUT_SHORT = "cut_short", "cut short", |row| row.figures.cut_short;
    }
}

fields! {
    /// The figures of a source of noise.
    pub SOURCE, source: SourceSummary {
        NODE = catalogue::NODE, |row| row.place.as_ref().map(|(node, _)| node.clone());
        CPU = catalogue::CPU, |row| row.place.as_ref().map(|(_, cpu)| *cpu);
        SOURCE = catalogue::SOURCE, |row| row.source.clone();
        KIND = catalogue::KIND, |row| row.kind.name();
        COUNT = catalogue::COUNT, |row| row.times.count();
        MIN_NS = "min_ns", "shortest", |row| row.times.min().map(Time);
        MAX_NS = "max_ns", "longest", |row| row.times.max().map(Time);
        MEAN_NS = "mean_ns", "avg own", |row| row.times.mean().and_then(Time::rounded);
        STDDEV_NS = catalogue::STDDEV_NS, |row| row.times.stddev().and_then(Time::rounded);
        TOTAL_NS = "total_ns", "own", |row| Time(row.times.total());
        WHOLE_NS = "whole_ns", "total", |row| Time(row.whole_ns);
        WHOLE_MEAN_NS = "whole_mean_ns", "avg total", |row| row.whole_mean_ns().and_then(Time::rounded);
        SHARE_RATIO = "share_ratio", "of noise", |row| row.share.map(Share);
        TIME_RATIO = catalogue::TIME_RATIO, |row| row.time_ratio.map(Ratio);
        RUN_AT_LEAST_NS = "run_at_least_ns", "run at least", |row| row.run_at_least_ns.map(Time);
    }
}

fields! {
    /// The time taken by a category of sources.
    pub(crate) CATEGORY, category: CategoryTotal {
        CATEGORY = "category", "category", |row| row.category.name();
        SOURCES = "sources", "sources", |row| row.sources;
        COUNT = catalogue::COUNT, |row| row.count;
        TOTAL_NS = catalogue::TOTAL_NS, |row| Time(row.total_ns);
        SHARE_RATIO = "share_ratio", "of noise", |row| row.share.map(Share);
    }
}

fields! {
    /// The fields of a part of one occurrence of an interrupt.
    pub(crate) PART, part: PartFigures {
        PART = "part", "part", |row| row.part.map_or("all", Part::name);
        COUNT = catalogue::COUNT, |row| row.times.count();
        MEAN_NS = catalogue::MEAN_NS, |row| row.times.mean().and_then(Time::rounded);
        MEDIAN_NS = catalogue::MEDIAN_NS, |row| row.median_ns.map(Time);
        P99_NS = catalogue::P99_NS, |row| row.p99_ns.map(Time);
        MAX_NS = catalogue::MAX_NS, |row| row.times.max().map(Time);
    }
}

fields! {
    /// The fields of a period on a CPU.
    pub(crate) PERIOD, period: PeriodSummary {
        NODE = catalogue::NODE, |row| row.node.clone();
        CPU = catalogue::CPU, |row| row.cpu;
        SOURCE = catalogue::SOURCE, |row| match &row.origin {
            Origin::Source { source, .. } => Some(source.clone()),
            Origin::Detours { .. } => None,
        };
        KIND = catalogue::KIND, |row| match &row.origin {
            Origin::Source { kind, .. } => Some(kind.name()),
            Origin::Detours { .. } => None,
        };
        FROM_NS = "from_ns", "from", |row| match row.origin {
            Origin::Source { .. } => None,
            Origin::Detours { from_ns, .. } => Some(Time(from_ns)),
        };
        BELOW_NS = "below_ns", "below", |row| match row.origin {
            Origin::Source { .. } => None,
            Origin::Detours { below_ns, .. } => Some(Time(below_ns)),
        };
        INTERVAL_NS = "interval_ns", "every", |row| Time::rounded(row.period.interval_ns);
        INTERVAL_ERROR_NS = "interval_error_ns", "error", |row| Time::rounded(row.period.interval_error_ns);
        FREQUENCY_HZ = "frequency_hz", "rate", |row| Rate(row.period.frequency_hz());
        JITTER_NS = "jitter_ns", "jitter", |row| Time::rounded(row.period.jitter_ns);
        EVENTS = "events", "events", |row| row.period.events;
        BEATS = "beats", "beats", |row| row.period.beats;
        SEEN_RATIO = "seen_ratio", "of beats",
            |row| Share(row.period.events as f64 / row.period.beats.max(1) as f64);
        FALSE_ALARM_RATIO = catalogue::FALSE_ALARM_RATIO, |row| Ratio(row.period.false_alarm);
        LABEL = "label", "what", |row| row.label();
    }
}

fields! {
    /// The fields of an outlier: a CPU or a node that differs from its peers.
    pub(crate) OUTLIER, outlier: OutlierSummary {
        NODE = catalogue::NODE, |row| row.node.clone();
        CPU = catalogue::CPU, |row| row.cpu;
        MEDIAN_FACTOR = "median_factor", "of the median", |row| Factor(row.outlier.factor);
        CHANCE_RATIO = "chance_ratio", "by chance", |row| Ratio(row.outlier.chance);
    }
}

fields! {
    /// The fields of compared peers: the CPUs of a node, or the nodes if there is no name.
    pub(crate) PEERS, peers: PeersSummary {
        NODE = catalogue::NODE, |row| row.node.clone();
        COMPARED = "compared", "compared", |row| row.compared;
        ENOUGH = "enough", "enough", |row| row.enough;
    }
}

/// The growth of a counter.
enum Growth {
    Time(i64),
    Count(u64),
}

impl Figure for Growth {
    const JSON: JsonType = u64::JSON;

    fn value(self) -> Value {
        match self {
            Self::Time(ns) => Value::Time(ns),
            Self::Count(count) => Value::Count(count),
        }
    }
}

fields! {
    /// The fields of a counter. Those of `stat/` are times.
    pub COUNTER, counter: CounterRow {
        NODE = catalogue::NODE, |row| row.node.clone();
        CPU = catalogue::CPU, |row| row.cpu.map(u64::from).map(Number);
        NAME = "name", "counter", |row| row.name.clone();
        GROWTH = "growth", "grew by", |row| match is_time(&row.name) {
            true => Growth::Time(i64::try_from(row.growth).unwrap_or(i64::MAX)),
            false => Growth::Count(row.growth),
        };
        RATE_HZ = catalogue::RATE_HZ, |row| match is_time(&row.name) {
            true => None,
            false => per_second(row.growth, row.observed_ns).map(Rate),
        };
    }
}

/// The counters of a node that grew, over all of its selected CPUs or per CPU; the fastest first, times before counts.
pub(crate) fn counters(node: &NodeSummary, per_cpu: bool) -> Vec<CounterRow> {
    // All loops start together, so the longest is the time over which the counters grew.
    let observed_ns = node.doc.cpus.iter().map(|cpu| cpu.duration_ns.get()).max();
    counter_rows(&node.doc.node, &node.doc.counters, observed_ns, per_cpu)
}

/// The same for counters that are not yet in a document.
pub fn counter_rows(
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
    rank(&mut rows);
    rows
}

/// The counters without the time of the measuring loops, which `stat/user` contains.
pub(crate) fn others_counters(summary: &Summary, node: &NodeSummary, per_cpu: bool) -> Vec<CounterRow> {
    let mut rows = counters(node, per_cpu);
    for row in rows.iter_mut().filter(|row| row.name == "stat/user") {
        let is_wanted = |cpu: &&CpuSummary| cpu.node == row.node && row.cpu.is_none_or(|one| one == cpu.cpu.get());
        let looped = |cpu: &CpuSummary| cpu.figures.duration_ns.unwrap_or(0) - cpu.figures.durations.total();
        let looped: i64 = summary.cpus.iter().filter(is_wanted).map(looped).sum();
        row.growth = row.growth.saturating_sub(looped.max(0) as u64);
    }
    rows.retain(|row| row.growth > 0);
    rank(&mut rows);
    rows
}

/// Sorts by CPU, times before counts, the fastest first.
fn rank(rows: &mut [CounterRow]) {
    rows.sort_by_key(|row| (row.cpu, !is_time(&row.name), Reverse(row.growth)));
}

/// Whether the counter is a time, in nanoseconds.
fn is_time(counter: &str) -> bool {
    counter.starts_with("stat/") && counter != "stat/ctxt" && counter != "stat/intr"
}

fn per_second(growth: u64, observed_ns: Option<i64>) -> Option<f64> {
    observed_ns.filter(|ns| *ns > 0).map(|ns| growth as f64 / (ns as f64 / 1e9))
}

/// Why the noise ratio has no interval, or only its lower end, or a rough one; with the run length that a good one needs.
pub(crate) fn interval_note(figures: &Figures) -> Option<String> {
    match figures.interval {
        None if figures.unstored > 0 => Some("the times of detours that were only counted are not known".to_owned()),
        None => Some("it is not known how long the loop ran".to_owned()),
        Some(Interval::Between { .. }) => None,
        Some(Interval::Rough { needed_ns, .. }) => {
            Some(format!("the interval is rough, because the noise drifts; record about {}", value::time(needed_ns)))
        }
        Some(Interval::Unknown(why)) => Some(match why {
            TooLittle::NoDetour => match figures.duration_ns {
                // With 95 % probability the rate is below 3/T, because exp(-3) = 5 %.
                Some(ns) if ns > 0 => format!(
                    "no interruption was seen: they are rarer than {} per second, but their length is not bounded",
                    three_digits(3.0 / (ns as f64 / 1e9))
                ),
                _ => "the loop did not run".to_owned(),
            },
            TooLittle::FewTrains { trains, needed_ns } => format!(
                "the noise is from about {} stretches of the recording, and 10 are needed; record about {}",
                three_digits(trains),
                value::time(needed_ns)
            ),
            TooLittle::LongTrains { block_ns } => format!(
                "the noise drifts over stretches of about {}, and fewer than 8 of them fit; record about {}",
                Nanos::new(block_ns),
                value::time(run_for_blocks(block_ns))
            ),
            TooLittle::ShortRun => "the recording is too short for 20 parts".to_owned(),
        }),
    }
}
