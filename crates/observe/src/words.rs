//! Names of takers and control groups in reports, and what to do about them.

use std::collections::HashMap;

use becalm_bundle::ThreadRow;
use becalm_linux::procfs::names::stable_name;
use becalm_model::observed::Owner;
use becalm_model::{Kind, Labels};
use becalm_units::printable;

/// A thread that had the CPU.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TakerThread {
    /// The kernel's number.
    pub tid: i32,
    /// The number of its process.
    pub process: i32,
    /// Whether it is a kernel thread.
    pub is_kernel: bool,
}

/// The names of takers in documents: of another program that of its first thread, of a kernel thread the stable part.
#[derive(Clone, Debug, Default)]
pub struct TakerNames<'a> {
    /// The name of the first thread of each process.
    programs: HashMap<i32, &'a str>,
}

impl<'a> TakerNames<'a> {
    /// For these threads, with their names.
    pub fn new(threads: impl IntoIterator<Item = (TakerThread, &'a str)>) -> Self {
        let first = |(thread, name): (TakerThread, &'a str)| {
            (thread.tid == thread.process && !name.is_empty()).then_some((thread.process, name))
        };
        Self { programs: threads.into_iter().filter_map(first).collect() }
    }

    /// The name of a taker, which was called `name` when it had the CPU; `pid N` for a thread without a name.
    pub fn source(&self, owner: Owner, name: &str, thread: Option<TakerThread>) -> String {
        let Some(thread) = thread else { return name.to_owned() };
        let is_foreign = matches!(owner, Owner::Others | Owner::Group);
        match self.programs.get(&thread.process).filter(|_| is_foreign && thread.tid != thread.process) {
            Some(program) => (*program).to_owned(),
            None if name.is_empty() => format!("pid {}", thread.tid),
            None => stable_name(name, thread.is_kernel).0.into_owned(),
        }
    }
}

/// A thread of the recording as a taker.
pub const fn taker_thread(row: &ThreadRow) -> TakerThread {
    TakerThread { tid: row.tid, process: row.process, is_kernel: row.kernel }
}

/// The names of takers in a recording.
pub fn taker_names<'a>(threads: &[ThreadRow], labels: &'a Labels) -> TakerNames<'a> {
    TakerNames::new(threads.iter().map(|row| (taker_thread(row), labels.text(row.name))))
}

/// The name of a taker as reports show it.
pub fn taker_name(kind: Kind, source: &str) -> String {
    match (kind, source) {
        (Kind::Kthread, "idle_exit") => "way out of idle".to_owned(),
        (Kind::Throttling, "cfs_bandwidth") => "quota of its group".to_owned(),
        (Kind::Throttling, _) => "limit on real-time threads".to_owned(),
        (_, source) => printable(source).into_owned(),
    }
}

/// The owner of a taker's time in a word or two.
pub const fn owner(owner: Owner) -> &'static str {
    match owner {
        Owner::Process => "same process",
        Owner::Chosen => "observed",
        Owner::Group => "same group",
        Owner::Others => "others",
        Owner::Kernel => "kernel",
        Owner::Interrupt => "interrupt",
        Owner::Quota => "quota",
        Owner::Host => "host",
        Owner::Becalm => "becalm",
        Owner::Unknown => "not known",
    }
}

/// A control group by the name that people know: that of the pod, the container, the Slurm step, the unit.
pub fn group_name(path: &str) -> String {
    let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
    let find = |prefix: &str| parts.iter().rev().find_map(|part| part.strip_prefix(prefix));
    if let (Some(job), step) = (find("job_"), find("step_")) {
        return format!("Slurm job {job}{}", step.map_or_else(String::new, |step| format!(" step {step}")));
    }
    let container = |part: &&str| {
        let id = part.trim_end_matches(".scope");
        let id = id.rsplit(['-', ':']).next().unwrap_or(id);
        (id.len() == 64 && id.bytes().all(|byte| byte.is_ascii_hexdigit())).then(|| id[..12].to_owned())
    };
    let pod = parts.iter().rev().find_map(|part| {
        let (_, id) = part.trim_end_matches(".slice").rsplit_once("pod")?;
        (id.len() >= 32).then(|| id.replace('_', "-"))
    });
    match (pod, parts.iter().rev().find_map(container)) {
        (Some(pod), Some(id)) => format!("pod {pod} container {id}"),
        (Some(pod), None) => format!("pod {pod}"),
        (None, Some(id)) => format!("container {id}"),
        _ => match parts.iter().rev().find(|part| part.ends_with(".service") || part.ends_with(".scope")) {
            Some(unit) => printable(unit).into_owned(),
            None => printable(path).into_owned(),
        },
    }
}

/// What to do about a taker; `None` if it is not known.
pub fn advice(owner: Owner, kind: Kind, source: &str, process: Option<i32>) -> Option<String> {
    let name = taker_name(kind, source);
    Some(match owner {
        Owner::Process | Owner::Chosen | Owner::Group => {
            format!("the threads need more CPUs than they have: give them more, or start fewer ({name})")
        }
        Owner::Others | Owner::Becalm => {
            let process =
                process.map_or_else(String::new, |process| format!(", such as with taskset -acp CPUS {process}"));
            format!("keep {name} away from these CPUs{process}, or lower its priority (nice)")
        }
        Owner::Quota if source == "cfs_bandwidth" => {
            "raise the quota of the control group (cpu.max, cpu.cfs_quota_us), or start fewer threads".to_owned()
        }
        Owner::Quota => "raise the limit on real-time threads: sysctl kernel.sched_rt_runtime_us".to_owned(),
        Owner::Kernel if source == "idle_exit" => {
            "keep the CPU from deep idle: becalm tune plan; in a virtual machine, poll in the guest (haltpoll)"
                .to_owned()
        }
        Owner::Kernel | Owner::Interrupt => "becalm tune plan proposes how to keep the kernel's work away".to_owned(),
        Owner::Host => "ask the host's administrator for CPUs that are not shared".to_owned(),
        Owner::Unknown => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_of_another_program_have_its_name() {
        let thread = |tid, process, is_kernel| TakerThread { tid, process, is_kernel };
        let (main, worker, kworker) = (thread(7, 7, false), thread(8, 7, false), thread(20, 20, true));
        let names = TakerNames::new([(main, "rustc"), (worker, "opt cgu.1"), (kworker, "kworker/1:2-events")]);
        assert_eq!(names.source(Owner::Others, "opt cgu.1", Some(worker)), "rustc");
        assert_eq!(names.source(Owner::Group, "opt cgu.1", Some(worker)), "rustc");
        // One's own threads keep their names, and so does a process that changes it.
        assert_eq!(names.source(Owner::Process, "opt cgu.1", Some(worker)), "opt cgu.1");
        assert_eq!(names.source(Owner::Others, "later", Some(main)), "later");
        assert_eq!(names.source(Owner::Kernel, "kworker/1:2-events", Some(kworker)), "kworker");
        assert_eq!(names.source(Owner::Others, "", Some(thread(9, 9, false))), "pid 9");
        assert_eq!(names.source(Owner::Interrupt, "tick", None), "tick");
    }

    #[test]
    fn groups_have_the_names_that_people_know() {
        let id = "0123456789abcdef".repeat(4);
        let named = |path: &str| group_name(path);
        assert_eq!(named("/slurm/uid_1/job_42/step_3"), "Slurm job 42 step 3");
        assert_eq!(named("/system.slice/postgresql.service"), "postgresql.service");
        assert_eq!(named(&format!("/system.slice/docker-{id}.scope")), "container 0123456789ab");
        let pod = "11112222_3333_4444_5555_666677778888";
        let path = format!(
            "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod{pod}.slice/cri-containerd-{id}.scope"
        );
        assert_eq!(named(&path), "pod 11112222-3333-4444-5555-666677778888 container 0123456789ab");
        assert_eq!(named("/burn"), "/burn");
    }
}
