//! The choice of threads to observe.

use std::path::Path;

use becalm_attribute::books::ThreadIdentity;
use becalm_model::{Labels, Pid};
use becalm_units::fault::UsageError;
use clap::Args;

use crate::document::ChoiceDoc;
use crate::look::SeenThread;

/// Which threads are observed, with those that they create.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Choice {
    /// Processes, or threads of them, by number.
    pub processes: Vec<i32>,
    /// Threads and programs by name.
    pub names: Vec<String>,
    /// Control groups by path, with the groups below.
    pub groups: Vec<String>,
}

/// Options that choose threads.
#[derive(Args, Debug)]
pub struct ThreadArgs {
    /// Process to observe with all its threads, or a single thread
    #[arg(short, long, value_name = "PID", value_parser = clap::value_parser!(i32).range(1..))]
    pid: Vec<i32>,

    /// Threads and programs with this name, at most 15 characters
    #[arg(long, value_name = "NAME", value_parser = name_of_thread)]
    comm: Vec<String>,
}

impl ThreadArgs {
    /// The chosen threads.
    pub fn choice(&self) -> Choice {
        Choice { processes: self.pid.clone(), names: self.comm.clone(), groups: Vec::new() }
    }
}

/// Options that choose threads and control groups of this machine.
#[derive(Args, Debug)]
pub struct ChoiceArgs {
    #[command(flatten)]
    threads: ThreadArgs,

    /// Control group to observe, with those below it, such as /system.slice/postgresql.service
    #[arg(long, value_name = "PATH", value_parser = path_of_group)]
    cgroup: Vec<String>,
}

impl ChoiceArgs {
    /// The chosen threads and groups. Fails if a process does not exist.
    pub fn choice(&self, root: &Path) -> Result<Choice, UsageError> {
        let choice = Choice { groups: self.cgroup.clone(), ..self.threads.choice() };
        match choice.processes.iter().find(|pid| !root.join(format!("proc/{pid}")).exists()) {
            Some(gone) => Err(UsageError::new(format!("there is no process {gone}"))),
            None => Ok(choice),
        }
    }
}

fn path_of_group(text: &str) -> Result<String, String> {
    // The path as the kernel prints it, without the mount point.
    let path = text.strip_prefix("/sys/fs/cgroup").unwrap_or(text);
    if path.starts_with('/') && path.len() > 1 {
        Ok(path.trim_end_matches('/').to_owned())
    } else {
        Err(format!("'{text}' is no path of a control group: write one as in /proc/PID/cgroup, such as /user.slice"))
    }
}

fn name_of_thread(text: &str) -> Result<String, String> {
    match text.len() {
        0 => Err("the name is empty".to_owned()),
        1..=15 => Ok(text.to_owned()),
        _ => Err(format!("'{text}' is longer than the 15 characters of a thread's name; try '{:.15}'", text)),
    }
}

impl Choice {
    /// Whether nothing is chosen.
    pub const fn is_empty(&self) -> bool {
        self.processes.is_empty() && self.names.is_empty() && self.groups.is_empty()
    }

    /// Whether it has a thread with these properties.
    pub fn has(&self, tid: i32, process: i32, name: &str, group: &str) -> bool {
        let is_below = |chosen: &String| {
            let chosen = chosen.trim_end_matches('/');
            group == chosen || group.strip_prefix(chosen).is_some_and(|rest| rest.starts_with('/'))
        };
        self.processes.iter().any(|chosen| *chosen == tid || *chosen == process)
            || self.names.iter().any(|chosen| chosen == name)
            || self.groups.iter().any(is_below)
    }

    /// The numbers of the chosen ones among these.
    pub fn among(&self, seen: &[SeenThread]) -> Vec<i32> {
        let is_chosen =
            |thread: &&SeenThread| self.has(thread.stat.pid, thread.process, &thread.stat.comm, &thread.group);
        seen.iter().filter(is_chosen).map(|thread| thread.stat.pid).collect()
    }

    /// The same as a function on threads in the books. Threads of becalm are never chosen by name.
    pub fn function(self) -> impl Fn(&ThreadIdentity, &Labels) -> bool {
        move |thread, labels| {
            let ThreadIdentity { pid: Pid(tid), process: Pid(process), .. } = *thread;
            let (name, group) = (labels.text(thread.name), labels.text(thread.group));
            !thread.is_becalm && self.has(tid, process, name, group)
        }
    }

    /// The choice as stored.
    pub fn doc(&self, command: &[String], calls: bool) -> ChoiceDoc {
        let Self { processes, names, groups } = self.clone();
        ChoiceDoc { processes, names, groups, command: command.to_vec(), calls }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_are_chosen_with_those_below() {
        let choice = Choice { groups: vec!["/slurm/job_7/".to_owned()], ..Choice::default() };
        assert!(choice.has(1, 1, "a", "/slurm/job_7") && choice.has(1, 1, "a", "/slurm/job_7/step_0"));
        assert!(!choice.has(1, 1, "a", "/slurm/job_70") && !choice.has(1, 1, "a", "/slurm"));
        let choice = Choice { names: vec!["postgres".to_owned()], processes: vec![5], ..Choice::default() };
        assert!(choice.has(9, 5, "x", "") && choice.has(5, 1, "x", "") && choice.has(9, 9, "postgres", ""));
        assert!(!choice.has(9, 9, "postgres-x", ""));
    }
}
