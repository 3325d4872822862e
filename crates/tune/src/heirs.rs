//! Threads that were started while others were moved away.
//!
//! A thread inherits the CPUs of the one that starts it, so that it stays where its maker had been moved to unless it is given
//! what that had before. Three things tell an heir: it began after the moving; it may run on exactly the CPUs of moved threads;
//! and so may its maker, which was moved or is an heir itself. A thread whose maker runs elsewhere was put there on purpose,
//! and stays. So does one with a trace of a program that chooses CPUs (`taskset`), and what it starts. The kernel does not keep who
//! chose a thread's CPUs: one that chose just the same itself, and has no such trace, is taken for an heir. That is why heirs are
//! named.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use becalm_linux::procfs::launch::launcher;
use becalm_linux::procfs::placement::Placed;
use becalm_units::CpuList;

use crate::Knob;
use crate::bystanders::ThreadKey;
use crate::journal::State;

/// What became of threads that were started meanwhile and may run on exactly the CPUs of moved ones.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Heirs {
    /// Those that were started by moved threads, and were given the CPUs that those had.
    pub widened: Vec<Heir>,
    /// Those that were left where they are, by name and number: others put them there, or may have, or wanted them kept.
    pub left: Vec<String>,
    /// The CPUs that run: with them `taskset` widens those that were left.
    pub online: CpuList,
}

/// A thread that inherited the CPUs of a moved one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Heir {
    /// The kernel's number of the thread.
    pub tid: i32,
    /// Its name and number, `make (4711)`.
    pub name: String,
    /// The CPUs that the moved thread had before.
    pub cpus: CpuList,
}

/// The search for heirs, which takes several looks: while threads are being put back, those that still are where they had been moved
/// to go on starting others.
pub(crate) struct Search<'a> {
    state: &'a State,
    /// Where /proc is.
    root: &'a Path,
    /// The moved threads, with what was done to them.
    moved: BTreeMap<ThreadKey, Move>,
    /// Their heirs, with what was done to the thread that was moved.
    heirs: BTreeMap<ThreadKey, Move>,
    /// What earlier looks have judged.
    seen: BTreeSet<ThreadKey>,
}

/// Where a thread was moved, and the CPUs that it had before.
#[derive(Clone)]
struct Move {
    to: CpuList,
    from: CpuList,
}

impl<'a> Search<'a> {
    pub(crate) fn new(root: &'a Path, state: &'a State, online: &CpuList) -> Self {
        Self { root, state, moved: moved(state, online), heirs: BTreeMap::new(), seen: BTreeSet::new() }
    }

    /// Finds the heirs among the threads of the machine, which are as they were before anything was put back.
    pub(crate) fn find_first(&mut self, tasks: &[Placed]) -> Heirs {
        self.look(tasks, |placed, maker| maker.cpus == placed.cpus)
    }

    /// Finds heirs that an earlier look has not seen, as they began after it. Their makers may have been put back since, so that where
    /// these may run now tells nothing.
    pub(crate) fn find_later(&mut self, tasks: &[Placed]) -> Heirs {
        self.look(tasks, |_, _| true)
    }

    fn look(&mut self, tasks: &[Placed], agrees: impl Fn(&Placed, &Placed) -> bool) -> Heirs {
        let mut found = Heirs::default();
        let by_number: BTreeMap<i32, &Placed> = tasks.iter().map(|placed| (placed.task.pid, placed)).collect();
        // A maker is older than what it makes. Of threads that began in one tick the lower number is mostly the maker.
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

/// The threads that were moved; what they had before without the CPUs that are not online.
fn moved(state: &State, online: &CpuList) -> BTreeMap<ThreadKey, Move> {
    let moved = state.steps.iter().filter_map(|step| {
        let Knob::Affinity { tid, start_ticks, .. } = step.change.knob else { return None };
        let cpus = |text: &Option<String>| text.as_ref()?.parse::<CpuList>().ok();
        let (from, to) = (cpus(&step.original)?, cpus(&step.done)?);
        Some((ThreadKey { tid, start_ticks }, Move { to, from: from.intersection(online) }))
    });
    moved.collect()
}

/// Who started a thread, as far as /proc tells: the first thread of its process, and of that the parent process's first.
fn maker<'a>(placed: &Placed, by_number: &BTreeMap<i32, &'a Placed>) -> Option<&'a Placed> {
    let is_first = placed.task.pid == placed.task.tgid;
    by_number.get(if is_first { &placed.ppid } else { &placed.task.tgid }).copied()
}
