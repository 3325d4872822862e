//! The figures of a summary: of a run, its nodes, its CPUs and its sources.

use std::path::PathBuf;

use becalm_model::Kind;
use becalm_model::node::{CpuDoc, NodeDoc, Rung, Warning};
use becalm_units::CpuId;

use super::{Anatomy, Books, Checked, CostAtScale, Measuring, NoScale, SampledPhases};
use becalm_stats::chance::rarest_seen;
use becalm_stats::outliers::Outlier;
use becalm_stats::{
    Interval, LengthCells, Longest, Moments, NoTail, Period, QuantileBounds, Quantiles, ReturnLevel, Spectrum, Tail,
    TimeCells,
};

/// A run, or the selected part of it, in numbers.
#[derive(Clone, Debug)]
pub struct Summary {
    /// The directory of the summarized recording.
    pub path: PathBuf,
    /// The trace compared with the kernel's own counts; `None` if that was not done.
    pub checked: Option<Checked>,
    /// The cost of writing the trace; `None` if there is none, or it is unknown.
    pub measuring: Option<Measuring>,
    /// The nodes, by name.
    pub nodes: Vec<NodeSummary>,
    /// The CPUs, by node and number.
    pub cpus: Vec<CpuSummary>,
    /// All of them together. Its interval treats the simultaneous noise of all CPUs as one, so noise that hits them together is not assumed to be
    /// independent.
    pub total: Figures,
    /// The sources over all CPUs, the largest total first, then the largest own time; equal ones by name, then by kind.
    pub sources: Vec<SourceSummary>,
    /// The sources of each CPU, in the order of the CPUs, and sorted likewise within one.
    pub cpu_sources: Vec<SourceSummary>,
    /// One occurrence of the most expensive interrupt; `None` if no interrupt is known.
    pub anatomy: Option<Anatomy>,
    /// The cost of the noise for a program with the requested number of ranks; `None` if not requested.
    pub at_scale: Option<Result<CostAtScale, NoScale>>,
    /// The data for it; `None` for a selection with less detail than [`Detail::Scale`](super::Detail).
    pub phases: Option<SampledPhases>,
    /// Periodic events, by place, then the most frequent first. From the sources if there are any, else from the detours themselves.
    pub periods: Vec<PeriodSummary>,
    /// CPUs and nodes that are outliers among their peers, those of a node together, the noisiest first.
    pub outliers: Vec<OutlierSummary>,
    /// The peers that were compared.
    pub peers: Vec<PeersSummary>,
    /// The spectrum of the noise; `None` for a run that is too short or of unknown length.
    pub spectrum: Option<Spectrum>,
    /// Whether the activities add up to the detours.
    pub books: Books,
    /// The lowest rung of any node.
    pub rung: Rung,
    /// Warnings to read before the numbers: those of the summary, then those of the recorder, each with its node.
    pub warnings: Vec<(String, Warning)>,
}

impl Summary {
    /// Computes the cost of the noise for a program with this many ranks, if the selection allows.
    pub fn ask_for_ranks(&mut self, ranks: u64) {
        self.at_scale = self.phases.as_ref().map(|phases| phases.at(ranks));
    }
}

/// A node of a summary.
#[derive(Clone, Debug)]
pub struct NodeSummary {
    /// Its document, restricted to the selected CPUs and counters.
    pub doc: NodeDoc,
    /// The number of activities in its files for the selected CPUs.
    pub activities: u64,
}

/// The figures of one CPU.
#[derive(Clone, Debug)]
pub struct CpuSummary {
    /// The name of the node that the CPU belongs to.
    pub node: String,
    /// The kernel's number of the CPU.
    pub cpu: CpuId,
    /// The figures of its detours.
    pub figures: Figures,
}

/// The source of the observed time.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Observed {
    /// The node's document: the run ended normally.
    #[default]
    Document,
    /// The end of the last stored detour: the run was killed, or is still going on.
    LastDetour,
}

/// The noise of one or more CPUs. Times are in nanoseconds; unknown values are `None`.
#[derive(Clone, Default, Debug)]
pub struct Figures {
    /// The total run time of the loops of all CPUs.
    pub duration_ns: Option<i64>,
    /// The source of that time.
    pub observed: Observed,
    /// Steps of the loops.
    pub iterations: Option<u64>,
    /// The shortest step of the loops; for several CPUs the shortest of all.
    pub t_min_ns: Option<i64>,
    /// The threshold; for several CPUs the highest.
    pub threshold_ns: Option<i64>,
    /// The durations of the detours, without becalm's own time unless requested.
    pub durations: Moments,
    /// The durations of at least 1 us: the processor itself takes less.
    pub long: Moments,
    /// The median of those.
    pub long_median_ns: Option<i64>,
    /// The time of becalm's own threads, with kernel entry and exit, which is not in the other figures; `None` without tracepoints.
    pub own_ns: Option<i64>,
    /// The maximum that they took of one detour.
    pub own_longest_ns: Option<i64>,
    /// The median length of the detours.
    pub median_ns: Option<i64>,
    /// The confidence interval of the median.
    pub median_bounds: QuantileBounds,
    /// The 99th percentile of the detour lengths.
    pub p99_ns: Option<i64>,
    /// The confidence interval of `p99_ns`.
    pub p99_bounds: QuantileBounds,
    /// The 99.9th percentile of the detour lengths.
    pub p999_ns: Option<i64>,
    /// The confidence interval of `p999_ns`.
    pub p999_bounds: QuantileBounds,
    /// The time that 99 of 100 consecutive pieces of 1 ms of work do not exceed; `None` if the run is too short, the observed time is unknown, or
    /// some detours were only counted.
    pub work_p99_ns: Option<i64>,
    /// The interval of the noise ratio; `None` if the observed time is unknown, or some detours were only counted, without their times.
    pub interval: Option<Interval>,
    /// The interval of the rate of detours; `None` as above.
    pub rate_interval: Option<Interval>,
    /// Events rarer than one per this time may have been missed, with a probability above 5 %; for several CPUs, on one of them.
    pub rarest_seen_ns: Option<i64>,
    /// The return level of long detours, or why there is none; `None` if the observed time is unknown, and over several nodes, because their clocks
    /// are unrelated.
    pub tail: Option<Result<LongTail, NoTail>>,
    /// Detours that were only counted, for lack of space. They are in the noise ratio, and in no other figure.
    pub unstored: u64,
    /// The sum of the detours that were only counted.
    pub unstored_ns: i64,
    /// Detours with dropped kernel events.
    pub incomplete: u64,
    /// Dropped kernel events; `None` if the file of another program reports none.
    pub lost_events: Option<u64>,
    /// Time in detours, or parts of them, without any kernel event; `None` without tracepoints or without a loop.
    pub unseen_ns: Option<i64>,
    /// Steal time reported by the hypervisor; `None` if the kernel does not count it.
    pub steal_ns: Option<i64>,
    /// Whether a loop ended before the others.
    pub cut_short: bool,
}

impl Figures {
    /// The figures in a node's document for a CPU whose loop ran for `duration_ns`.
    pub(super) fn from_document(doc: &NodeDoc, cpu: &CpuDoc, duration_ns: Option<i64>, observed: Observed) -> Self {
        // The document of a run that did not end was written at its start, before the loops had counted anything.
        let ended = observed == Observed::Document;
        let imported = doc.is_imported();
        let steal = doc.counters.iter().find(|counter| counter.cpu == cpu.cpu && counter.name == "stat/steal");
        Self {
            duration_ns,
            observed,
            // Files of other programs do not count steps, and need not report dropped events.
            iterations: (cpu.iterations > 0 || ended && !imported).then_some(cpu.iterations),
            // No step has length 0.
            t_min_ns: Some(cpu.t_min_ns.get()).filter(|ns| *ns > 0),
            threshold_ns: Some(cpu.threshold_ns.get()).filter(|ns| ended || *ns > 0),
            rarest_seen_ns: duration_ns.map(rarest_seen),
            unstored: cpu.unstored,
            unstored_ns: cpu.unstored_ns.get(),
            lost_events: (cpu.lost_events > 0 || !imported).then_some(cpu.lost_events),
            steal_ns: steal.map(|counter| i64::try_from(counter.growth).unwrap_or(i64::MAX)),
            cut_short: cpu.cut_short,
            ..Self::default()
        }
    }

    /// The figures of several CPUs together, without those that depend on single detours.
    pub(super) fn sum(cpus: &[CpuSummary]) -> Self {
        let each = || cpus.iter().map(|cpu| &cpu.figures);
        let known = |value: fn(&Self) -> Option<i64>| sum(each().map(value)).filter(|_| !cpus.is_empty());
        let duration_ns = known(|figures| figures.duration_ns);
        let elapsed = each().filter_map(|figures| figures.duration_ns).max().filter(|_| duration_ns.is_some());
        let killed = each().any(|figures| figures.observed == Observed::LastDetour);
        let lost = each().filter_map(|figures| figures.lost_events).fold(0, u64::saturating_add);
        Self {
            duration_ns,
            observed: if killed { Observed::LastDetour } else { Observed::Document },
            iterations: each()
                .map(|figures| figures.iterations)
                .try_fold(0, |sum: u64, own| Some(sum.saturating_add(own?))),
            t_min_ns: each().filter_map(|figures| figures.t_min_ns).min(),
            threshold_ns: each().filter_map(|figures| figures.threshold_ns).max(),
            own_ns: known(|figures| figures.own_ns),
            own_longest_ns: each().filter_map(|figures| figures.own_longest_ns).max(),
            rarest_seen_ns: elapsed.map(rarest_seen),
            unstored: each().map(|figures| figures.unstored).fold(0, u64::saturating_add),
            unstored_ns: each().map(|figures| figures.unstored_ns).fold(0, i64::saturating_add),
            incomplete: each().map(|figures| figures.incomplete).fold(0, u64::saturating_add),
            lost_events: (lost > 0 || each().all(|figures| figures.lost_events.is_some())).then_some(lost),
            unseen_ns: known(|figures| figures.unseen_ns),
            steal_ns: known(|figures| figures.steal_ns),
            cut_short: each().any(|figures| figures.cut_short),
            ..Self::default()
        }
    }

    /// The observation time of CPUs on `nodes` nodes; `None` for several nodes, because their clocks are unrelated.
    pub(super) fn elapsed_ns(&self, cpus: &[CpuSummary], nodes: usize) -> Option<i64> {
        let longest = cpus.iter().filter_map(|cpu| cpu.figures.duration_ns).max();
        longest.filter(|_| nodes == 1 && self.duration_ns.is_some())
    }

    /// Adds the intervals of the noise ratio and of the rate.
    pub(super) fn with_intervals(self, cells: Option<&TimeCells>, lengths: Option<&LengthCells>) -> Self {
        let (observed, stored) = (self.duration_ns, self.unstored == 0);
        let rate = |lengths: &LengthCells, observed| Interval::for_rate(&lengths.counts(), lengths.width(), observed);
        Self {
            interval: cells
                .filter(|_| stored)
                .zip(observed)
                .map(|(cells, observed)| Interval::from_cells(cells, observed)),
            rate_interval: lengths.zip(observed).map(|(lengths, observed)| rate(lengths, observed)),
            ..self
        }
    }

    /// Adds the quantiles of the durations, and the tail if the detours were watched for `elapsed_ns` on one clock.
    pub(super) fn with_lengths(
        self,
        quantiles: &mut Quantiles,
        lengths: Option<&LengthCells>,
        longest: Longest,
        elapsed_ns: Option<i64>,
    ) -> Self {
        let [median_bounds, p99_bounds, p999_bounds] = SHARES.map(|share| {
            lengths.map_or(QuantileBounds::UNKNOWN, |lengths| QuantileBounds::for_quantile(quantiles, lengths, share))
        });
        // The rank of the median of the detours of at least 1 us among all detours: after those below 1 us.
        let (all, long) = (self.durations.count(), self.long.count());
        let long_median = all.saturating_sub(long) + long.div_ceil(2);
        Self {
            long_median_ns: (long > 0).then(|| quantiles.ranked(long_median)).flatten(),
            median_ns: quantiles.at(SHARES[0]),
            median_bounds,
            p99_ns: quantiles.at(SHARES[1]),
            p99_bounds,
            p999_ns: quantiles.at(SHARES[2]),
            p999_bounds,
            tail: elapsed_ns.map(|elapsed| long_tail(longest, elapsed)),
            ..self
        }
    }

    /// The number of detours that were kept.
    pub const fn detours(&self) -> u64 {
        self.durations.count()
    }

    /// Time lost in detours over time observed; `None` if the latter is unknown or 0.
    pub fn noise_ratio(&self) -> Option<f64> {
        Some((self.durations.total() as f64 + self.unstored_ns as f64) / self.observed_ns()?)
    }

    /// Time lost in detours of at least 1 us over time observed; `None` as above.
    pub fn long_noise_ratio(&self) -> Option<f64> {
        Some(self.long.total() as f64 / self.observed_ns()?)
    }

    /// Detours of at least 1 us per second; `None` as above.
    pub fn long_rate_hz(&self) -> Option<f64> {
        Some(self.long.count() as f64 / (self.observed_ns()? / 1e9))
    }

    /// becalm's own time over time observed; `None` as above, and without tracepoints.
    pub fn own_ratio(&self) -> Option<f64> {
        Some(self.own_ns? as f64 / self.observed_ns()?)
    }

    /// Detours per second; `None` if the observed time is unknown or 0.
    pub fn rate_hz(&self) -> Option<f64> {
        Some(self.detours() as f64 / (self.observed_ns()? / 1e9))
    }

    fn observed_ns(&self) -> Option<f64> {
        self.duration_ns.filter(|ns| *ns > 0).map(|ns| ns as f64)
    }
}

/// The reported quantiles.
const SHARES: [f64; 3] = [0.5, 0.99, 0.999];

fn long_tail(longest: Longest, observed: i64) -> Result<LongTail, NoTail> {
    let tail = Tail::fit(longest, observed)?;
    let level = tail.longest_return_level()?;
    Ok(LongTail { tail, level })
}

/// The sum, known if all of its parts are.
pub(super) fn sum(parts: impl Iterator<Item = Option<i64>>) -> Option<i64> {
    parts.into_iter().try_fold(0_i64, |sum, part| Some(sum.saturating_add(part?)))
}

/// The time of one source on a CPU, or over all of them.
#[derive(Clone, Debug)]
pub struct SourceSummary {
    /// The node and CPU; `None` over all of them.
    pub place: Option<(String, CpuId)>,
    /// The stable name of the source: `timer`, `kworker:vmstat_update`.
    pub source: String,
    /// Its kind.
    pub kind: Kind,
    /// The self times of its activities.
    pub times: Moments,
    /// The time of all activities charged to it, including its own, in nanoseconds: the gain if the source is removed. Over all sources these add up
    /// to the noise.
    pub whole_ns: i64,
    /// The same as a share of the noise in the same place; `None` without noise.
    pub share: Option<f64>,
    /// The same as a share of the time observed in the same place.
    pub time_ratio: Option<f64>,
    /// The run time needed to see it again with 95 % probability, from its count in this run; `None` if unknown.
    pub run_at_least_ns: Option<i64>,
}

impl SourceSummary {
    /// The mean total cost of one of its activities; `None` if it has no activities of its own.
    pub fn whole_mean_ns(&self) -> Option<f64> {
        (self.times.count() > 0).then(|| self.whole_ns as f64 / self.times.count() as f64)
    }
}

/// Something periodic on a CPU.
#[derive(Clone, PartialEq, Debug)]
pub struct PeriodSummary {
    /// The name of the node that the CPU belongs to.
    pub node: String,
    /// The kernel's number of the CPU.
    pub cpu: CpuId,
    /// The recurring event: activities of a source, or detours of a length.
    pub origin: Origin,
    /// The interval at which it recurs, with its uncertainty.
    pub period: Period,
}

/// The data that a period was found in.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Origin {
    /// The activities of a source.
    Source {
        /// Its kind.
        kind: Kind,
        /// The stable name of the source.
        source: String,
    },
    /// Detours of this length, if no source is known.
    Detours {
        /// The minimum length, in nanoseconds.
        from_ns: i64,
        /// The end of the range of lengths (exclusive), in nanoseconds.
        below_ns: i64,
    },
}

/// The tail of the detours' lengths, with the return level.
#[derive(Clone, Debug)]
pub struct LongTail {
    /// The fit with its diagnostics.
    pub tail: Tail,
    /// The length exceeded once in the longest time that the run allows.
    pub level: ReturnLevel,
}

/// An outlier among its peers.
#[derive(Clone, PartialEq, Debug)]
pub struct OutlierSummary {
    /// The name of the node that is an outlier, or that the CPU belongs to.
    pub node: String,
    /// The kernel's number of the CPU, if it is an outlier among those of the node; `None` for a node.
    pub cpu: Option<CpuId>,
    /// The size of the difference, with its uncertainty.
    pub outlier: Outlier,
}

/// Peers whose noise ratios were compared.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PeersSummary {
    /// The node with the CPUs; `None` for the nodes themselves.
    pub node: Option<String>,
    /// The number of peers with a noise ratio and an interval.
    pub compared: usize,
    /// Whether they are enough to find outliers.
    pub enough: bool,
}
