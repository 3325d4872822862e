//! `isolcpus`, `nohz_full`, `rcu_nocbs` and cpuset partitions: the request, whether the kernel accepted it, whether the lists agree, and whether a
//! housekeeping CPU is left.
//!
//! The kernel handles the first two in `kernel/sched/isolation.c`: of two contradictory lists it keeps the first and drops the other, and logs that.

use becalm_linux::procfs::cmdline::IsolCpus;
use becalm_linux::procfs::parse_kernel_list;
use becalm_linux::sysfs::cpu::siblings;
use becalm_units::CpuList;

use super::finding::Findings;
use super::subject::{COMMAND_LINE, ISOLATED, NOHZ_FULL, Subject};
use super::words::{are, cpus};
use crate::boot::{MOVABLE_CALLBACKS, STOPPABLE_TICK};
use crate::document::{Area, Severity};
use crate::{Family, Known};

const AREA: Area = Area::Isolation;

pub(super) fn check(subject: &Subject<'_>, findings: &mut Findings<'_>) {
    housekeeping(subject, findings);
    let domain = isolcpus(subject, findings);
    balancing(subject, findings);
    let nohz = nohz_full(subject, findings);
    let rcu = rcu_nocbs(subject, findings);
    agreement(subject, &[("isolcpus", domain), ("nohz_full", nohz), ("rcu_nocbs", rcu)], findings);
    groups(subject, findings);
    shared_cores(subject, findings);
}

/// A machine needs a housekeeping CPU.
fn housekeeping(subject: &Subject<'_>, findings: &mut Findings<'_>) {
    let online = &subject.sets.online;
    if subject.others.is_empty() {
        let title =
            format!("no housekeeping CPU is left: {} would be isolated, and no other CPU is online", subject.named());
        findings
            .add(AREA, Severity::Error, title)
            .seen("/sys/devices/system/cpu/online", online.to_string())
            .fix("leave one CPU, better one core of each NUMA node, out of --cpus");
    }
    let left = online.without(&subject.apart());
    if left.is_empty() && !online.is_empty() {
        let title = "every online CPU is isolated: no thread is balanced, and all start on one CPU";
        let parameter = subject.line.last("isolcpus").unwrap_or_default();
        findings
            .add(AREA, Severity::Error, title)
            .seen(ISOLATED, subject.sets.isolated.to_string())
            .seen(COMMAND_LINE, format!("isolcpus={parameter}"))
            .fix("boot with a list that leaves at least one CPU out");
    }
}

/// The effect of `isolcpus=`. Returns the CPUs requested to be out of load balancing.
fn isolcpus(subject: &Subject<'_>, findings: &mut Findings<'_>) -> Option<CpuList> {
    let mut taken: Option<IsolCpus> = None;
    for value in subject.line.all("isolcpus") {
        let shown = format!("isolcpus={value}");
        match IsolCpus::parse(value, subject.count()) {
            Err(why) => {
                findings
                    .add(AREA, Severity::Error, format!("the kernel ignores {shown}: {why}"))
                    .seen(COMMAND_LINE, shown)
                    .seen("/sys/devices/system/cpu/possible", subject.sets.possible.to_string())
                    .fix("write flags and then a list, as in isolcpus=managed_irq,domain,1-3; correct it and reboot");
            }
            Ok(later) if taken.as_ref().is_some_and(|first| first.cpus != later.cpus) => {
                let title =
                    "isolcpus is there twice with different CPUs: the kernel keeps the first and drops the other";
                findings.add(AREA, Severity::Error, title).seen(COMMAND_LINE, shown).fix("leave one, and reboot");
            }
            Ok(it) => {
                for flag in &it.unknown {
                    let title = format!("this kernel does not know the flag {flag} of isolcpus, and skips it");
                    findings.add(AREA, Severity::Warning, title).seen(COMMAND_LINE, shown.clone());
                }
                taken.get_or_insert(it);
            }
        }
    }
    let asked = taken?;
    let is = &subject.sets.isolated;
    let possible = &subject.sets.possible;
    let wanted = asked.cpus.intersection(possible);
    if asked.domain && wanted.intersection(&subject.sets.present) != is.intersection(&subject.sets.present) {
        let title = format!("isolcpus names {}, and the kernel isolated {}", or_none(&wanted), or_none(is));
        findings
            .add(AREA, Severity::Error, title)
            .seen(
                COMMAND_LINE,
                subject.line.all("isolcpus").map(|v| format!("isolcpus={v}")).collect::<Vec<_>>().join(" "),
            )
            .seen(ISOLATED, is.to_string())
            .fix("the kernel's log says why (dmesg | grep -i housekeeping)");
    }
    if !asked.managed_irq && subject.hit(&asked.cpus).is_some() {
        let title = "isolcpus lacks the flag managed_irq: interrupts whose CPUs the kernel chooses may be put on them";
        findings
            .add(AREA, Severity::Note, title)
            .seen(COMMAND_LINE, subject.line.last("isolcpus").map(|v| format!("isolcpus={v}")).unwrap_or_default())
            .boot(format!("isolcpus=managed_irq,domain,{}", asked.cpus))
            .fix("add the flag");
    }
    absent(subject, "isolcpus", &asked.cpus, findings);
    asked.domain.then_some(asked.cpus)
}

fn or_none(list: &CpuList) -> String {
    if list.is_empty() { "none".to_owned() } else { list.to_string() }
}

/// CPUs of a list that the machine does not have.
fn absent(subject: &Subject<'_>, name: &str, list: &CpuList, findings: &mut Findings<'_>) {
    let absent = list.without(&subject.sets.present);
    if !absent.is_empty() {
        findings
            .add(AREA, Severity::Note, format!("{name} names {}, but this machine has none of them", cpus(&absent)))
            .seen(COMMAND_LINE, format!("{name}={}", subject.line.last(name).unwrap_or_default()))
            .seen("/sys/devices/system/cpu/present", subject.sets.present.to_string());
    }
}

/// Whether the scheduler balances load on the CPUs.
fn balancing(subject: &Subject<'_>, findings: &mut Findings<'_>) {
    let apart = subject.apart();
    let open = subject.cpus.without(&apart);
    if open.is_empty() {
        let title = format!("the scheduler moves no thread to {}", subject.named());
        let finding = findings.add(AREA, Severity::Fine, title);
        finding.seen(ISOLATED, subject.sets.isolated.to_string());
        for group in subject.partitions.iter().filter(|group| group.is_isolated()) {
            finding.seen(format!("{}/cpuset.cpus", group.group.display()), group.cpus.to_string());
        }
        return;
    }
    let title = format!("the scheduler balances load over {}, and may run any thread there", cpus(&open));
    findings
        .add(AREA, Severity::Warning, title)
        .seen(ISOLATED, subject.sets.isolated.to_string())
        .fix("put them into an isolated cpuset partition, which needs no reboot, or boot with isolcpus")
        .by(Family::Cpuset)
        .boot(format!("isolcpus=managed_irq,domain,{}", subject.cpus))
        .lets(Known::Balancing)
        .lets(Known::Task);
}

/// The CPUs on which the tick should stop; lists that the kernel ignores or drops are findings.
fn tickless(subject: &Subject<'_>, findings: &mut Findings<'_>) -> Option<CpuList> {
    let mut asked: Option<CpuList> = None;
    let by_isolcpus = subject.line.all("isolcpus").filter_map(|value| IsolCpus::parse(value, subject.count()).ok());
    let by_isolcpus = by_isolcpus.filter(|it| it.nohz).map(|it| it.cpus);
    let mut lists: Vec<CpuList> = Vec::new();
    for value in subject.line.all("nohz_full") {
        match parse_kernel_list(value, subject.count()) {
            Ok(list) => lists.push(list),
            Err(why) => {
                findings
                    .add(AREA, Severity::Error, format!("the kernel ignores nohz_full={value}: {why}"))
                    .seen(COMMAND_LINE, format!("nohz_full={value}"))
                    .seen("/sys/devices/system/cpu/possible", subject.sets.possible.to_string())
                    .fix("write a list of CPUs that there are, and reboot");
            }
        }
    }
    for list in lists.into_iter().chain(by_isolcpus) {
        match &asked {
            Some(first) if *first != list => {
                let title =
                    format!("the tick is to stop on {first} and on {list}: the kernel keeps one and drops the other");
                let both =
                    ["nohz_full", "isolcpus"].map(|name| subject.line.all(name).map(move |v| format!("{name}={v}")));
                let both: Vec<String> = both.into_iter().flatten().collect();
                findings.add(AREA, Severity::Error, title).seen(COMMAND_LINE, both.join(" ")).fix("make them one list");
            }
            _ => asked = Some(list),
        }
    }
    asked
}

/// Whether the kernel may stop the tick there. Returns the requested CPUs.
fn nohz_full(subject: &Subject<'_>, findings: &mut Findings<'_>) -> Option<CpuList> {
    let asked = tickless(subject, findings);
    match &asked {
        Some(wanted) => tick_was_to_stop(subject, wanted, findings),
        None => tick_is_kept(subject, findings),
    }
    asked
}

/// Whether the kernel can stop the tick at all.
fn can_stop_tick(subject: &Subject<'_>) -> bool {
    subject.built_with(STOPPABLE_TICK).unwrap_or(false)
}

/// The kernel's list of tickless CPUs, as evidence.
fn nohz_full_file(subject: &Subject<'_>) -> String {
    if subject.knows_nohz_full { or_none(&subject.sets.nohz_full) } else { "no such file".to_owned() }
}

/// Whether the kernel accepted the list.
fn tick_was_to_stop(subject: &Subject<'_>, wanted: &CpuList, findings: &mut Findings<'_>) {
    let (path, value) = subject.option(STOPPABLE_TICK);
    let (list, present) = (&subject.sets.nohz_full, &subject.sets.present);
    absent(subject, "nohz_full", wanted, findings);
    if !can_stop_tick(subject) {
        let title = "nohz_full is given, and this kernel ignores it: it was built without the support";
        findings
            .add(AREA, Severity::Error, title)
            .seen(COMMAND_LINE, format!("nohz_full={wanted}"))
            .seen(path, value)
            .seen(NOHZ_FULL, nohz_full_file(subject))
            .fix("boot a kernel that was built with CONFIG_NO_HZ_FULL");
    } else if wanted.intersection(present) != list.intersection(present) {
        let title = format!("nohz_full names {}, and the kernel took {}", or_none(wanted), or_none(list));
        findings
            .add(AREA, Severity::Error, title)
            .seen(COMMAND_LINE, format!("nohz_full={wanted}"))
            .seen(NOHZ_FULL, nohz_full_file(subject))
            .fix("leave the CPU that boots out of the list; the kernel's log says why (dmesg | grep -i nohz)");
    }
}

/// Without a request for tickless CPUs: whether some of those in question have a tick.
fn tick_is_kept(subject: &Subject<'_>, findings: &mut Findings<'_>) {
    let open = subject.cpus.without(&subject.sets.nohz_full);
    if open.is_empty() {
        return;
    }
    let supported = can_stop_tick(subject);
    let title = match supported {
        true => format!("the tick is never stopped on {} while a thread runs", cpus(&open)),
        false => format!("this kernel cannot stop the tick of {} while a thread runs there", subject.named()),
    };
    let (path, value) = subject.option(STOPPABLE_TICK);
    let finding = findings.add(AREA, Severity::Warning, title);
    finding.seen(NOHZ_FULL, nohz_full_file(subject)).seen(path, value);
    if supported {
        finding.boot(format!("nohz_full={}", subject.cpus)).fix("boot with nohz_full");
    } else {
        finding.fix("boot a kernel that was built with CONFIG_NO_HZ_FULL, with nohz_full for these CPUs");
    }
    finding
        .lets(Known::Tick)
        .lets(Known::LocalTimer)
        .lets(Known::ArchTimer)
        .lets(Known::Timer)
        .lets(Known::AnySoftTimer);
}

/// Whether RCU callbacks are offloaded. Returns the requested CPUs.
fn rcu_nocbs(subject: &Subject<'_>, findings: &mut Findings<'_>) -> Option<CpuList> {
    let given = subject.line.last("rcu_nocbs").map(str::to_owned);
    let able = subject.built_with(MOVABLE_CALLBACKS);
    let (path, value) = subject.option(MOVABLE_CALLBACKS);
    let asked = given.as_ref().map(|text| parse_kernel_list(text, subject.count()));
    if let Some(text) = given.as_ref().filter(|_| able == Some(false)) {
        findings
            .add(
                AREA,
                Severity::Error,
                "rcu_nocbs is given, and this kernel ignores it: it was built without the support",
            )
            .seen(COMMAND_LINE, format!("rcu_nocbs={text}"))
            .seen(path, value)
            .fix("boot a kernel that was built with CONFIG_RCU_NOCB_CPU")
            .lets(Known::Rcu)
            .lets(Known::Rcuc);
        return None;
    }
    let asked = match asked {
        Some(Err(why)) => {
            let text = given.unwrap_or_default();
            let title = format!("rcu_nocbs={text} is no list, so the kernel takes all CPUs: {why}");
            let finding = findings.add(AREA, Severity::Error, title);
            finding
                .seen(COMMAND_LINE, format!("rcu_nocbs={text}"))
                .fix("write a list of CPUs that there are, and reboot");
            return Some(subject.sets.possible.clone());
        }
        Some(Ok(list)) => {
            absent(subject, "rcu_nocbs", &list, findings);
            Some(list)
        }
        None => None,
    };
    // The kernel always offloads tickless CPUs, if it can.
    let implied = if able == Some(false) { CpuList::default() } else { subject.sets.nohz_full.clone() };
    let offloaded: CpuList = asked.iter().flat_map(CpuList::iter).chain(implied.iter()).collect();
    let open = subject.cpus.without(&offloaded);
    if open.is_empty() {
        findings.add(AREA, Severity::Fine, format!("callbacks of RCU do not run on {}", subject.named())).seen(
            COMMAND_LINE,
            given.map_or_else(|| "nohz_full implies rcu_nocbs".to_owned(), |v| format!("rcu_nocbs={v}")),
        );
    } else {
        let finding = findings.add(AREA, Severity::Warning, format!("callbacks of RCU run on {}", cpus(&open)));
        finding.seen(COMMAND_LINE, given.map_or_else(|| "no rcu_nocbs".to_owned(), |v| format!("rcu_nocbs={v}")));
        if able == Some(false) {
            finding.seen(path, value).fix("boot a kernel that was built with CONFIG_RCU_NOCB_CPU, with rcu_nocbs");
        } else {
            finding.boot(format!("rcu_nocbs={}", subject.cpus)).fix("boot with rcu_nocbs");
        }
        finding.lets(Known::Rcu).lets(Known::Rcuc);
    }
    asked
}

/// The requested lists should be equal.
fn agreement(subject: &Subject<'_>, asked: &[(&str, Option<CpuList>)], findings: &mut Findings<'_>) {
    let given: Vec<(&str, &CpuList)> = asked.iter().filter_map(|(name, list)| Some((*name, list.as_ref()?))).collect();
    if given.len() < 2 {
        return;
    }
    let all: CpuList = given.iter().flat_map(|(_, list)| list.iter()).collect();
    let common = given.iter().fold(all.clone(), |common, (_, list)| common.intersection(list));
    let differing = all.without(&common);
    let shown = given.iter().map(|(name, list)| format!("{name}={}", or_none(list))).collect::<Vec<_>>().join(" ");
    if differing.is_empty() {
        let names = given.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ");
        findings.add(AREA, Severity::Fine, format!("{names} name the same CPUs")).seen(COMMAND_LINE, shown);
        return;
    }
    let title = format!("the parameters do not agree: {} not in all of them", are(&differing));
    let finding = findings.add(AREA, Severity::Warning, title);
    finding.seen(COMMAND_LINE, shown);
    let list = subject.cpus;
    let mut parameters = format!("isolcpus=managed_irq,domain,{list}");
    for (name, option) in [("nohz_full", STOPPABLE_TICK), ("rcu_nocbs", MOVABLE_CALLBACKS)] {
        if subject.built_with(option) != Some(false) {
            parameters += &format!(" {name}={list}");
        }
    }
    finding.boot(parameters).fix("give all the same list");
}

/// Partitions that the kernel reports as invalid.
fn groups(subject: &Subject<'_>, findings: &mut Findings<'_>) {
    for group in subject.partitions.iter().filter(|group| group.state.contains("invalid")) {
        findings
            .add(AREA, Severity::Error, format!("the cpuset partition {} is not in force", group.group.display()))
            .seen(format!("{}/cpuset.cpus.partition", group.group.display()), group.state.clone())
            .fix("the kernel's reason is in brackets: give the group CPUs that no other group has, below a valid partition");
    }
}

/// Hardware threads of one core disturb each other, without any kernel event.
fn shared_cores(subject: &Subject<'_>, findings: &mut Findings<'_>) {
    let mut outside: Vec<CpuList> = Vec::new();
    let mut inside = 0;
    for cpu in subject.cpus.iter() {
        let Some(threads) = findings.read(AREA, siblings(subject.root, cpu)).flatten() else { continue };
        let threads = threads.intersection(&subject.sets.online);
        outside.push(threads.without(subject.cpus));
        inside += usize::from(threads.intersection(subject.cpus).len() > 1);
    }
    let outside: CpuList = outside.iter().flat_map(CpuList::iter).collect();
    let example = format!("/sys/devices/system/cpu/cpu{}/topology/thread_siblings_list", subject.first());
    let first = siblings(subject.root, subject.first()).ok().flatten().unwrap_or_default();
    if !outside.is_empty() {
        let title = format!("{} share cores with {}, which are not among them", cpus(&outside), subject.named());
        findings
            .add(AREA, Severity::Warning, title)
            .seen(example.clone(), first.to_string())
            .fix("keep cores whole: take the siblings in and leave them idle, or switch them off")
            .by(Family::Smt)
            .lets(Known::Unseen);
    }
    if inside > 0 {
        let title = format!("{inside} of {} CPUs share their core with another of them", subject.cpus.len());
        findings
            .add(AREA, Severity::Note, title)
            .seen(example, first.to_string())
            .fix("run one thread a core, or switch the siblings off")
            .by(Family::Smt)
            .lets(Known::Unseen);
    }
}
