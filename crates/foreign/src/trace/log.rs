//! The threads of a trace besides their events: when each is first mentioned, its names, and its process.

use std::collections::{BTreeMap, HashMap, HashSet};

use becalm_model::{Event, Happening, Label, Life, Pid};
use becalm_units::{CpuId, Nanos};

/// The threads of a trace.
#[derive(Clone, Debug, Default)]
pub struct ThreadLog {
    threads: BTreeMap<Pid, Mentioned>,
    /// Names that events give, whenever they change in the trace of a CPU.
    names: Vec<(Nanos, Pid, Label)>,
    latest: HashMap<(CpuId, Pid), Label>,
    processes: HashMap<Pid, Pid>,
    end: Nanos,
}

/// When a thread is mentioned.
#[derive(Clone, Copy, Debug)]
struct Mentioned {
    first: Nanos,
    /// When it was created, or woken for the first time.
    born: Option<Nanos>,
    /// Whether an event shows its creation.
    is_created: bool,
}

/// How a thread comes into the trace.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Entrance {
    /// It was there before.
    Before,
    /// It started at this instant, and no event shows its creator.
    Started(Nanos),
    /// An event shows its creation.
    Created,
}

impl ThreadLog {
    /// Takes an event of a CPU.
    pub fn take(&mut self, cpu: CpuId, event: &Event) {
        self.end = self.end.max(event.time);
        if matches!(event.what, Happening::Lost { .. }) {
            // Threads may have ended, and their numbers may be used again.
            self.latest.retain(|(known, _), _| *known != cpu);
            return;
        }
        self.mention(event.thread, event.time);
        match event.what {
            Happening::Switch { prev, next, .. } => {
                [prev, next].into_iter().for_each(|pid| self.mention(pid, event.time))
            }
            Happening::Waking { thread } => self.mention(thread, event.time),
            Happening::Woken { thread, is_new, .. } => {
                self.mention(thread, event.time);
                if is_new {
                    self.bear(thread, event.time, false);
                }
            }
            Happening::Life(Life::Created { thread, .. }) => {
                self.mention(thread, event.time);
                self.bear(thread, event.time, true);
            }
            Happening::Life(Life::Renamed { thread, .. } | Life::Moved { thread, .. }) => {
                self.mention(thread, event.time);
            }
            _ => {}
        }
    }

    fn mention(&mut self, pid: Pid, at: Nanos) {
        if pid.0 > 0 {
            let thread = self.threads.entry(pid).or_insert(Mentioned { first: at, born: None, is_created: false });
            thread.first = thread.first.min(at);
        }
    }

    fn bear(&mut self, pid: Pid, at: Nanos, is_created: bool) {
        if let Some(thread) = self.threads.get_mut(&pid) {
            thread.born = Some(thread.born.map_or(at, |born| born.min(at)));
            thread.is_created |= is_created;
        }
    }

    /// An event of a CPU gives this name.
    pub fn name(&mut self, cpu: CpuId, at: Nanos, pid: Pid, name: Label) {
        if pid.0 > 0 && self.latest.insert((cpu, pid), name) != Some(name) {
            self.names.push((at, pid, name));
        }
    }

    /// A thread belongs to this process.
    pub fn set_process(&mut self, pid: Pid, process: Pid) {
        if pid.0 > 0 && process.0 > 0 {
            self.processes.insert(pid, process);
        }
    }

    /// Whether the trace names processes.
    pub fn has_processes(&self) -> bool {
        !self.processes.is_empty()
    }

    /// The process of a thread, if the trace names it.
    pub(super) fn process(&self, pid: Pid) -> Option<Pid> {
        self.processes.get(&pid).copied()
    }

    /// Enters into a creation whether the new thread is one of its creator's process, if the trace names the process.
    pub fn settle(&self, event: &mut Event) {
        if let Happening::Life(Life::Created { thread, in_process, .. }) = &mut event.what
            && let Some(process) = self.process(*thread)
        {
            *in_process = process != *thread;
        }
    }

    /// The threads, and how each comes into the trace.
    pub fn threads(&self) -> impl Iterator<Item = (Pid, Entrance)> {
        self.threads.iter().map(|(pid, thread)| {
            let entrance = match thread.born {
                Some(born) if born <= thread.first && thread.is_created => Entrance::Created,
                Some(born) if born <= thread.first => Entrance::Started(born),
                _ => Entrance::Before,
            };
            (*pid, entrance)
        })
    }

    /// The time of the last event.
    pub const fn end(&self) -> Nanos {
        self.end
    }

    /// The names that events give, in order of time.
    pub fn names(&self) -> Vec<(Nanos, Pid, Label)> {
        let mut names = self.names.clone();
        names.sort_by_key(|(at, ..)| *at);
        names
    }

    /// Whether a thread or a process of the trace has this number.
    pub fn has_number(&self, number: i32) -> bool {
        self.threads.keys().any(|pid| pid.0 == number || self.process(*pid) == Some(Pid(number)))
    }

    /// The labels of all names.
    pub fn labels(&self) -> HashSet<Label> {
        self.names.iter().map(|(_, _, name)| *name).collect()
    }
}
