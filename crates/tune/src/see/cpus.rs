//! What a measuring thread may do: where it may run, how much, at which priority, with how much memory.

use std::io;
use std::path::Path;

use becalm_linux::identity::Identity;
use becalm_linux::procfs::kernel::rt_throttling;
use becalm_linux::procfs::limits::Limits;
use becalm_linux::procfs::status::Capability;
use becalm_linux::rights::Need;
use becalm_linux::sched::allowed_cpus;
use becalm_linux::sysfs::cgroup::CgroupLimits;
use becalm_linux::sysfs::cpu::{CpuSets, siblings};
use becalm_model::audit::{Ability, Answer};
use becalm_units::CpuList;

/// The CPUs that can be measured.
pub(super) struct Reachable {
    /// Those that a thread can be pinned to.
    pub measurable: CpuList,
    /// The isolated ones of them.
    pub isolated: CpuList,
}

/// Which CPUs a thread can be pinned to: those online that its control group allows. The affinity that the process was
/// started with does not bind, as any process may widen its own; on a machine with isolated CPUs it leaves those out.
pub(super) fn reachable(root: &Path, identity: &Identity, answers: &mut Vec<Answer>) -> Reachable {
    let sets = CpuSets::read(root).unwrap_or_else(|error| {
        answers.push(Answer::limited(
            Ability::Cpus,
            error.to_string(),
            "only the CPUs that this process was started on are known",
            "mount sysfs at /sys",
        ));
        CpuSets { online: started_on(root, identity), ..CpuSets::default() }
    });
    let group = CgroupLimits::read(root).unwrap_or_else(|error| {
        let consequence = "limits of the control group are not known; pinning may fail";
        answers.push(Answer::limited(Ability::Cpus, error.to_string(), consequence, ""));
        CgroupLimits::default()
    });
    let measurable = group.cpus.as_ref().map_or_else(|| sets.online.clone(), |cpus| cpus.intersection(&sets.online));
    let isolated = sets.isolated.intersection(&measurable);
    let beyond = sets.online.without(&measurable);
    let suffix = if isolated.is_empty() { String::new() } else { format!(", of which {isolated} are isolated") };
    if measurable.is_empty() {
        let consequence = "nothing can be measured";
        answers.push(Answer::missing(Ability::Cpus, "no CPU can be used by this process", consequence, ""));
    } else if beyond.is_empty() {
        answers.push(Answer::available(Ability::Cpus, format!("CPUs {measurable} can be measured{suffix}")));
    } else {
        answers.push(Answer::limited(
            Ability::Cpus,
            format!("CPUs {measurable} can be measured{suffix}; the control group does not allow {beyond}"),
            format!("CPUs {beyond} are not measured"),
            "run becalm outside of the control group, or add the CPUs to its cpuset",
        ));
    }
    if let Some(limit) = group.bandwidth.filter(|limit| limit.cpus() < measurable.len() as f64) {
        answers.push(Answer::limited(
            Ability::Cpus,
            format!(
                "the control group {} may use {:.2} CPUs, in periods of {}",
                limit.group.display(),
                limit.cpus(),
                limit.period
            ),
            "loops on more CPUs than that are stopped for the rest of each period, which is reported as throttling",
            "run becalm outside of the group, or lift the limit (cpu.max, cpu.cfs_quota_us)",
        ));
    }
    let paired = measurable.iter().find_map(|cpu| siblings(root, cpu).ok()?.filter(|threads| threads.len() > 1));
    if let Some(threads) = paired {
        answers.push(Answer::limited(
            Ability::Cpus,
            format!("hardware threads share cores, as CPUs {threads} do"),
            "what runs on a sibling slows the loop, and no kernel event says so",
            "measure one CPU of each core, and keep the others idle",
        ));
    }
    Reachable { measurable, isolated }
}

/// The CPUs that this process was started on. Without /proc a system call tells them.
fn started_on(root: &Path, identity: &Identity) -> CpuList {
    match &identity.status.cpus_allowed {
        unknown if unknown.is_empty() && root == Path::new("/") => allowed_cpus().unwrap_or_default(),
        known => known.clone(),
    }
}

/// Whether the loops may be made real-time, and what that costs; `attempt` is what became of a thread that was to be, which counts where
/// no file tells what forbids it: a control group (v2) of a kernel with CONFIG_RT_GROUP_SCHED has no file for that. It is `None` of
/// another machine than this one.
pub(super) fn realtime(root: &Path, identity: &Identity, attempt: Option<io::Result<()>>) -> Vec<Answer> {
    let consequence = "the loops compete with every other thread; what pre-empts them is seen as a source";
    let highest = match (Limits::read(root), &attempt) {
        _ if identity.can(Capability::SysNice) => 99,
        (Ok(limits), _) => limits.rt_priority.unwrap_or(99),
        (Err(error), Some(Ok(()))) => {
            let what = format!("real-time priorities can be taken; up to which is not known: {error}");
            return vec![Answer::limited(
                Ability::Realtime,
                what,
                "a high priority may be refused",
                "mount proc at /proc",
            )];
        }
        (Err(_), _) => 0,
    };
    if highest == 0 {
        let what = "this process may not take real-time priorities";
        return vec![Answer::missing(Ability::Realtime, what, consequence, Need::Realtime.advice())];
    }
    if let Some(group) = CgroupLimits::read(root).ok().and_then(|limits| limits.no_realtime) {
        let what = format!("the control group {} has no real-time budget", group.display());
        let advice = "run becalm in the top group, or write a budget to cpu.rt_runtime_us";
        return vec![Answer::missing(Ability::Realtime, what, consequence, advice)];
    }
    if let Some(Err(error)) = attempt {
        let what = format!("the kernel denies real-time priorities, for which this process has the right: {error}");
        let advice = "run becalm in the top control group, or on a kernel without CONFIG_RT_GROUP_SCHED";
        return vec![Answer::missing(Ability::Realtime, what, consequence, advice)];
    }
    let may = format!("real-time priorities up to {} can be taken", highest.min(99));
    vec![match rt_throttling(root) {
        Ok(limit) => match limit.stolen() {
            None => Answer::available(Ability::Realtime, may),
            Some(stolen) => Answer::limited(
                Ability::Realtime,
                format!("{may}; other threads are given {stolen} of every {}", limit.period),
                format!("a real-time loop may lose {stolen} at a time, which is reported as throttling"),
                "sysctl kernel.sched_rt_runtime_us=-1 while measuring",
            ),
        },
        Err(error) => {
            let consequence = "whether the kernel throttles real-time loops is not known";
            Answer::limited(Ability::Realtime, format!("{may}; {error}"), consequence, "")
        }
    }]
}

/// Whether the loops' buffers can be kept in memory.
pub(super) fn memory(root: &Path, identity: &Identity) -> Answer {
    let consequence = "buffers above the limit are touched but not locked; page faults during a run are counted";
    let advice = Need::LockedMemory.advice();
    match Limits::read(root) {
        _ if identity.can(Capability::IpcLock) => {
            Answer::available(Ability::Memory, "any amount of memory can be locked")
        }
        Ok(Limits { locked_memory: None, .. }) => {
            Answer::available(Ability::Memory, "any amount of memory can be locked")
        }
        Ok(Limits { locked_memory: Some(0), .. }) => {
            Answer::missing(Ability::Memory, "no memory can be locked", consequence, advice)
        }
        Ok(Limits { locked_memory: Some(bytes), .. }) => {
            let what = format!("{} KiB of memory can be locked", bytes / 1024);
            Answer::limited(Ability::Memory, what, consequence, advice)
        }
        Err(error) => Answer::limited(Ability::Memory, error.to_string(), consequence, advice),
    }
}
