//! Single detours: finds the longest, and the activities within one.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use becalm_bundle::{ActivityBatch, Bundle};
use becalm_model::Kind;
use becalm_units::{CpuId, Nanos};

use super::scan::runs;
use super::{Selection, SummaryError};

/// Identifies a detour of a run.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct DetourId {
    /// The host of the recording.
    pub node: String,
    /// The CPU of the recording.
    pub cpu: CpuId,
    /// Its number on that CPU, from 0 in order of time over the whole run.
    pub number: u64,
}

/// The activities in a detour.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Timeline {
    /// The detour shown.
    pub id: DetourId,
    /// Its start, since the run's origin.
    pub start: Nanos,
    /// Its length.
    pub duration: Nanos,
    /// Whether kernel events were dropped in it.
    pub incomplete: bool,
    /// Its activities, in order of time; none on the lower rungs.
    pub entries: Vec<TimelineEntry>,
}

impl Timeline {
    /// A detour with its activities, sorted by time and nested.
    pub fn new(id: DetourId, start: Nanos, duration: Nanos, incomplete: bool, mut entries: Vec<TimelineEntry>) -> Self {
        nest(&mut entries);
        Self { id, start, duration, incomplete, entries }
    }
}

/// An activity in a detour.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TimelineEntry {
    /// Its start, since the run's origin.
    pub start: Nanos,
    /// Its time without interruptions.
    pub self_time: Nanos,
    /// Its kind.
    pub kind: Kind,
    /// The stable name of its source.
    pub source: String,
    /// The instance of the source: a pid, a vector, a function.
    pub detail: String,
    /// The number of activities that it interrupted.
    pub depth: usize,
}

impl TimelineEntry {
    pub(crate) fn from_row(batch: &ActivityBatch, row: usize) -> Self {
        Self {
            start: Nanos::new(batch.starts()[row]),
            self_time: Nanos::new(batch.self_times()[row]),
            kind: batch.kind(row),
            source: batch.source(row).to_owned(),
            detail: batch.detail(row).to_owned(),
            depth: 0,
        }
    }
}

/// The `count` longest detours, the longest first; equal ones by node, CPU and number. Fails if the selection does not exist, or a file cannot be
/// read.
pub fn longest(bundle: &Bundle, selection: &Selection, count: usize) -> Result<Vec<DetourId>, SummaryError> {
    // A heap of the longest so far with the shortest of them on top.
    let mut heap = BinaryHeap::new();
    for doc in selection.documents(bundle)? {
        let selected: Vec<CpuId> = doc.cpus.iter().map(|cpu| cpu.cpu).collect();
        let mut numbers: BTreeMap<i32, u64> = BTreeMap::new();
        for batch in bundle.detours(&doc.node)? {
            let batch = batch?;
            for range in runs(batch.cpus()) {
                let cpu = batch.cpus()[range.start];
                let first = numbers.entry(cpu).or_default();
                let (base, begin) = (*first, range.start);
                *first += range.len() as u64;
                let cpu = CpuId::new(cpu as u32);
                if selected.binary_search(&cpu).is_err() {
                    continue;
                }
                for row in range {
                    let duration = batch.durations()[row];
                    if heap.len() >= count && heap.peek().is_none_or(|Reverse((shortest, _))| duration < *shortest) {
                        continue;
                    }
                    let id = DetourId { node: doc.node.clone(), cpu, number: base + (row - begin) as u64 };
                    heap.push(Reverse((duration, Reverse(id))));
                    if heap.len() > count {
                        heap.pop();
                    }
                }
            }
        }
    }
    Ok(heap.into_sorted_vec().into_iter().map(|Reverse((_, Reverse(id)))| id).collect())
}

/// The activities in these detours, in the order of `wanted`. Fails if one of them does not exist, or a file cannot be read.
pub fn timelines(bundle: &Bundle, wanted: &[DetourId]) -> Result<Vec<Timeline>, SummaryError> {
    let mut found: BTreeMap<DetourId, Timeline> = BTreeMap::new();
    let mut nodes: Vec<&str> = wanted.iter().map(|id| id.node.as_str()).collect();
    nodes.sort_unstable();
    nodes.dedup();
    for node in nodes {
        let mut by_cpu: BTreeMap<i32, Vec<u64>> = BTreeMap::new();
        for id in wanted.iter().filter(|id| id.node == node) {
            by_cpu.entry(id.cpu.get() as i32).or_default().push(id.number);
        }
        let counts = find_detours(bundle, node, &by_cpu, &mut found)?;
        for id in wanted.iter().filter(|id| id.node == node) {
            if !found.contains_key(id) {
                let detours = counts.get(&(id.cpu.get() as i32)).copied().unwrap_or(0);
                let (node, cpu, number) = (id.node.clone(), id.cpu, id.number);
                return Err(SummaryError::NoSuchDetour { node, cpu, number, detours });
            }
        }
        find_activities(bundle, node, &by_cpu, &mut found)?;
    }
    for timeline in found.values_mut() {
        nest(&mut timeline.entries);
    }
    Ok(wanted.iter().filter_map(|id| found.get(id).cloned()).collect())
}

/// Starts the timelines of a node's detours; returns the number of detours of each CPU.
fn find_detours(
    bundle: &Bundle,
    node: &str,
    wanted: &BTreeMap<i32, Vec<u64>>,
    found: &mut BTreeMap<DetourId, Timeline>,
) -> Result<BTreeMap<i32, u64>, SummaryError> {
    let mut numbers: BTreeMap<i32, u64> = BTreeMap::new();
    for batch in bundle.detours(node)? {
        let batch = batch?;
        for range in runs(batch.cpus()) {
            let cpu = batch.cpus()[range.start];
            let first = numbers.entry(cpu).or_default();
            let here = *first..*first + range.len() as u64;
            *first = here.end;
            for number in wanted.get(&cpu).into_iter().flatten().filter(|number| here.contains(number)) {
                let row = range.start + (number - here.start) as usize;
                let id = DetourId { node: node.to_owned(), cpu: CpuId::new(cpu as u32), number: *number };
                let timeline = Timeline {
                    id: id.clone(),
                    start: Nanos::new(batch.starts()[row]),
                    duration: Nanos::new(batch.durations()[row]),
                    incomplete: batch.incomplete(row),
                    entries: Vec::new(),
                };
                found.insert(id, timeline);
            }
        }
    }
    Ok(numbers)
}

/// Fills the timelines of a node's detours.
fn find_activities(
    bundle: &Bundle,
    node: &str,
    wanted: &BTreeMap<i32, Vec<u64>>,
    found: &mut BTreeMap<DetourId, Timeline>,
) -> Result<(), SummaryError> {
    for batch in bundle.activities(node)? {
        let batch = batch?;
        for range in runs(batch.cpus()) {
            let cpu = batch.cpus()[range.start];
            // Within a CPU the numbers never fall.
            let detours = &batch.detours()[range.clone()];
            for number in wanted.get(&cpu).into_iter().flatten() {
                let first = detours.partition_point(|detour| (*detour as u64) < *number);
                let end = detours.partition_point(|detour| *detour as u64 <= *number);
                let id = DetourId { node: node.to_owned(), cpu: CpuId::new(cpu as u32), number: *number };
                let Some(timeline) = found.get_mut(&id) else { continue };
                timeline
                    .entries
                    .extend((range.start + first..range.start + end).map(|row| TimelineEntry::from_row(&batch, row)));
            }
        }
    }
    Ok(())
}

/// The urgency of a kind: interrupting activities are more urgent than interrupted ones.
const fn urgency(kind: Kind) -> u8 {
    match kind {
        Kind::Nmi => 3,
        Kind::Irq => 2,
        Kind::Softirq => 1,
        _ => 0,
    }
}

/// Sorts the activities of a detour by time, and finds which of them interrupted which.
///
/// Replays the detour: time between two starts is taken off the innermost activity with self time left, which ends when it has none. The next one to
/// start interrupts all that have not ended. Remainders are not nested.
pub(crate) fn nest(entries: &mut [TimelineEntry]) {
    entries.sort_by_key(|entry| (entry.start, urgency(entry.kind)));
    let mut open: Vec<(u8, i64)> = Vec::new();
    let mut now = Nanos::ZERO;
    for entry in entries {
        let mut elapsed = entry.start.get().saturating_sub(now.get());
        now = entry.start;
        while let Some((_, left)) = open.last_mut() {
            if *left > elapsed {
                *left -= elapsed;
                break;
            }
            elapsed -= *left;
            open.pop();
        }
        if entry.kind.is_rest() {
            continue;
        }
        // A thread takes over instead of interrupting; what looks open was switched away from, or ends this instant.
        entry.depth = open.iter().filter(|(below, _)| *below < urgency(entry.kind)).count();
        open.push((urgency(entry.kind), entry.self_time.get()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(start: i64, self_time: i64, kind: Kind) -> TimelineEntry {
        let (start, self_time) = (Nanos::new(start), Nanos::new(self_time));
        TimelineEntry { start, self_time, kind, source: String::new(), detail: String::new(), depth: 0 }
    }

    #[test]
    fn what_interrupts_is_nested_in_what_it_interrupts() {
        // A softirq from 100 to 1,000, in it an irq from 200 to 500, in that an nmi from 300 to 350; then an irq alone.
        let mut entries = vec![
            entry(2_000, 100, Kind::Irq),
            entry(300, 50, Kind::Nmi),
            entry(100, 600, Kind::Softirq),
            entry(0, 250, Kind::Edge),
            entry(200, 250, Kind::Irq),
            entry(1_000, 10, Kind::Irq),
        ];
        nest(&mut entries);
        let depths: Vec<(i64, usize)> = entries.iter().map(|entry| (entry.start.get(), entry.depth)).collect();
        assert_eq!(depths, [(0, 0), (100, 0), (200, 1), (300, 2), (1_000, 0), (2_000, 0)]);
    }

    #[test]
    fn a_thread_that_takes_over_is_beside_the_one_before() {
        let mut entries = vec![entry(0, 500, Kind::Task), entry(100, 50, Kind::Kthread), entry(120, 10, Kind::Irq)];
        nest(&mut entries);
        assert_eq!(entries.iter().map(|entry| entry.depth).collect::<Vec<_>>(), [0, 0, 2]);
    }
}
