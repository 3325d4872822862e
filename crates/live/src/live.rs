//! What the live view knows: per CPU and per source sums, noise over time, and the longest detours, kept up while rows
//! come in. It neither measures nor draws.
//!
//! A view outlives its recordings: each save begins a new one. Its sums go on over all of them, and its axis of time
//! leaves out what lies between two.

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

/// How many of the longest detours each CPU keeps.
const LONGEST: usize = 32;

/// Over which time the recent noise is taken.
const RECENT: Nanos = Nanos::from_secs(10);

/// What the view adds up for one CPU.
#[derive(Clone, Debug, Default)]
struct CpuSums {
    cpu: CpuId,
    t_min: Nanos,
    threshold: Nanos,
    /// The time that earlier recordings observed on this CPU.
    before: Nanos,
    /// When the loop of this recording began, and until when its detours are known.
    span: Option<(Nanos, Nanos)>,
    durations: Moments,
    /// The detours of 1 us and more.
    long: Moments,
    /// What becalm itself took, which is in no other sum.
    own: Nanos,
    /// Detours that were only counted, and their sum.
    unstored: Unstored,
    incomplete: u64,
    last: Option<Nanos>,
    /// The account of the current recording.
    account: CpuAccount,
    /// The detours of each source, in the order of [`Live::names`].
    sources: Vec<Moments>,
    /// The time of which each source is the root, in the same order.
    wholes: Vec<Nanos>,
    history: History,
    /// The longest detours with what happened in them, the longest first.
    longest: Vec<Arc<Timeline>>,
}

impl CpuSums {
    fn observed(&self) -> Nanos {
        self.before + self.span.map_or(Nanos::ZERO, |(began, until)| until - began)
    }

    /// Forgets all sums; what is observed from now on counts.
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
            // Pieces of work are followed in recordings alone.
            work_p99_ns: None,
        }
    }
}

/// Everything that a view shows. A clone of it is a view at one instant.
#[derive(Clone, Debug, Default)]
pub struct Live {
    /// The node's document as the recording began.
    node: Option<Arc<NodeDoc>>,
    /// The measured CPUs, by rising number.
    cpus: Vec<CpuSums>,
    /// The place in `cpus` of each loop of this recording.
    places: Vec<usize>,
    names: SourceIds,
    owners: LabelOwners,
    /// What this recording's origin is on the view's axis: zero for the first, so that its detours begin in the view
    /// when they do in its report.
    base: Nanos,
    /// The end of the recording before, at which this one's loops will have begun on the view's axis.
    joint: Option<Nanos>,
    counters: Vec<CounterGrowth>,
}

impl Live {
    /// A recording begins; the first, or another one.
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

    /// Takes what one loop gave since the last time: its detours and their activities, when it began, and the instant
    /// up to which its detours are all known now.
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
        // At the very end of a recording the instant lies in no time; its last detour says how far it went.
        let last = part.detours.last().map(|last| last.start + last.duration);
        let until = if until == Nanos::MAX { last } else { Some(until) };
        if let (Some(began), Some(until)) = (began, until) {
            let (began, known) = cpu.span.unwrap_or((began, began));
            cpu.span = Some((began, known.max(until)));
            cpu.history.advance(*base + known.max(until));
        }
    }

    /// Enters how the kernel's own counters grew since the view began.
    pub fn set_counters(&mut self, counters: Vec<CounterGrowth>) {
        self.counters = counters;
    }

    /// Starts all sums again from zero.
    pub fn forget(&mut self) {
        self.cpus.iter_mut().for_each(CpuSums::forget);
        self.counters.clear();
    }

    /// Whether anything has been measured.
    pub fn has_begun(&self) -> bool {
        self.node.is_some()
    }

    /// How long the longest loop was observed.
    pub fn elapsed(&self) -> Nanos {
        self.cpus.iter().map(CpuSums::observed).max().unwrap_or(Nanos::ZERO)
    }

    /// How long the longest loop of this recording was observed.
    pub fn recording(&self) -> Nanos {
        let spans = self.cpus.iter().filter_map(|cpu| cpu.span);
        spans.map(|(began, until)| until - began).max().unwrap_or(Nanos::ZERO)
    }

    /// The numbers of the measured CPUs.
    pub fn cpu_list(&self) -> CpuList {
        self.cpus.iter().map(|cpu| cpu.cpu).collect()
    }

    /// The host, how it is measured, and what limits what the numbers say.
    pub fn node(&self) -> Option<&NodeDoc> {
        self.node.as_deref()
    }

    /// What limits what the numbers say.
    pub fn warnings(&self) -> &[Warning] {
        self.node.as_ref().map_or(&[], |node| &node.warnings)
    }

    /// Whether the kernel is traced, so that detours have sources.
    pub fn is_tracing(&self) -> bool {
        self.node.as_ref().is_some_and(|node| node.rung == Rung::Tracepoints)
    }

    /// The CPUs, in rising order.
    pub fn cpus(&self) -> Vec<LiveCpu> {
        let row = |cpu: &CpuSums| LiveCpu {
            cpu: cpu.cpu,
            figures: cpu.figures(self.is_tracing(), self.names.names()),
            recent_ratio: cpu.history.recent(RECENT),
            last_ns: cpu.last.map(Nanos::get),
        };
        self.cpus.iter().map(row).collect()
    }

    /// All CPUs together, or one.
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

    /// The sources over all CPUs, or of one, those that took most first.
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
        sources.sort_by(|a, b| size(b).cmp(&size(a)).then_with(|| a.source.cmp(&b.source)));
        sources
    }

    /// The share of the observed time that becalm's own threads took; `None` where that cannot be seen.
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

    /// The noise ratio of each of the last whole seconds of a CPU, the latest last; at most `count`.
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
