//! The limits of a measuring thread: its CPUs, its CPU time, its priority and its memory.

use std::io;
use std::path::Path;

use becalm_linux::identity::Identity;
use becalm_linux::procfs::kernel::rt_throttling;
use becalm_linux::procfs::limits;
use becalm_linux::procfs::status::Capability;
use becalm_linux::realtime::{HeldUp, Holder, RealTimeLimits, throttles};
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

/// The CPUs to which a thread can be pinned: those online that its control group allows. The affinity at the start of the process does not count,
/// because any process may widen its own; on a machine with isolated CPUs it leaves those out.
pub(super) fn reachable(root: &Path, identity: &Identity, answers: &mut Vec<Answer>) -> Reachable {
    let mut sets = CpuSets::read(root).unwrap_or_else(|error| {
        answers.push(Answer::limited(
            Ability::Cpus,
            error.to_string(),
            "only the CPUs that this process was started on are known",
            "mount sysfs at /sys",
        ));
        CpuSets { online: started_on(root, identity), ..CpuSets::default() }
    });
    let unread = sets.unread.drain(..);
    answers.extend(unread.map(|error| {
        Answer::limited(Ability::Cpus, error.to_string(), "which CPUs are set apart is not fully known", "")
    }));
    let mut unread = Vec::new();
    let mut group = CgroupLimits::read(root).unwrap_or_else(|error| {
        unread.push(error);
        CgroupLimits::default()
    });
    unread.append(&mut group.unread);
    answers.extend(unread.into_iter().map(|error| {
        let consequence = "not all limits of the control group are known; pinning may fail";
        Answer::limited(Ability::Cpus, error.to_string(), consequence, "")
    }));
    let measurable = group.cpus.as_ref().map_or_else(|| sets.online.clone(), |cpus| cpus.intersection(&sets.online));
    let isolated = sets.isolated.intersection(&measurable);
    let beyond = sets.online.without(&measurable);
    let suffix = if isolated.is_empty() { String::new() } else { format!(" ({isolated} isolated)") };
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

/// The CPUs on which this process was started; from a system call without /proc.
fn started_on(root: &Path, identity: &Identity) -> CpuList {
    match &identity.status.cpus_allowed {
        unknown if unknown.is_empty() && root == Path::new("/") => allowed_cpus().unwrap_or_default(),
        known => known.clone(),
    }
}

/// Whether the loops may be real-time on these CPUs, and the cost. `attempt` is the result of trying it with a thread, for restrictions that no file
/// shows: a control group (v2) of a kernel with CONFIG_RT_GROUP_SCHED has none. It is `None` for any machine but this one.
pub(super) fn realtime(
    root: &Path,
    identity: &Identity,
    cpus: &CpuList,
    attempt: Option<io::Result<()>>,
) -> Vec<Answer> {
    let consequence = "the loops compete with every other thread; what preempts them is seen as a source";
    let highest = match (limits::rt_priority(root), &attempt) {
        _ if identity.can(Capability::SysNice) => Some(99),
        (Ok(limit), _) => Some(limit.unwrap_or(99).min(99)),
        (Err(_), Some(Ok(()))) => None,
        (Err(_), _) => Some(0),
    };
    if highest == Some(0) {
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
    let may = match highest {
        Some(highest) => format!("real-time priorities up to {highest} can be taken"),
        None => "real-time priorities can be taken; the highest one is not known".to_owned(),
    };
    let limits = RealTimeLimits::read(root, cpus.iter());
    let mut answers: Vec<Answer> = limits.held_up().iter().map(held_up_answer).collect();
    if limits.throttling.is_none()
        && throttles(root) != Some(false)
        && let Err(error) = rt_throttling(root)
    {
        let consequence = "whether the kernel throttles real-time loops is not known";
        answers.push(Answer::limited(Ability::Realtime, error.to_string(), consequence, ""));
    }
    match answers.first_mut() {
        Some(first) => first.what = format!("{may}; {}", first.what),
        None => answers.push(Answer::available(Ability::Realtime, may)),
    }
    answers
}

/// The answer about a mechanism that keeps real-time loops from their CPU.
fn held_up_answer(HeldUp { holder, time, period }: &HeldUp) -> Answer {
    let (what, consequence) = match holder {
        Holder::Throttling => (
            format!("the kernel stops real-time threads for {time} of every {period}"),
            format!("a real-time loop may lose {time} at a time, which is reported as throttling"),
        ),
        Holder::FairServer(_) => (
            format!("the fair server of each CPU keeps {time} of every {period} for waiting threads"),
            format!("a real-time loop may lose {time} at a time to other threads, which are named as sources"),
        ),
    };
    Answer::limited(Ability::Realtime, what, consequence, format!("{} while measuring", holder.lift()))
}

/// Whether the loops' buffers can be locked in memory.
pub(super) fn memory(root: &Path, identity: &Identity) -> Answer {
    let consequence = "buffers above the limit are touched but not locked; page faults during a run are counted";
    let advice = Need::LockedMemory.advice();
    match limits::locked_memory(root) {
        _ if identity.can(Capability::IpcLock) => {
            Answer::available(Ability::Memory, "any amount of memory can be locked")
        }
        Ok(None) => Answer::available(Ability::Memory, "any amount of memory can be locked"),
        Ok(Some(0)) => Answer::missing(Ability::Memory, "no memory can be locked", consequence, advice),
        Ok(Some(bytes)) => {
            let what = format!("{} KiB of memory can be locked", bytes / 1024);
            Answer::limited(Ability::Memory, what, consequence, advice)
        }
        Err(error) => Answer::limited(Ability::Memory, error.to_string(), consequence, advice),
    }
}
