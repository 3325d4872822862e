//! becalm's processes bound to a CPU: forked, prepared in their place, and released together. Between them, the kernel switches address spaces, as
//! between programs but not between threads.

use std::io;
use std::sync::atomic::AtomicU64;

use super::Thread;
use crate::memory::{LockedWords, MemoryError};
use crate::probe::{BALL, Child, END, pipe, put, take};
use crate::sched::SchedError;

/// The phases of a process.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Turn {
    /// Prepare itself, in its place.
    Prepare,
    /// Do its actual work: all were released.
    Run,
}

/// Memory that all processes and their parent share.
#[derive(Clone, Copy, Debug)]
pub struct ProcessWords<'a> {
    /// The word that all share.
    pub common: &'a AtomicU64,
    /// The words of this process.
    pub own: &'a [AtomicU64],
}

/// Processes that cannot be started.
#[derive(Debug, thiserror::Error)]
pub enum ProcessesError {
    /// A process cannot run in its place.
    #[error(transparent)]
    Sched(#[from] SchedError),
    /// There is no memory to share with them.
    #[error(transparent)]
    Memory(#[from] MemoryError),
    /// A system call failed, or a process ended early.
    #[error("cannot run processes on one CPU: {0}")]
    System(#[from] io::Error),
}

/// Processes that have prepared themselves and sleep until they are released.
///
/// They are killed when this is dropped, or when the thread that forked them ends for whatever reason.
#[derive(Debug)]
pub struct Processes {
    children: Vec<Child>,
    memory: LockedWords,
    words: usize,
    go: std::os::fd::OwnedFd,
}

impl Processes {
    /// Forks `count` processes, and waits until all have prepared themselves in their place. Each has `words` words of its own, initially 0. `body`
    /// runs in each process with a copy of its captured values, first to prepare and then to run.
    ///
    /// In a process with several threads, `body` must not use anything that another thread could hold at the fork, such as a lock. It must not panic.
    /// Fails if they cannot be forked, or cannot run there.
    pub fn prepare(
        place: &Thread,
        count: u32,
        words: usize,
        mut body: impl FnMut(Turn, ProcessWords<'_>),
    ) -> Result<Self, ProcessesError> {
        // A thread finds out why a process cannot run there, because it can report it; and its system calls are known to work then.
        place.clone().run(|| ())?;
        let memory = LockedWords::new(1 + count as usize * words)?;
        let (started, go) = pipe()?;
        let (ready, prepared) = pipe()?;
        let mut children = Vec::with_capacity(count as usize);
        for number in 0..count as usize {
            let own = &memory[1 + number * words..1 + (number + 1) * words];
            let shared = ProcessWords { common: &memory[0], own };
            children.push(Child::fork(|| {
                if place.settle().is_err() {
                    put(&prepared, END);
                    return;
                }
                body(Turn::Prepare, shared);
                if put(&prepared, BALL) && take(&started) {
                    body(Turn::Run, shared);
                }
            })?);
        }
        drop(prepared);
        let all = (0..count).all(|_| take(&ready));
        if !all {
            return Err(SchedError::Ended(place.name.clone()).into());
        }
        Ok(Self { children, memory, words, go })
    }

    /// The word that all of them share.
    pub fn common(&self) -> &AtomicU64 {
        &self.memory[0]
    }

    /// The words of one of them, numbered from 0.
    pub fn words(&self, number: usize) -> &[AtomicU64] {
        &self.memory[1 + number * self.words..1 + (number + 1) * self.words]
    }

    /// How many there are.
    pub const fn len(&self) -> usize {
        self.children.len()
    }

    /// Whether there are none.
    pub const fn is_empty(&self) -> bool {
        self.children.is_empty()
    }

    /// Releases all of them. Fails if one of them has ended.
    pub fn start(&self) -> Result<(), ProcessesError> {
        let all = self.children.iter().all(|_| put(&self.go, BALL));
        if all { Ok(()) } else { Err(io::Error::last_os_error().into()) }
    }

    /// Waits until all have run and ended. Fails if one did not end by itself.
    pub fn join(&mut self) -> Result<(), ProcessesError> {
        for child in &mut self.children {
            child.wait()?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering;

    use super::*;
    use crate::sched::{allowed_cpus, current_cpu};
    use becalm_units::CpuId;

    fn place(cpu: CpuId) -> Thread {
        Thread { name: "becalm/test".to_owned(), cpu, policy: None }
    }

    fn last_cpu() -> CpuId {
        allowed_cpus().unwrap().iter().last().unwrap()
    }

    #[test]
    fn processes_share_words_and_nothing_else() {
        // Concurrent tests may move this thread meanwhile, and another CPU is its last one then.
        let (cpu, mut private) = (last_cpu(), 1_u64);
        let mut processes = Processes::prepare(&place(cpu), 3, 2, |turn, shared| match turn {
            Turn::Prepare => private += 10,
            Turn::Run => {
                shared.common.fetch_add(1, Ordering::Relaxed);
                shared.own[0].store(private, Ordering::Relaxed);
                shared.own[1].store(current_cpu().map_or(u64::MAX, |cpu| cpu.get().into()), Ordering::Relaxed);
            }
        })
        .unwrap();
        assert_eq!(
            (processes.len(), processes.common().load(Ordering::Relaxed)),
            (3, 0),
            "none runs before it is let go"
        );
        processes.start().unwrap();
        processes.join().unwrap();
        assert_eq!(processes.common().load(Ordering::Relaxed), 3);
        for number in 0..3 {
            // Each prepared its own copy.
            assert_eq!(processes.words(number)[0].load(Ordering::Relaxed), 11);
            assert_eq!(processes.words(number)[1].load(Ordering::Relaxed), u64::from(cpu.get()));
        }
        assert_eq!(private, 1);
    }

    #[test]
    fn a_cpu_that_does_not_exist_is_an_error() {
        let error = Processes::prepare(&place(CpuId::new(4_000)), 2, 0, |_, _| {}).unwrap_err();
        assert!(matches!(error, ProcessesError::Sched(_)) && error.to_string().contains("4000"), "{error}");
    }

    #[test]
    fn processes_that_are_dropped_end() {
        let processes = Processes::prepare(&place(last_cpu()), 2, 1, |turn, shared| {
            if turn == Turn::Prepare {
                // SAFETY: takes nothing.
                shared.own[0].store(unsafe { libc::getpid() } as u64, Ordering::Relaxed);
            }
        })
        .unwrap();
        let pids: Vec<u64> = (0..2).map(|number| processes.words(number)[0].load(Ordering::Relaxed)).collect();
        assert!(pids.iter().all(|pid| std::path::Path::new(&format!("/proc/{pid}")).exists()));
        drop(processes);
        assert!(pids.iter().all(|pid| !std::path::Path::new(&format!("/proc/{pid}")).exists()));
    }
}
