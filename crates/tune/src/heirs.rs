//! Threads that were started while others were moved away.
//!
//! A thread inherits the CPUs of the one that starts it, so that it stays where its maker had been moved to unless it is given
//! what that had before. Three things tell an heir: it began after the moving; it may run on exactly the CPUs of moved threads;
//! and so may its maker, which was moved or is an heir itself. A thread whose maker runs elsewhere was put there on purpose,
//! and stays. One that a moved thread started and that was then pinned to just the same CPUs cannot be told from an heir by
//! anything that the kernel shows; that is why heirs are named.

use std::collections::{BTreeMap, BTreeSet};

use becalm_linux::procfs::placement::Placed;
use becalm_units::CpuList;

use crate::Knob;
use crate::journal::State;

/// What became of threads that were started meanwhile and may run on exactly the CPUs of moved ones.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Heirs {
    /// Those that were started by moved threads, and were given the CPUs that those had.
    pub widened: Vec<Heir>,
    /// Those that were left where they are, by name and number: others put them there, or wanted them kept.
    pub left: Vec<String>,
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
    /// The CPUs to which threads were moved, with those that they had.
    moves: Vec<(CpuList, CpuList)>,
    moved: BTreeSet<Thread>,
    /// The moved threads and their heirs.
    known: BTreeSet<Thread>,
    /// What earlier looks have judged.
    seen: BTreeSet<Thread>,
}

impl<'a> Search<'a> {
    pub(crate) fn of(state: &'a State, online: &CpuList) -> Self {
        let (moved, moves) = moved(state, online);
        Self { state, moves, known: moved.clone(), moved, seen: BTreeSet::new() }
    }

    /// Finds the heirs among the threads of the machine, which are as they were before anything was put back.
    pub(crate) fn before(&mut self, tasks: &[Placed]) -> Heirs {
        self.look(tasks, |placed, maker| maker.cpus == placed.cpus)
    }

    /// Finds heirs that an earlier look has not seen, as they began after it. Their makers may have been put back since, so that where
    /// these may run now tells nothing.
    pub(crate) fn after(&mut self, tasks: &[Placed]) -> Vec<Heir> {
        self.look(tasks, |_, _| true).widened
    }

    fn look(&mut self, tasks: &[Placed], agrees: impl Fn(&Placed, &Placed) -> bool) -> Heirs {
        let mut heirs = Heirs::default();
        if self.moves.is_empty() {
            return heirs;
        }
        let by_number: BTreeMap<i32, &Placed> = tasks.iter().map(|placed| (placed.task.pid, placed)).collect();
        // A maker is older than what it makes. Of threads that began in one tick the lower number is mostly the maker.
        let mut late: Vec<&Placed> = tasks.iter().filter(|placed| is_late(placed, self.state, &self.moved)).collect();
        late.sort_by_key(|placed| (placed.start_ticks, placed.task.pid));
        for placed in late {
            if !self.seen.insert((placed.task.pid, placed.start_ticks)) {
                continue;
            }
            let mut before = self.moves.iter().filter(|(to, _)| *to == placed.cpus);
            // Where threads with different CPUs were moved to the same ones, nobody knows whose heir it is.
            let (Some((_, wide)), None) = (before.next(), before.next()) else { continue };
            let name = format!("{} ({})", placed.task.comm, placed.task.pid);
            let is_heir = maker(placed, &by_number)
                .is_some_and(|maker| agrees(placed, maker) && self.known.contains(&(maker.task.pid, maker.start_ticks)));
            if is_heir {
                self.known.insert((placed.task.pid, placed.start_ticks));
                heirs.widened.push(Heir { tid: placed.task.pid, name, cpus: wide.clone() });
            } else {
                heirs.left.push(name);
            }
        }
        heirs
    }
}

/// A thread, by its number and its start.
type Thread = (i32, u64);

/// The threads that were moved; and the CPUs to which threads were moved, with those that they had.
fn moved(state: &State, online: &CpuList) -> (BTreeSet<Thread>, Vec<(CpuList, CpuList)>) {
    let mut threads = BTreeSet::new();
    let mut moves: Vec<(CpuList, CpuList)> = Vec::new();
    for step in &state.steps {
        let Knob::Affinity { tid, start_ticks, .. } = step.change.knob else { continue };
        threads.insert((tid, start_ticks));
        let cpus = |text: &Option<String>| text.as_ref()?.parse::<CpuList>().ok();
        if let (Some(from), Some(to)) = (cpus(&step.original), cpus(&step.done)) {
            let pair = (to, from.intersection(online));
            if !moves.contains(&pair) {
                moves.push(pair);
            }
        }
    }
    (threads, moves)
}

fn is_late(placed: &Placed, state: &State, moved: &BTreeSet<Thread>) -> bool {
    let late = placed.start_ticks >= state.begin_ticks && !placed.bound && !placed.task.kthread;
    late && !moved.contains(&(placed.task.pid, placed.start_ticks))
}

/// Who started a thread, as far as /proc tells: the first thread of its process, and of that the parent process's first.
fn maker<'a>(placed: &Placed, by_number: &BTreeMap<i32, &'a Placed>) -> Option<&'a Placed> {
    let is_first = placed.task.pid == placed.task.tgid;
    by_number.get(if is_first { &placed.ppid } else { &placed.task.tgid }).copied()
}
