//! Threads that were started while others were moved away.
//!
//! A thread inherits the CPUs of its parent, so it stays where its parent had been moved unless it gets the CPUs that the parent had before. A thread
//! counts as having inherited a moved affinity under three conditions: it started after the move; it may run on exactly the CPUs of moved threads;
//! and so may its parent, which was moved or has itself inherited. A thread whose parent runs elsewhere was put there on purpose, and stays. So does
//! one with traces of a program that sets affinities (`taskset`), and its children. The kernel does not record who set a thread's affinity: a thread
//! that chose the same CPUs itself, and has no such traces, counts as having inherited them. That is why these threads are named in the output.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use becalm_linux::procfs::launch::launcher;
use becalm_linux::procfs::placement::Placed;
use becalm_units::CpuList;

use crate::Knob;
use crate::bystanders::ThreadKey;
use crate::journal::State;

/// Threads started meanwhile that may run on exactly the CPUs of moved ones.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Heirs {
    /// Children of moved threads, which got the CPUs that those had before.
    pub widened: Vec<Heir>,
    /// Threads left as they are, by name and number: their CPUs were set on purpose, or may have been, or were to be kept.
    pub left: Vec<String>,
    /// The online CPUs, for widening those left with `taskset`.
    pub online: CpuList,
}

/// A thread that inherited the CPUs of a moved one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Heir {
    /// The thread ID.
    pub tid: i32,
    /// Its name and number, `make (4711)`.
    pub name: String,
    /// The CPUs that the moved thread had before.
    pub cpus: CpuList,
}

/// The search for these threads, in several passes: until they are put back, moved threads go on starting others.
pub(crate) struct Search<'a> {
    state: &'a State,
    /// The directory that contains /proc.
    root: &'a Path,
    /// The moved threads, with their moves.
    moved: BTreeMap<ThreadKey, Move>,
    /// The threads that inherited, with the inherited moves.
    heirs: BTreeMap<ThreadKey, Move>,
    /// The threads judged by earlier passes.
    seen: BTreeSet<ThreadKey>,
}

/// The CPUs of a thread after and before a move.
#[derive(Clone)]
struct Move {
    to: CpuList,
    from: CpuList,
}

impl<'a> Search<'a> {
    pub(crate) fn new(root: &'a Path, state: &'a State, online: &CpuList) -> Self {
        Self { root, state, moved: moved(state, online), heirs: BTreeMap::new(), seen: BTreeSet::new() }
    }

    /// Searches the machine's threads, as they were before anything was put back.
    pub(crate) fn find_first(&mut self, tasks: &[Placed]) -> Heirs {
        self.look(tasks, |placed, maker| maker.cpus == placed.cpus)
    }

    /// Searches for threads started after an earlier pass. Their parents may have been put back since, so the parents' present CPUs do not count.
    pub(crate) fn find_later(&mut self, tasks: &[Placed]) -> Heirs {
        self.look(tasks, |_, _| true)
    }

    fn look(&mut self, tasks: &[Placed], agrees: impl Fn(&Placed, &Placed) -> bool) -> Heirs {
        let mut found = Heirs::default();
        let by_number: BTreeMap<i32, &Placed> = tasks.iter().map(|placed| (placed.task.pid, placed)).collect();
        // A parent is older than its children. Of threads started in the same tick, the parent usually has the lower number.
        let mut late: Vec<&Placed> = tasks.iter().filter(|placed| self.is_late(placed)).collect();
        late.sort_by_key(|placed| (placed.start_ticks, placed.task.pid));
        for placed in late {
            let is_new = self.seen.insert(ThreadKey::new(placed));
            if !is_new || !self.moved.values().any(|moved| moved.to == placed.cpus) {
                continue;
            }
            let name = format!("{} ({})", placed.task.comm, placed.task.pid);
            let inherited = maker(placed, &by_number)
                .filter(|maker| agrees(placed, maker))
                .and_then(|maker| {
                    self.moved.get(&ThreadKey::new(maker)).or_else(|| self.heirs.get(&ThreadKey::new(maker)))
                })
                .filter(|inherited| inherited.to == placed.cpus)
                .filter(|_| launcher(self.root, placed.task.tgid, placed.ppid).is_none())
                .cloned();
            if let Some(inherited) = inherited {
                found.widened.push(Heir { tid: placed.task.pid, name, cpus: inherited.from.clone() });
                self.heirs.insert(ThreadKey::new(placed), inherited);
            } else {
                found.left.push(name);
            }
        }
        found
    }

    fn is_late(&self, placed: &Placed) -> bool {
        let late = placed.start_ticks >= self.state.begin_ticks && !placed.bound && !placed.task.kthread;
        late && !self.moved.contains_key(&ThreadKey::new(placed))
    }
}

/// The moved threads; their previous CPUs without the offline ones.
fn moved(state: &State, online: &CpuList) -> BTreeMap<ThreadKey, Move> {
    let moved = state.steps.iter().filter_map(|step| {
        let Knob::Affinity { tid, start_ticks, .. } = step.change.knob else { return None };
        let cpus = |text: &Option<String>| text.as_ref()?.parse::<CpuList>().ok();
        let (from, to) = (cpus(&step.original)?, cpus(&step.done)?);
        Some((ThreadKey { tid, start_ticks }, Move { to, from: from.intersection(online) }))
    });
    moved.collect()
}

/// The parent of a thread as far as /proc shows: the first thread of its process; for that one, the first thread of the parent process.
fn maker<'a>(placed: &Placed, by_number: &BTreeMap<i32, &'a Placed>) -> Option<&'a Placed> {
    let is_first = placed.task.pid == placed.task.tgid;
    by_number.get(if is_first { &placed.ppid } else { &placed.task.tgid }).copied()
}
