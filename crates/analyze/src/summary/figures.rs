//! The figures that a summary holds: of a run, its nodes, its CPUs and its sources.

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

/// A run, or the part of it that was selected, in numbers.
#[derive(Clone, Debug)]
pub struct Summary {
    /// The directory of the recording that was summarized.
    pub path: PathBuf,
    /// The trace compared with the kernel's own counts; `None` if that was not done.
    pub checked: Option<Checked>,
    /// The cost of writing the trace; `None` if there is none, or that is not known.
    pub measuring: Option<Measuring>,
    /// The nodes, by name.
    pub nodes: Vec<NodeSummary>,
    /// The CPUs, by node and number.
    pub cpus: Vec<CpuSummary>,
    /// All of them together. Its interval holds the noise of all CPUs at the same time as one, so that noise which
    /// strikes them together is not taken for independent.
    pub total: Figures,
    /// The sources over all CPUs, the largest whole first, then the largest total; equal ones by name, then by kind.
    pub sources: Vec<SourceSummary>,
    /// The sources of each CPU, in the order of the CPUs and within one as above.
    pub cpu_sources: Vec<SourceSummary>,
    /// One occurrence of the costliest interrupt; `None` if no interrupt is known.
    pub anatomy: Option<Anatomy>,
    /// The cost of the noise for a program of so many ranks; `None` unless that was asked for.
    pub at_scale: Option<Result<CostAtScale, NoScale>>,
    /// What that is computed from; `None` of a selection with less detail than [`Detail::Scale`](super::Detail).
    pub phases: Option<SampledPhases>,
    /// Periodic events, by place and then the most frequent first. From the sources where
    /// there are any, else from the detours themselves.
    pub periods: Vec<PeriodSummary>,
    /// The CPUs and nodes that differ from their equals, those of a node together, the noisiest first.
    pub outliers: Vec<OutlierSummary>,
    /// Which equals were compared for that.
    pub peers: Vec<PeersSummary>,
    /// The spectrum of the noise; `None` of a run whose length is not known, or that is too short.
    pub spectrum: Option<Spectrum>,
    /// Whether the activities add up to the detours.
    pub books: Books,
    /// The lowest rung of any node.
    pub rung: Rung,
    /// What the reader must know before believing the numbers: what the summary found, then what the recorder said.
    /// With the node that each is about.
    pub warnings: Vec<(String, Warning)>,
}

impl Summary {
    /// Computes what the noise costs a program of so many ranks, as far as the selection asked for that.
    pub fn ask_for_ranks(&mut self, ranks: u64) {
        self.at_scale = self.phases.as_ref().map(|phases| phases.at(ranks));
    }
}

/// A node of a summary.
#[derive(Clone, Debug)]
pub struct NodeSummary {
    /// Its document, with the CPUs and counters that were selected.
    pub doc: NodeDoc,
    /// How many activities its files hold for the selected CPUs.
    pub activities: u64,
}

/// What the detours of one CPU come to.
#[derive(Clone, Debug)]
pub struct CpuSummary {
    /// The name of the node that the CPU belongs to.
    pub node: String,
    /// The kernel's number of the CPU.
    pub cpu: CpuId,
    /// What its detours come to.
    pub figures: Figures,
}

/// Where the observed time comes from.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Observed {
    /// The node's document says it: the run ended by itself.
    #[default]
    Document,
    /// From the end of the last detour that was stored: the run was killed, or still goes on.
    LastDetour,
}

/// The noise of a CPU, or of several. Times are in nanoseconds; what is not known is none.
#[derive(Clone, Default, Debug)]
pub struct Figures {
    /// How long the loops ran, added up over the CPUs.
    pub duration_ns: Option<i64>,
    /// How the time for which the loops ran is known.
    pub observed: Observed,
    /// Steps of the loops.
    pub iterations: Option<u64>,
    /// The shortest step of the loops; of several CPUs the shortest of all.
    pub t_min_ns: Option<i64>,
    /// The threshold; of several CPUs the highest.
    pub threshold_ns: Option<i64>,
    /// The durations of the detours, without what becalm itself took of them unless that was asked for.
    pub durations: Moments,
    /// Of those, the durations of 1 us and more: the processor itself takes less.
    pub long: Moments,
    /// Half of these are not longer than this.
    pub long_median_ns: Option<i64>,
    /// The time that becalm's own threads took, with the ways in and out of them, which is not in the figures; `None` without
    /// tracepoints.
    pub own_ns: Option<i64>,
    /// The most that they took of one detour.
    pub own_longest_ns: Option<i64>,
    /// Half of the detours are not longer than this.
    pub median_ns: Option<i64>,
    /// The interval that holds the true median.
    pub median_bounds: QuantileBounds,
    /// The length that 99 of 100 detours do not exceed.
    pub p99_ns: Option<i64>,
    /// The interval that holds the true value of `p99_ns`.
    pub p99_bounds: QuantileBounds,
    /// The length that 999 of 1,000 detours do not exceed.
    pub p999_ns: Option<i64>,
    /// The interval that holds the true value of `p999_ns`.
    pub p999_bounds: QuantileBounds,
    /// The time that 99 of 100 pieces of 1 ms of work do not exceed, one after another; `None` of a run that is too short, where the observed
    /// time is unknown, or where some detours were only counted.
    pub work_p99_ns: Option<i64>,
    /// The interval of the noise ratio; `None` where the observed time is unknown, or some detours were only counted, so that
    /// nobody knows when they were.
    pub interval: Option<Interval>,
    /// The interval of the rate of detours; `None` as above.
    pub rate_interval: Option<Interval>,
    /// What comes more rarely than once in this time may have been missed, with more than 5 %; of several CPUs, on one of
    /// them.
    pub rarest_seen_ns: Option<i64>,
    /// Which length is exceeded how seldom, or why that cannot be said; `None` where the observed time is unknown, and over
    /// several nodes, whose clocks have nothing to do with each other.
    pub tail: Option<Result<LongTail, NoTail>>,
    /// Detours that were only counted, for want of room. They are in the noise ratio, and in no other figure.
    pub unstored: u64,
    /// The sum of the detours that were only counted.
    pub unstored_ns: i64,
    /// Detours in which kernel events were lost.
    pub incomplete: u64,
    /// Kernel events that were lost; `None` if the file of another program reports none.
    pub lost_events: Option<u64>,
    /// Time in detours, or parts of them, in which the kernel was not seen at all; `None` without tracepoints or without a loop.
    pub unseen_ns: Option<i64>,
    /// Time that the hypervisor says it took; `None` where the kernel does not count it.
    pub steal_ns: Option<i64>,
    /// Whether a loop ended before the others.
    pub cut_short: bool,
}

impl Figures {
    /// The figures that the document of a node gives of a CPU whose loop ran for `duration_ns`.
    pub(super) fn from_document(doc: &NodeDoc, cpu: &CpuDoc, duration_ns: Option<i64>, observed: Observed) -> Self {
        // The document of a run that did not end was written at its start, when the loops had counted nothing.
        let ended = observed == Observed::Document;
        let imported = doc.is_imported();
        let steal = doc.counters.iter().find(|counter| counter.cpu == cpu.cpu && counter.name == "stat/steal");
        Self {
            duration_ns,
            observed,
            // Files of other programs do not count steps, and need not report lost events.
            iterations: (cpu.iterations > 0 || ended && !imported).then_some(cpu.iterations),
            // No loop has steps of no length.
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

    /// For how long CPUs of so many nodes were watched; `None` for several nodes, whose clocks have nothing to do with each other.
    pub(super) fn elapsed_ns(&self, cpus: &[CpuSummary], nodes: usize) -> Option<i64> {
        let longest = cpus.iter().filter_map(|cpu| cpu.figures.duration_ns).max();
        longest.filter(|_| nodes == 1 && self.duration_ns.is_some())
    }

    /// The same with the intervals of the noise ratio and of the rate.
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

    /// The same with the quantiles of the durations, and with the tail if the detours were watched for `elapsed_ns` on one clock.
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
        // Half of the detours of 1 us and more are not longer: of all, it is the one as far behind those below 1 us.
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

    /// Time lost in detours over time observed; `None` where the latter is unknown or 0.
    pub fn noise_ratio(&self) -> Option<f64> {
        Some((self.durations.total() as f64 + self.unstored_ns as f64) / self.observed_ns()?)
    }

    /// Time lost in detours of 1 us and more over time observed; `None` as above.
    pub fn long_noise_ratio(&self) -> Option<f64> {
        Some(self.long.total() as f64 / self.observed_ns()?)
    }

    /// Detours of 1 us and more a second; `None` as above.
    pub fn long_rate_hz(&self) -> Option<f64> {
        Some(self.long.count() as f64 / (self.observed_ns()? / 1e9))
    }

    /// Becalm's own time over time observed; `None` as above, and without tracepoints.
    pub fn own_ratio(&self) -> Option<f64> {
        Some(self.own_ns? as f64 / self.observed_ns()?)
    }

    /// Detours a second; `None` where the observed time is unknown or 0.
    pub fn rate_hz(&self) -> Option<f64> {
        Some(self.detours() as f64 / (self.observed_ns()? / 1e9))
    }

    fn observed_ns(&self) -> Option<f64> {
        self.duration_ns.filter(|ns| *ns > 0).map(|ns| ns as f64)
    }
}

/// The quantiles that are shown.
const SHARES: [f64; 3] = [0.5, 0.99, 0.999];

fn long_tail(longest: Longest, observed: i64) -> Result<LongTail, NoTail> {
    let tail = Tail::fit(longest, observed)?;
    let level = tail.longest_return_level()?;
    Ok(LongTail { tail, level })
}

/// A sum is known where all of its parts are.
pub(super) fn sum(parts: impl Iterator<Item = Option<i64>>) -> Option<i64> {
    parts.into_iter().try_fold(0_i64, |sum, part| Some(sum.saturating_add(part?)))
}

/// What one source took on a CPU, or over all of them.
#[derive(Clone, Debug)]
pub struct SourceSummary {
    /// The node and CPU; `None` over all of them.
    pub place: Option<(String, CpuId)>,
    /// The stable name of the source: `timer`, `kworker:vmstat_update`.
    pub source: String,
    /// What kind of thing it is.
    pub kind: Kind,
    /// The self times of its activities.
    pub times: Moments,
    /// The time of all activities of which it is the root, its own among them, in nanoseconds: what goes if it goes. Over all
    /// sources these add up to the noise.
    pub whole_ns: i64,
    /// That, as a share of the noise in the same place; `None` where there is no noise.
    pub share: Option<f64>,
    /// That, as a share of the time observed in the same place.
    pub time_ratio: Option<f64>,
    /// How long to run to see it again with 95 %, from how often it was seen in this run; `None` where that is not known.
    pub run_at_least_ns: Option<i64>,
}

impl SourceSummary {
    /// What one of its activities costs on average, all that follows from it included; `None` where it has none of its own.
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
    /// What recurs: the activities of a source, or detours of a length.
    pub origin: Origin,
    /// The interval at which they recur, and how sure that is.
    pub period: Period,
}

/// What a period was found in.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Origin {
    /// The activities of a source.
    Source {
        /// What kind of thing it is.
        kind: Kind,
        /// The stable name of the source.
        source: String,
    },
    /// The detours of this length, where no source is known.
    Detours {
        /// The shortest length that belongs to it, in nanoseconds.
        from_ns: i64,
        /// The length from which on detours do not belong to it, in nanoseconds.
        below_ns: i64,
    },
}

/// The tail of the detours' lengths, and what it says.
#[derive(Clone, Debug)]
pub struct LongTail {
    /// The fit with its diagnostics.
    pub tail: Tail,
    /// What is exceeded once in the longest time that the run allows.
    pub level: ReturnLevel,
}

/// One that differs from its equals.
#[derive(Clone, PartialEq, Debug)]
pub struct OutlierSummary {
    /// The name of the node that differs, or that the CPU belongs to.
    pub node: String,
    /// The kernel's number of the CPU, which differs from the others of the node; `None` for a node that differs.
    pub cpu: Option<CpuId>,
    /// How much it differs, and how sure that is.
    pub outlier: Outlier,
}

/// Equals whose noise ratios were compared.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PeersSummary {
    /// The node whose CPUs they are; `None` for the nodes.
    pub node: Option<String>,
    /// How many have a noise ratio with an interval.
    pub compared: usize,
    /// Whether that is enough to tell what is usual.
    pub enough: bool,
}
