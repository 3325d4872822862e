//! The contents of the drawn detours: the source that took most of each, and every activity of the longest.

use std::collections::{BTreeMap, HashMap};

use becalm_bundle::ActivityBatch;
use becalm_model::Kind;
use becalm_units::{CpuId, Nanos};

use super::PlacedDetour;
use crate::summary::{DetourId, Timeline, TimelineEntry, nest, runs};

/// Maximum number of activities kept in total.
pub const ENTRIES: usize = 50_000;

/// Maximum number of activities kept per detour: those that took most.
pub const PER_DETOUR: usize = 1_000;

/// A detour with its kept activities.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Embedded {
    /// The detour with its kept activities, in order of time.
    pub timeline: Timeline,
    /// The number of activities that were not kept.
    pub more: u64,
    /// The total time of those.
    pub more_time: Nanos,
}

/// Looks into detours: reads the activities of their nodes, batch after batch.
///
/// Keeps the activities of the longest detours, one after another until the budget is spent, in whatever order they arrive. The first
/// detour whose activities do not fit ends the list, so "the longest N" is true.
#[derive(Debug)]
pub(super) struct Lookup<'a> {
    node: &'a str,
    detours: &'a [PlacedDetour],
    /// For each CPU of the node, the detours by number, with their index in the list.
    wanted: HashMap<i32, Vec<(u64, usize)>>,
    budget: usize,
    /// The detour whose activities are being read; those of one detour are consecutive.
    current: Option<(usize, Vec<TimelineEntry>)>,
    /// The kept detours, by index in the list.
    kept: BTreeMap<usize, Embedded>,
    held: usize,
    /// From this index in the list on, nothing is kept.
    end: usize,
    /// For each detour of the list, the number of the source that took most of it.
    pub(super) owners: Vec<Option<u32>>,
    names: Vec<(Kind, String)>,
}

impl<'a> Lookup<'a> {
    /// Looks for detours, sorted as [`PlacedDetour`].
    pub(super) fn new(detours: &'a [PlacedDetour], budget: usize) -> Self {
        Self {
            node: "",
            detours,
            wanted: HashMap::new(),
            budget,
            current: None,
            kept: BTreeMap::new(),
            held: 0,
            end: detours.len(),
            owners: vec![None; detours.len()],
            names: Vec::new(),
        }
    }

    /// The activities that follow are this node's.
    pub(super) fn enter(&mut self, number: u32, node: &'a str) {
        self.flush();
        self.node = node;
        self.wanted.clear();
        for (at, place) in self.detours.iter().enumerate().filter(|(_, place)| place.node == number) {
            self.wanted.entry(place.cpu as i32).or_default().push((place.number, at));
        }
        self.wanted.values_mut().for_each(|numbers| numbers.sort_unstable());
    }

    /// Keeps a batch's activities of the wanted detours.
    pub(super) fn take(&mut self, batch: &ActivityBatch) {
        for range in runs(batch.cpus()) {
            let Some(wanted) = self.wanted.get(&batch.cpus()[range.start]) else { continue };
            // Within a CPU the numbers never fall.
            let detours = &batch.detours()[range.clone()];
            let (Some(first), Some(last)) = (detours.first(), detours.last()) else { continue };
            let from = wanted.partition_point(|(number, _)| *number < *first as u64);
            let to = wanted.partition_point(|(number, _)| *number <= *last as u64);
            let found: Vec<(u64, usize)> = wanted[from..to].to_vec();
            for (number, at) in found {
                let begin = detours.partition_point(|detour| (*detour as u64) < number);
                let end = detours.partition_point(|detour| *detour as u64 <= number);
                if begin == end {
                    continue;
                }
                if self.current.as_ref().is_none_or(|(current, _)| *current != at) {
                    self.flush();
                    self.current = Some((at, Vec::new()));
                }
                let Some((_, entries)) = &mut self.current else { continue };
                entries.extend((range.start + begin..range.start + end).map(|row| TimelineEntry::from_row(batch, row)));
            }
        }
    }

    /// The current detour is complete.
    fn flush(&mut self) {
        let Some((at, mut entries)) = self.current.take() else { return };
        self.owners[at] = owner(&entries).map(|(kind, source)| self.number(kind, &source));
        if at >= self.end {
            return;
        }
        nest(&mut entries);
        let LargestEntries { entries, more, more_time } = largest(entries, PER_DETOUR);
        let place = &self.detours[at];
        let id = DetourId { node: self.node.to_owned(), cpu: CpuId::new(place.cpu), number: place.number };
        let (start, duration) = (Nanos::new(place.start), Nanos::new(place.duration));
        self.held += entries.len();
        let timeline = Timeline { id, start, duration, incomplete: place.incomplete, entries };
        self.kept.insert(at, Embedded { timeline, more, more_time });
        while self.held > self.budget
            && let Some((last, embedded)) = self.kept.pop_last()
        {
            self.held -= embedded.timeline.entries.len();
            self.end = last;
        }
    }

    fn number(&mut self, kind: Kind, source: &str) -> u32 {
        let found = self.names.iter().position(|name| name.0 == kind && name.1 == source);
        let number = found.unwrap_or_else(|| {
            self.names.push((kind, source.to_owned()));
            self.names.len() - 1
        });
        number as u32
    }

    /// Returns the result, once all batches were read.
    pub(super) fn finish(mut self) -> DetourSources {
        self.flush();
        DetourSources { owners: self.owners, names: self.names, embedded: self.kept }
    }
}

/// The contents of the detours of a list.
pub(super) struct DetourSources {
    /// The number of the source that owns each detour.
    pub(super) owners: Vec<Option<u32>>,
    /// The sources by number.
    pub(super) names: Vec<(Kind, String)>,
    /// The kept detours, by index in the list.
    pub(super) embedded: BTreeMap<usize, Embedded>,
}

/// The source that took most of a detour. Entry and exit overhead is caused by the activity entered, and owns a detour only if nothing else was seen
/// in it. On ties the first one.
fn owner(entries: &[TimelineEntry]) -> Option<(Kind, String)> {
    let named = entries.iter().any(|entry| entry.kind != Kind::Edge);
    let mut sums: Vec<(Kind, &str, i64)> = Vec::new();
    for entry in entries.iter().filter(|entry| !named || entry.kind != Kind::Edge) {
        let time = entry.self_time.get();
        match sums.iter_mut().find(|sum| (sum.0, sum.1) == (entry.kind, entry.source.as_str())) {
            Some(sum) => sum.2 = sum.2.saturating_add(time),
            None => sums.push((entry.kind, &entry.source, time)),
        }
    }
    let most = sums.iter().map(|sum| sum.2).max()?;
    sums.into_iter().find(|sum| sum.2 == most).map(|(kind, source, _)| (kind, source.to_owned()))
}

/// Entries in order of time, and the omitted ones.
struct LargestEntries {
    entries: Vec<TimelineEntry>,
    more: u64,
    more_time: Nanos,
}

/// The `count` entries that took most.
fn largest(entries: Vec<TimelineEntry>, count: usize) -> LargestEntries {
    if entries.len() <= count {
        return LargestEntries { entries, more: 0, more_time: Nanos::ZERO };
    }
    let mut order: Vec<usize> = (0..entries.len()).collect();
    order.sort_by_key(|at| std::cmp::Reverse(entries[*at].self_time));
    let mut kept = vec![false; entries.len()];
    order[..count].iter().for_each(|at| kept[*at] = true);
    let left_out = order[count..].iter().map(|at| entries[*at].self_time.get());
    let more_time = Nanos::new(left_out.fold(0_i64, i64::saturating_add));
    let more = (entries.len() - count) as u64;
    let entries = entries.into_iter().zip(kept).filter(|(_, kept)| *kept).map(|(entry, _)| entry).collect();
    LargestEntries { entries, more, more_time }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(start: i64, self_time: i64, kind: Kind, source: &str) -> TimelineEntry {
        let (start, self_time) = (Nanos::new(start), Nanos::new(self_time));
        TimelineEntry { start, self_time, kind, source: source.to_owned(), detail: String::new(), depth: 0 }
    }

    #[test]
    fn a_detour_belongs_to_what_took_most_of_it() {
        let tick = entry(1, 50, Kind::Irq, "local_timer");
        let edge = entry(0, 90, Kind::Edge, "edge");
        let shorter = [entry(2, 30, Kind::Softirq, "rcu"), entry(3, 30, Kind::Softirq, "rcu")];
        assert_eq!(owner(&[]), None);
        assert_eq!(owner(std::slice::from_ref(&edge)), Some((Kind::Edge, "edge".to_owned())));
        assert_eq!(owner(&[edge.clone(), tick.clone()]), Some((Kind::Irq, "local_timer".to_owned())));
        let all = [vec![edge, tick], shorter.to_vec()].concat();
        assert_eq!(owner(&all), Some((Kind::Softirq, "rcu".to_owned())));
    }

    #[test]
    fn the_activities_that_took_most_are_kept_in_order() {
        let entries: Vec<TimelineEntry> = (0..10).map(|at| entry(at, (at * 7) % 10, Kind::Irq, "x")).collect();
        let LargestEntries { entries: kept, more, more_time: time } = largest(entries, 3);
        let kept: Vec<(i64, i64)> = kept.iter().map(|entry| (entry.start.get(), entry.self_time.get())).collect();
        assert_eq!(kept, [(1, 7), (4, 8), (7, 9)]);
        assert_eq!((more, time), (7, Nanos::new(21)));
    }

    #[test]
    fn the_longest_are_kept_whatever_the_order() {
        let place = |number: u64| PlacedDetour {
            node: 0,
            cpu: 0,
            number,
            start: 0,
            duration: 100 - number as i64,
            incomplete: false,
        };
        let detours: Vec<PlacedDetour> = (0..5).map(place).collect();
        // Detour 1 has three activities, the others two: a budget of 5 holds 0 and 1.
        for order in [[0, 1, 2, 3, 4], [4, 3, 2, 1, 0], [2, 4, 1, 3, 0]] {
            let mut lookup = Lookup::new(&detours, 5);
            lookup.enter(0, "node");
            for at in order {
                let count = if at == 1 { 3 } else { 2 };
                lookup.flush();
                lookup.current = Some((at, vec![entry(0, 5, Kind::Irq, "x"); count]));
            }
            let DetourSources { owners, names, embedded: kept } = lookup.finish();
            assert_eq!(kept.keys().copied().collect::<Vec<_>>(), [0, 1], "{order:?}");
            assert_eq!((owners, names), (vec![Some(0); 5], vec![(Kind::Irq, "x".to_owned())]));
        }
    }
}
