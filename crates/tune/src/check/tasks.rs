//! Threads that may run on the CPUs, irqbalance, and real-time throttling.

use std::collections::BTreeMap;

use becalm_linux::procfs::kernel::rt_throttling;
use becalm_linux::procfs::names::stable_name;
use becalm_linux::procfs::placement::{Placed, PlacedTasks};
use becalm_linux::realtime::{HeldUp, Holder, RealTimeLimits, throttles};
use becalm_units::CpuList;

use super::finding::Findings;
use super::subject::{COMMAND_LINE, Subject};
use super::words::{cpus, some};
use crate::document::{Area, Severity};
use crate::words::counted;
use crate::{Family, Kind, Known, NoiseSource};

const AREA: Area = Area::Tasks;

/// Threads that may run on the CPUs, by their stable names.
#[derive(Default)]
struct Crowd {
    threads: usize,
    names: BTreeMap<String, usize>,
    example: Option<(i32, String)>,
}

impl Crowd {
    fn add(&mut self, placed: &Placed) {
        let task = &placed.task;
        self.threads += 1;
        *self.names.entry(stable_name(&task.comm, task.kthread).0.into_owned()).or_default() += 1;
        self.example.get_or_insert_with(|| (task.pid, placed.cpus.to_string()));
    }

    /// The names, those with the most threads first.
    fn named(&self) -> Vec<&str> {
        let mut names: Vec<(&str, usize)> = self.names.iter().map(|(name, count)| (name.as_str(), *count)).collect();
        names.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        names.into_iter().map(|(name, _)| name).collect()
    }
}

/// A survey of the threads.
#[derive(Default)]
struct TaskSurvey {
    kernel: Crowd,
    users: Crowd,
    irqbalance: Option<i32>,
    auditd: Option<i32>,
    kthreadd: Option<CpuList>,
    any_kernel: bool,
}

pub(super) fn check(subject: &Subject<'_>, findings: &mut Findings<'_>) {
    let own = i32::try_from(std::process::id()).ok();
    let mut seen = TaskSurvey::default();
    let PlacedTasks { tasks, unread } = findings.read(AREA, PlacedTasks::read(subject.root)).unwrap_or_default();
    if let Some(first) = unread.first() {
        let (them, were) = if unread.len() == 1 { ("it", "was") } else { ("they", "were") };
        let threads = counted(unread.len(), "thread");
        findings.unread(AREA, format!("it is not known where {threads} may run, so {them} {were} not checked"), first);
    }
    for placed in tasks {
        let task = &placed.task;
        seen.any_kernel |= task.kthread;
        match task.comm.as_str() {
            "irqbalance" if !task.kthread => seen.irqbalance = Some(task.pid),
            "auditd" if !task.kthread => seen.auditd = Some(task.pid),
            "kthreadd" if task.kthread => seen.kthreadd = Some(placed.cpus.clone()),
            _ => {}
        }
        if Some(task.tgid) == own || subject.hit(&placed.cpus).is_none() {
            continue;
        }
        match (task.kthread, placed.bound) {
            // Bound to its CPU, like ksoftirqd: its causes have findings of their own.
            (true, true) => {}
            (true, false) => seen.kernel.add(&placed),
            (false, _) => seen.users.add(&placed),
        }
    }
    threads(subject, &seen, findings);
    kthread_cpus(subject, &seen, findings);
    if let Some(pid) = seen.irqbalance {
        irqbalance(subject, pid, findings);
    }
    if let Some(pid) = seen.auditd.filter(|_| subject.line.last("audit") != Some("0")) {
        let title = "system calls are audited: every process pays for it, on every CPU";
        let finding = findings.add(AREA, Severity::Note, title);
        finding
            .seen(format!("/proc/{pid}/comm"), "auditd")
            .boot("audit=0")
            .fix("stop auditd, where the rules allow it");
    }
    held_up(subject, findings);
}

fn threads(subject: &Subject<'_>, seen: &TaskSurvey, findings: &mut Findings<'_>) {
    let evidence = |crowd: &Crowd| {
        let (pid, list) = crowd.example.clone().unwrap_or_default();
        (format!("/proc/{pid}/status"), format!("Cpus_allowed_list: {list}"))
    };
    if seen.kernel.threads > 0 {
        let names = seen.kernel.named();
        let title = format!(
            "{} that could be moved may run on {}: {}",
            counted(seen.kernel.threads, "kernel thread"),
            subject.named(),
            some(&names, 4)
        );
        let (path, value) = evidence(&seen.kernel);
        let finding = findings.add(AREA, Severity::Warning, title);
        finding.seen(path, value).fix("take the CPUs out of their affinity").by(Family::Affinity);
        for name in names {
            finding.lets(NoiseSource::new(Kind::Kthread, name));
        }
    } else if seen.any_kernel {
        findings.add(
            AREA,
            Severity::Fine,
            format!("no kernel thread that could be moved may run on {}", subject.named()),
        );
    }
    if seen.users.threads == 0 {
        return;
    }
    let names = seen.users.named();
    let apart = subject.cpus.without(&subject.apart()).is_empty();
    // On isolated CPUs only threads put there on purpose may run.
    let (severity, what) = if apart {
        (Severity::Note, "with a chosen affinity may run on")
    } else {
        (Severity::Warning, "of processes may run on")
    };
    let threads = counted(seen.users.threads, "thread");
    let title = format!("{threads} {what} {}: {}", subject.named(), some(&names, 4));
    let (path, value) = evidence(&seen.users);
    let finding = findings.add(AREA, severity, title);
    finding.seen(path, value);
    if !apart {
        finding
            .fix("give the CPUs a cpuset partition of their own, which leaves only what is put into it")
            .by(Family::Cpuset);
    }
    for name in names {
        finding.lets(NoiseSource::new(Kind::Task, name));
    }
}

/// A parameter of some vendors' kernels.
fn kthread_cpus(subject: &Subject<'_>, seen: &TaskSurvey, findings: &mut Findings<'_>) {
    let (Some(asked), Some(is)) = (subject.line.last("kthread_cpus"), &seen.kthreadd) else { return };
    let wanted = becalm_linux::procfs::parse_kernel_list(asked, subject.count()).ok();
    if wanted.is_none_or(|wanted| wanted.intersection(&subject.sets.online) != is.intersection(&subject.sets.online)) {
        findings
            .add(Area::Boot, Severity::Error, "kthread_cpus is given and has no effect: this kernel does not know it")
            .seen(COMMAND_LINE, format!("kthread_cpus={asked}"))
            .seen("/proc/2/status", format!("Cpus_allowed_list: {is}"))
            .fix("move kernel threads at run time instead")
            .by(Family::Affinity);
    }
}

fn irqbalance(subject: &Subject<'_>, pid: i32, findings: &mut Findings<'_>) {
    // By itself it excludes the CPUs of isolcpus and nohz_full.
    let left_out: CpuList = subject.sets.isolated.iter().chain(subject.sets.nohz_full.iter()).collect();
    let open = subject.cpus.without(&left_out);
    let (severity, title) = if open.is_empty() {
        (Severity::Fine, "irqbalance runs, and leaves out CPUs that isolcpus or nohz_full name".to_owned())
    } else {
        (Severity::Warning, format!("irqbalance runs, and moves interrupts to {} as it likes", cpus(&open)))
    };
    let finding = findings.add(Area::Irq, severity, title);
    finding.seen(format!("/proc/{pid}/comm"), "irqbalance");
    if !open.is_empty() {
        finding.fix(format!("stop it, or set IRQBALANCE_BANNED_CPULIST={}", subject.cpus)).by(Family::Irq);
    }
}

/// Mechanisms that keep real-time threads from the CPUs.
fn held_up(subject: &Subject<'_>, findings: &mut Findings<'_>) {
    let path = "/proc/sys/kernel/sched_rt_runtime_us";
    let throttles = throttles(subject.root) != Some(false);
    let limit = throttles.then(|| findings.read(AREA, rt_throttling(subject.root))).flatten();
    let microseconds = limit.map(|limit| limit.runtime.map_or(-1, |runtime| runtime.get() / 1_000).to_string());
    let limits = RealTimeLimits::read(subject.root, subject.cpus.iter());
    let held_up = limits.held_up();
    for HeldUp { holder, time, period } in &held_up {
        let fix = "switch this off while the job runs in a real-time class, and leave a CPU without such threads";
        match holder {
            Holder::Throttling => {
                let title = format!("a real-time thread that never sleeps is held up for {time} of every {period}");
                findings
                    .add(AREA, Severity::Note, title)
                    .seen(path, microseconds.clone().unwrap_or_default())
                    .fix(fix)
                    .by(Family::Throttling)
                    .lets(Known::RealTimeThrottling);
            }
            // It lets in ordinary threads: a recording does not show the reason.
            Holder::FairServer(cpu) => {
                let title = format!(
                    "a real-time thread that never sleeps loses {time} of every {period} to waiting threads, by the fair server"
                );
                let finding = findings.add(AREA, Severity::Note, title);
                let file = format!("/sys/kernel/debug/sched/fair_server/cpu{cpu}/runtime");
                if limits.fair_servers.get(cpu).is_some_and(|server| server.assumed) {
                    finding
                        .seen(file, "cannot be read; the kernel's default is 50 ms")
                        .fix(format!("if debugfs is writable, {fix}"));
                } else {
                    finding.seen(file, time.get().to_string()).fix(fix).by(Family::Throttling);
                }
            }
        }
    }
    if held_up.is_empty() && (limit.is_some() || !throttles) {
        let finding = findings.add(AREA, Severity::Fine, "real-time threads are never held up");
        if let Some(microseconds) = microseconds {
            finding.seen(path, microseconds);
        }
    }
}
