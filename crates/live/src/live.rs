//! The data of the live view: sums per CPU and source, noise over time, and the longest detours, updated as rows arrive. No measuring, no drawing.
//!
//! A view outlives its recordings: each save starts a new one. The sums continue across all of them, and the time axis omits the gaps between two.

use std::sync::Arc;

use becalm_account::{CpuAccount, LabelOwners, SourceIds, is_becalms};
use becalm_analyze::summary::{DetourId, Figures, Observed, SourceSummary, Timeline, TimelineEntry};
use becalm_measure::Unstored;
use becalm_model::node::{CounterGrowth, NodeDoc, Rung, Warning};
use becalm_model::{Activity, Kind, Labels, LoopThread, unseen};
use becalm_record::LanePart;
use becalm_stats::{Moments, QuantileBounds};
use becalm_units::{CpuId, CpuList, Nanos};

use crate::grids::LiveCpu;
use crate::history::History;

/// The number of longest detours kept per CPU.
const LONGEST: usize = 32;

/// The time span of the recent noise.
const RECENT: Nanos = Nanos::from_secs(10);

/// The view's sums for one CPU.
#[derive(Clone, Debug, Default)]
struct CpuSums {
    cpu: CpuId,
    t_min: Nanos,
    threshold: Nanos,
    /// The time observed on this CPU by earlier recordings.
    before: Nanos,
    /// The start of this recording's loop, and the end of its known time.
    span: Option<(Nanos, Nanos)>,
    durations: Moments,
    /// The detours of 1 us and more.
    long: Moments,
    /// becalm's own time, which is in no other sum.
    own: Nanos,
    /// The number and the sum of detours that were only counted.
    unstored: Unstored,
    incomplete: u64,
    last: Option<Nanos>,
    /// The account of the current recording.
    account: CpuAccount,
    /// The detours of each source, in the order of [`Live::names`].
    sources: Vec<Moments>,
    /// The time charged to each source, in the same order.
    wholes: Vec<Nanos>,
    history: History,
    /// The longest detours with their activities, the longest first.
    longest: Vec<Arc<Timeline>>,
}

impl CpuSums {
    fn observed(&self) -> Nanos {
        self.before + self.span.map_or(Nanos::ZERO, |(began, until)| until - began)
    }

    /// Resets all sums; time observed from now on counts.
    fn forget(&mut self) {
        let span = self.span.map(|(_, until)| (until, until));
        let account = std::mem::take(&mut self.account);
        *self = Self { span, account, cpu: self.cpu, ..Self::default() }.with_thresholds(self.t_min, self.threshold);
    }

    fn with_thresholds(mut self, t_min: Nanos, threshold: Nanos) -> Self {
        (self.t_min, self.threshold) = (t_min, threshold);
        self
    }

    /// Whether a detour of this length is among the longest.
    fn is_long(&self, duration: Nanos) -> bool {
        self.longest.len() < LONGEST || self.longest.last().is_none_or(|shortest| duration > shortest.duration)
    }

    fn keep(&mut self, timeline: Timeline) {
        let place = self.longest.partition_point(|other| other.duration >= timeline.duration);
        self.longest.insert(place, Arc::new(timeline));
        self.longest.truncate(LONGEST);
    }

    fn figures(&self, tracing: bool, names: &[(Kind, String)]) -> Figures {
        let unseen = names.iter().zip(&self.sources).filter(|((kind, _), _)| *kind == Kind::Unseen);
        Figures {
            duration_ns: Some(self.observed().get()),
            observed: Observed::LastDetour,
            iterations: None,
            t_min_ns: Some(self.t_min.get()),
            threshold_ns: Some(self.threshold.get()),
            durations: self.durations,
            long: self.long,
            long_median_ns: None,
            own_ns: tracing.then_some(self.own.get()),
            own_longest_ns: None,
            median_ns: None,
            median_bounds: QuantileBounds::UNKNOWN,
            p99_ns: None,
            p99_bounds: QuantileBounds::UNKNOWN,
            p999_ns: None,
            p999_bounds: QuantileBounds::UNKNOWN,
            interval: None,
            rate_interval: None,
            rarest_seen_ns: None,
            tail: None,
            unstored: self.unstored.count,
            unstored_ns: self.unstored.total.get(),
            incomplete: self.incomplete,
            lost_events: Some(0),
            unseen_ns: tracing.then(|| unseen.map(|(_, times)| times.total()).sum()),
            steal_ns: None,
            cut_short: false,
            // Only recordings follow pieces of work.
            work_p99_ns: None,
        }
    }
}

/// The data of a view. A clone is a snapshot.
#[derive(Clone, Debug, Default)]
pub struct Live {
    /// The node's document at the start of the recording.
    node: Option<Arc<NodeDoc>>,
    /// The measured CPUs, in ascending order.
    cpus: Vec<CpuSums>,
    /// The index in `cpus` of each loop of this recording.
    places: Vec<usize>,
    names: SourceIds,
    owners: LabelOwners,
    /// This recording's origin on the view's axis: zero for the first, so its detours have the same times as in its report.
    base: Nanos,
    /// The end of the previous recording, which is the start of this one's loops on the view's axis.
    joint: Option<Nanos>,
    counters: Vec<CounterGrowth>,
}

impl Live {
    /// Starts the first or another recording.
    pub fn begin(&mut self, node: &NodeDoc, threads: &[LoopThread]) {
        self.owners.clear();
        let end = |cpu: &CpuSums| cpu.span.map(|(_, until)| self.base + until);
        self.joint = self.cpus.iter().filter_map(end).max().or(self.joint);
        for cpu in &mut self.cpus {
            (cpu.before, cpu.span, cpu.account) = (cpu.observed(), None, CpuAccount::default());
        }
        for thread in threads {
            if let Err(place) = self.cpus.binary_search_by_key(&thread.cpu, |cpu| cpu.cpu) {
                self.cpus.insert(place, CpuSums { cpu: thread.cpu, ..CpuSums::default() });
            }
        }
        let place = |thread: &LoopThread| self.cpus.partition_point(|cpu| cpu.cpu < thread.cpu);
        self.places = threads.iter().map(place).collect();
        for (thread, place) in threads.iter().zip(&self.places) {
            let threshold =
                node.cpus.iter().find(|doc| doc.cpu == thread.cpu).map_or(Nanos::ZERO, |doc| doc.threshold_ns);
            (self.cpus[*place].t_min, self.cpus[*place].threshold) = (thread.t_min, threshold);
        }
        self.node = Some(Arc::new(node.clone()));
    }

    /// Takes the new data of one loop: its detours and their activities, its start, and the instant until which all its detours are known.
    pub fn take(&mut self, part: LanePart<'_>, labels: &Labels) {
        let (began, until) = (part.began, part.complete_until);
        if let (Some(began), Some(joint)) = (began, self.joint) {
            (self.base, self.joint) = (joint - began, None);
        }
        let Self { node, cpus, places, names, owners, base, .. } = self;
        let cpu = &mut cpus[places[part.index]];
        if let (Some(began), None) = (began, cpu.span) {
            cpu.history.advance(*base + began);
        }
        cpu.unstored += part.unstored;
        let mut activities = part.activities;
        for detour in part.detours {
            let number = cpu.account.detours();
            let count = activities.iter().take_while(|activity| activity.detour == number).count();
            let (rows, rest) = activities.split_at(count);
            activities = rest;
            for activity in rows {
                let owner = owners.owner(names, labels, activity);
                cpu.sources.resize(names.len(), Moments::default());
                cpu.wholes.resize(names.len(), Nanos::ZERO);
                if cpu.account.activity(number, activity.self_time.get(), owner) {
                    cpu.sources[owner.source.index()].add(activity.self_time.get());
                    cpu.wholes[owner.root.index()] += activity.self_time;
                } else {
                    cpu.own += activity.self_time;
                }
            }
            let Some(duration) = cpu.account.detour(detour.duration.get()).map(Nanos::new) else { continue };
            cpu.durations.add(duration.get());
            if duration >= unseen::SHORTEST_OF_SYSTEM {
                cpu.long.add(duration.get());
            }
            cpu.incomplete += u64::from(detour.incomplete);
            cpu.last = Some(duration);
            cpu.history.add(*base + detour.start, duration);
            if cpu.is_long(duration) {
                let machines = rows.iter().filter(|row| !is_becalms(row.kind, labels.text(row.detail)));
                let entries = machines.map(|activity| entry(activity, *base, labels)).collect();
                let node = node.as_ref().map_or_else(String::new, |doc| doc.node.clone());
                let id = DetourId { node, cpu: cpu.cpu, number };
                cpu.keep(Timeline::new(id, *base + detour.start, duration, detour.incomplete, entries));
            }
        }
        // At the very end of a recording there is no such instant; the last detour gives the end.
        let last = part.detours.last().map(|last| last.start + last.duration);
        let until = if until == Nanos::MAX { last } else { Some(until) };
        if let (Some(began), Some(until)) = (began, until) {
            let (began, known) = cpu.span.unwrap_or((began, began));
            cpu.span = Some((began, known.max(until)));
            cpu.history.advance(*base + known.max(until));
        }
    }

    /// Sets the growth of the kernel's counters since the start of the view.
    pub fn set_counters(&mut self, counters: Vec<CounterGrowth>) {
        self.counters = counters;
    }

    /// Resets all sums to zero.
    pub fn forget(&mut self) {
        self.cpus.iter_mut().for_each(CpuSums::forget);
        self.counters.clear();
    }

    /// Whether anything has been measured.
    pub fn has_begun(&self) -> bool {
        self.node.is_some()
    }

    /// The longest observed time of a loop.
    pub fn elapsed(&self) -> Nanos {
        self.cpus.iter().map(CpuSums::observed).max().unwrap_or(Nanos::ZERO)
    }

    /// The longest observed time of a loop in this recording.
    pub fn recording(&self) -> Nanos {
        let spans = self.cpus.iter().filter_map(|cpu| cpu.span);
        spans.map(|(began, until)| until - began).max().unwrap_or(Nanos::ZERO)
    }

    /// The numbers of the measured CPUs.
    pub fn cpu_list(&self) -> CpuList {
        self.cpus.iter().map(|cpu| cpu.cpu).collect()
    }

    /// The host, the method of measurement, and its limitations.
    pub fn node(&self) -> Option<&NodeDoc> {
        self.node.as_deref()
    }

    /// Everything that limits the numbers.
    pub fn warnings(&self) -> &[Warning] {
        self.node.as_ref().map_or(&[], |node| &node.warnings)
    }

    /// Whether the kernel is traced; only then do detours have sources.
    pub fn is_tracing(&self) -> bool {
        self.node.as_ref().is_some_and(|node| node.rung == Rung::Tracepoints)
    }

    /// The CPUs, in ascending order.
    pub fn cpus(&self) -> Vec<LiveCpu> {
        let row = |cpu: &CpuSums| LiveCpu {
            cpu: cpu.cpu,
            figures: cpu.figures(self.is_tracing(), self.names.names()),
            recent_ratio: cpu.history.recent(RECENT),
            last_ns: cpu.last.map(Nanos::get),
        };
        self.cpus.iter().map(row).collect()
    }

    /// The figures of all CPUs together, or of one.
    pub fn total(&self, pick: Option<CpuId>) -> Figures {
        let mut total = CpuSums::default();
        for cpu in self.picked(pick) {
            total.before += cpu.observed();
            total.durations.merge(&cpu.durations);
            total.long.merge(&cpu.long);
            total.own += cpu.own;
            total.unstored += cpu.unstored;
            total.incomplete += cpu.incomplete;
        }
        Figures { unseen_ns: None, ..total.figures(false, &[]) }
    }

    /// The sources over all CPUs, or of one, the largest total first.
    pub fn sources(&self, pick: Option<CpuId>) -> Vec<SourceSummary> {
        let (mut noise, mut observed) = (0_i64, 0_i64);
        let mut times = vec![(Moments::default(), Nanos::ZERO); self.names.len()];
        for cpu in self.picked(pick) {
            noise = noise.saturating_add(cpu.durations.total());
            observed = observed.saturating_add(cpu.observed().get());
            for ((sum, whole), (own, of_cpu)) in times.iter_mut().zip(cpu.sources.iter().zip(&cpu.wholes)) {
                sum.merge(own);
                *whole += *of_cpu;
            }
        }
        let ratio = |whole: Nanos, observed: i64| (observed > 0).then(|| whole.get() as f64 / observed as f64);
        let mut sources: Vec<SourceSummary> = self
            .names
            .names()
            .iter()
            .zip(times)
            .filter(|(_, (times, whole))| times.count() > 0 || *whole > Nanos::ZERO)
            .map(|((kind, source), (times, whole))| SourceSummary {
                place: None,
                source: source.clone(),
                kind: *kind,
                times,
                whole_ns: whole.get(),
                share: ratio(whole, noise),
                time_ratio: ratio(whole, observed),
                run_at_least_ns: None,
            })
            .collect();
        let size = |source: &SourceSummary| (source.whole_ns, source.times.total());
        let name = |source: &SourceSummary| (source.source.clone(), source.kind.name());
        sources.sort_by(|a, b| size(b).cmp(&size(a)).then_with(|| name(a).cmp(&name(b))));
        sources
    }

    /// The share of the observed time taken by becalm's own threads; `None` if it is not observable.
    pub fn own_ratio(&self) -> Option<f64> {
        let observed: i64 = self.cpus.iter().map(|cpu| cpu.observed().get()).sum();
        let own: i64 = self.cpus.iter().map(|cpu| cpu.own.get()).sum();
        (self.is_tracing() && observed > 0).then(|| own as f64 / observed as f64)
    }

    /// The longest detours on all CPUs, or on one, the longest first; equal ones by CPU and time.
    pub fn longest(&self, pick: Option<CpuId>) -> Vec<Arc<Timeline>> {
        let mut longest: Vec<Arc<Timeline>> = self.picked(pick).flat_map(|cpu| cpu.longest.iter().cloned()).collect();
        longest.sort_by(|a, b| {
            b.duration.cmp(&a.duration).then_with(|| a.id.cpu.cmp(&b.id.cpu)).then_with(|| a.start.cmp(&b.start))
        });
        longest.truncate(LONGEST);
        longest
    }

    /// The growth of the kernel's counters on all CPUs, or on one.
    pub fn counters(&self, pick: Option<CpuId>) -> Vec<CounterGrowth> {
        self.counters.iter().filter(|counter| pick.is_none_or(|cpu| cpu == counter.cpu)).cloned().collect()
    }

    /// The noise ratios of a CPU's last complete seconds, the latest last; at most `count`.
    pub fn history(&self, cpu: CpuId, count: usize) -> Vec<f64> {
        match self.cpus.binary_search_by_key(&cpu, |cpu| cpu.cpu) {
            Ok(place) => self.cpus[place].history.last(count),
            Err(_) => Vec::new(),
        }
    }

    fn picked(&self, pick: Option<CpuId>) -> impl Iterator<Item = &CpuSums> {
        self.cpus.iter().filter(move |cpu| pick.is_none_or(|pick| pick == cpu.cpu))
    }
}

fn entry(activity: &Activity, base: Nanos, labels: &Labels) -> TimelineEntry {
    TimelineEntry {
        start: base + activity.start,
        self_time: activity.self_time,
        kind: activity.kind,
        source: labels.text(activity.source).to_owned(),
        detail: labels.text(activity.detail).to_owned(),
        depth: 0,
    }
}

#[cfg(test)]
pub mod tests;
