//! Looks at the threads of a machine: their processes, names, groups and states.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use becalm_linux::procfs::task::{Schedstat, TaskStat, command, environment, processes, threads_of};
use becalm_linux::sysfs::cgroup::CpuGroups;
use becalm_units::fault;

/// Environment variables with the rank of a process in an MPI job: Open MPI, PMI (MPICH, Intel MPI), PMIx, Slurm.
const RANK_VARIABLES: [&str; 4] = ["OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK", "SLURM_PROCID"];

/// A thread as it was seen.
#[derive(Clone, Debug)]
pub struct SeenThread {
    /// When, in ticks of the counter.
    pub at: u64,
    /// Number, name, state and CPU.
    pub stat: TaskStat,
    /// The number of its process.
    pub process: i32,
    /// The path of its control group.
    pub group: String,
    /// The command line of its process.
    pub command: String,
    /// Its rank in an MPI job.
    pub rank: Option<u32>,
}

/// The kernel's account of a thread between two instants.
#[derive(Clone, Copy, Debug)]
pub struct SeenAccount {
    /// The thread.
    pub tid: i32,
    /// When reading it started and ended, in ticks of the counter.
    pub read: (u64, u64),
    /// The account.
    pub account: Schedstat,
}

/// The bytes that are kept of a command line. Some have thousands of arguments, and the names of tables are limited.
const LONGEST_COMMAND: usize = 1_000;

/// Looks at the processes of a machine, again and again.
#[derive(Debug)]
pub struct Lookout {
    root: PathBuf,
    /// The control groups that limit CPU time.
    pub groups: CpuGroups,
    known: HashSet<i32>,
}

impl Lookout {
    /// For the machine with its files below `root`.
    pub fn new(root: &Path) -> Self {
        Self { root: root.to_owned(), groups: CpuGroups::find(root), known: HashSet::new() }
    }

    /// Looks at the threads of all processes that were not seen before. Processes that end meanwhile are left out. Fails if the processes cannot be
    /// listed.
    pub fn look(&mut self, now: impl Fn() -> u64) -> fault::Result<Vec<SeenThread>> {
        let mut seen = Vec::new();
        let listed: HashSet<i32> = processes(&self.root)?.into_iter().collect();
        for process in listed.difference(&self.known) {
            self.look_at(*process, &now, &mut seen);
        }
        // The number of one that ended may come back.
        self.known = listed;
        Ok(seen)
    }

    /// Looks at the threads of all processes.
    pub fn look_at_all(&mut self, now: impl Fn() -> u64) -> fault::Result<Vec<SeenThread>> {
        self.known.clear();
        self.look(now)
    }

    fn look_at(&self, process: i32, now: impl Fn() -> u64, seen: &mut Vec<SeenThread>) {
        let mut command = command(&self.root, process);
        command.truncate(command.floor_char_boundary(LONGEST_COMMAND));
        let values = environment(&self.root, process, &RANK_VARIABLES).unwrap_or_default();
        let rank = values.into_iter().flatten().find_map(|value| value.parse().ok());
        for tid in threads_of(&self.root, process).unwrap_or_default() {
            let at = now();
            if let Ok(Some(stat)) = TaskStat::read(&self.root, tid) {
                // Threads of a process may be in different groups of version 1.
                let (group, command) = (self.groups.group_of(tid), command.clone());
                seen.push(SeenThread { at, stat, process, group, command, rank });
            }
        }
    }

    /// The kernel's accounts of these threads.
    pub fn accounts(&self, threads: &[i32], now: impl Fn() -> u64) -> Vec<SeenAccount> {
        let account = |tid: &i32| {
            let start = now();
            let account = Schedstat::read(&self.root, *tid)?;
            Some(SeenAccount { tid: *tid, read: (start, now()), account })
        };
        threads.iter().filter_map(account).collect()
    }
}
