//! The noise that observed threads met, for jobs whose ranks draw threads.
//!
//! A rank computes all the time between two collectives, and a thread does not: it sleeps, waits for others, and is woken. So the axis of a thread's
//! noise is the time during which it could make progress, that is, it ran or was queued; the rest of its life is cut out. Each thread is drawn by
//! itself, because threads that sleep at different times are not at the same place of their axes at the same time.

use std::path::Path;

use becalm_account::SourceIds;
use becalm_bundle::{ObservedHead, ObservedTables, ThreadRow, node_document};
use becalm_model::observed::{LifePart, OwnedActivity, Owner};
use becalm_model::{Labels, warning};
use becalm_scale::books::BookEntry;
use becalm_units::Nanos;

use super::{CpuDetours, NodeDetours, NoiseError, NoiseInput, Window};

/// Threads that could make progress for less than this share of the time of the busiest one are no ranks.
const BUSY: i64 = 2;

/// A stretch of a thread's life: it ran or was queued.
#[derive(Clone, Copy, Debug)]
struct AwakeStretch {
    start: Nanos,
    end: Nanos,
    /// The length of all stretches before.
    before: Nanos,
}

/// A thread as read.
#[derive(Clone, Debug, Default)]
struct ThreadNoise {
    awake: Vec<AwakeStretch>,
    /// The length of all stretches.
    length: Nanos,
    /// The start and the duration of each detour, on the axis of these stretches.
    detours: Vec<(Nanos, Nanos)>,
    entries: Vec<BookEntry>,
}

impl ThreadNoise {
    /// Takes the next stretch.
    fn stay(&mut self, start: Nanos, duration: Nanos) {
        let end = start.saturating_add(duration);
        match self.awake.last_mut() {
            Some(last) if last.end == start => last.end = end,
            _ => self.awake.push(AwakeStretch { start, end, before: self.length }),
        }
        self.length = self.length.saturating_add(duration);
    }

    /// The place of an instant on the axis; instants between two stretches are at the end of the first.
    fn place(&self, at: Nanos) -> Nanos {
        let after = self.awake.partition_point(|stretch| stretch.start <= at);
        let stretch = after.checked_sub(1).map(|index| self.awake[index]);
        stretch.map_or(Nanos::ZERO, |stretch| stretch.before + (at.min(stretch.end) - stretch.start))
    }

    /// Takes the next detour. The place of the hypervisor's time is not known, so it may overlap what came before; it then follows that.
    fn detour(&mut self, start: Nanos, duration: Nanos) {
        let last = self.detours.last().map_or(Nanos::ZERO, |(start, duration)| *start + *duration);
        self.detours.push((self.place(start).max(last), duration));
    }
}

impl ThreadNoise {
    /// Takes the next detour with its activities.
    fn lose<'a>(
        &mut self,
        start: Nanos,
        activities: impl Iterator<Item = &'a OwnedActivity>,
        names: &mut SourceIds,
        labels: &Labels,
    ) {
        let (detour, mut duration) = (self.detours.len(), Nanos::ZERO);
        for activity in activities {
            duration += activity.time;
            let source = names.id(activity.kind, labels.text(activity.source)).get();
            self.entries.push(BookEntry { detour, source, root: source, self_time: activity.time });
        }
        self.detour(start, duration);
    }

    /// Whether it could make progress for long enough to be a rank, if the busiest thread could for `longest`.
    fn is_busy(&self, longest: Nanos) -> bool {
        self.length.get() >= longest.get() / BUSY
    }
}

impl NoiseInput {
    /// Reads the noise of the observed threads of a node, or of the only one, with its sources if `books` is set. becalm's own time is subtracted
    /// unless `with_self` is set. Fails if the recording cannot be read, or no thread could have made progress.
    pub fn from_threads(path: &Path, node: Option<&str>, with_self: bool, books: bool) -> Result<Self, NoiseError> {
        let stored = node_document::load::<ObservedHead>(path, node)?;
        let head = stored.doc;
        let tables = ObservedTables::new(&stored.bundle, &head.node, head.rows);
        let mut labels = Labels::new();
        let rows = tables.threads(&mut labels)?;
        let mut threads = vec![ThreadNoise::default(); rows.len()];
        tables.stays(&mut labels, &mut |stay, _| {
            if matches!(stay.part, LifePart::Ran | LifePart::Queued | LifePart::Quota)
                && let Some(thread) = threads.get_mut(stay.thread.0 as usize)
            {
                thread.stay(stay.start, stay.duration);
            }
        })?;
        let mut names = SourceIds::default();
        tables.detours(&mut labels, &mut |detour, activities, labels| {
            if let Some(thread) = threads.get_mut(detour.thread.0 as usize) {
                let counted = activities.iter().filter(|activity| with_self || activity.owner != Owner::Becalm);
                thread.lose(detour.start, counted, &mut names, labels);
            }
        })?;
        let mut warnings = head.warnings;
        let longest = threads.iter().map(|thread| thread.length).max().unwrap_or(Nanos::ZERO);
        if longest == Nanos::ZERO {
            return Err(NoiseError::NoThreads { run: path.to_owned() });
        }
        let chosen = rows.iter().zip(threads).filter(|(row, _)| row.chosen);
        let (busy, idle): (Vec<_>, Vec<_>) = chosen.partition(|(_, thread)| thread.is_busy(longest));
        if !idle.is_empty() {
            warnings.push(warning::threads_left_out(idle.len() as u64, (idle.len() + busy.len()) as u64));
        }
        let nodes = busy.into_iter().map(|(row, thread)| thread_as_node(row, thread, books, &labels)).collect();
        let noise = Self::from_detours(nodes, names, books)?;
        Ok(Self { name: path.display().to_string(), warnings, of_threads: true, ..noise })
    }
}

/// A thread as a node with one CPU: ranks draw it by itself, over its own length.
fn thread_as_node(row: &ThreadRow, thread: ThreadNoise, books: bool, labels: &Labels) -> NodeDetours {
    let ThreadNoise { length, detours, entries, .. } = thread;
    let end = detours.last().map_or(length, |(start, duration)| length.max(*start + *duration));
    NodeDetours {
        node: format!("{} ({})", labels.text(row.name), row.tid),
        window: Window { begin: Nanos::ZERO, length: end },
        cpus: vec![CpuDetours { cpu: 0, detours, entries: if books { entries } else { Vec::new() } }],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Awake from 10 to 30 and from 100 to 150.
    fn thread() -> ThreadNoise {
        let ns = Nanos::new;
        let mut thread = ThreadNoise::default();
        for (start, duration) in [(10, 15), (25, 5), (100, 50)] {
            thread.stay(ns(start), ns(duration));
        }
        thread
    }

    #[test]
    fn sleep_is_cut_out_of_the_axis() {
        let thread = thread();
        assert_eq!((thread.awake.len(), thread.length), (2, Nanos::new(70)));
        for (at, place) in [(0, 0), (10, 0), (29, 19), (30, 20), (60, 20), (100, 20), (140, 60), (150, 70), (900, 70)] {
            assert_eq!(thread.place(Nanos::new(at)), Nanos::new(place), "{at}");
        }
    }

    #[test]
    fn threads_that_sleep_most_of_the_time_are_no_ranks() {
        let thread = thread();
        let longest = |ns| thread.is_busy(Nanos::new(ns));
        assert_eq!([70, 140, 142].map(longest), [true, true, false]);
    }

    #[test]
    fn a_detour_is_as_long_as_its_counted_activities() {
        let (mut thread, mut names, mut labels) = (thread(), SourceIds::default(), Labels::new());
        let row = |source, time| OwnedActivity {
            owner: Owner::Others,
            kind: becalm_model::Kind::Task,
            source,
            thread: None,
            time: Nanos::new(time),
            visits: 1,
        };
        let rows = [row(labels.intern("a"), 3), row(labels.intern("b"), 4)];
        thread.lose(Nanos::new(12), rows.iter(), &mut names, &labels);
        thread.lose(Nanos::new(20), rows[1..].iter(), &mut names, &labels);
        assert_eq!(thread.detours, [(2, 7), (10, 4)].map(|(start, length)| (Nanos::new(start), Nanos::new(length))));
        let entries: Vec<_> = thread.entries.iter().map(|row| (row.detour, row.source, row.self_time.get())).collect();
        assert_eq!(entries, [(0, 0, 3), (0, 1, 4), (1, 1, 4)]);
    }

    #[test]
    fn detours_follow_each_other() {
        let mut thread = thread();
        for (start, duration) in [(20, 5), (100, 10), (105, 10)] {
            thread.detour(Nanos::new(start), Nanos::new(duration));
        }
        let expected = [(10, 5), (20, 10), (30, 10)].map(|(start, duration)| (Nanos::new(start), Nanos::new(duration)));
        assert_eq!(thread.detours, expected);
    }
}
