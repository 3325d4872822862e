//! Plain names of noise sources, for people. Documents and options use the kind and the stable name.

use crate::carried::{TICK, TIMERS};
use crate::node::MachineDoc;
use crate::{Kind, Platform, not_traced, unseen};

/// The common platform of these machines; `None` if it is unknown or differs.
pub fn platform<'a>(machines: impl IntoIterator<Item = &'a MachineDoc>) -> Option<Platform> {
    let mut platforms = machines.into_iter().map(|machine| match &machine.hypervisor {
        Some(_) => Some(Platform::Guest),
        // A document without a kernel does not describe its machine.
        None => (!machine.kernel.is_empty()).then_some(Platform::Metal),
    });
    let first = platforms.next()??;
    platforms.all(|platform| platform == Some(first)).then_some(first)
}

/// The plain name of a source on this platform.
#[must_use]
pub fn plain_name(kind: Kind, source: &str, platform: Option<Platform>) -> String {
    match kind {
        Kind::Irq => interrupt(source),
        Kind::Nmi => "non-maskable interrupt".to_owned(),
        Kind::Softirq => format!("softirq {source}"),
        Kind::Workqueue => format!("work item {}", source.strip_prefix("kworker:").unwrap_or(source)),
        Kind::Kthread => format!("kernel thread {source}"),
        Kind::Task => format!("thread {source}"),
        Kind::Fault => format!("page fault ({source})"),
        Kind::Throttling => match source {
            "rt_throttling" => "limit of real-time threads".to_owned(),
            "cfs_bandwidth" => "CPU quota of its control group".to_owned(),
            other => format!("throttling {other}"),
        },
        Kind::Edge => format!("kernel {source}"),
        Kind::Becalm => "becalm itself".to_owned(),
        Kind::NotTraced => match source {
            not_traced::MISSING_SWITCH => "not traced (switches missing)".to_owned(),
            not_traced::LOST_EVENTS => "not traced (events dropped)".to_owned(),
            _ => "not traced".to_owned(),
        },
        Kind::Unseen => without_event(source, platform).to_owned(),
    }
}

fn interrupt(source: &str) -> String {
    if source == TICK {
        return "timer tick".to_owned();
    }
    if TIMERS.contains(&source) {
        return format!("timer interrupt ({source})");
    }
    if let Some(function) = source.strip_prefix("timer:") {
        return format!("timer {function}");
    }
    match source.strip_prefix("ipi:") {
        Some(function) => format!("IPI {function}"),
        None => format!("interrupt {source}"),
    }
}

/// The cause of time without a kernel event.
fn without_event(source: &str, platform: Option<Platform>) -> &'static str {
    match (source, platform) {
        (unseen::SHORT, _) => "processor, below 1 us",
        (unseen::EXIT_TO_HOST, _) => "VM exit",
        (unseen::STALL, _) => "hardware stall",
        (unseen::STOLEN, _) => "steal time (host ran something else)",
        (unseen::SMI, _) => "system management interrupt",
        (unseen::SIBLING, _) => "SMT sibling",
        (unseen::PREEMPTED_BY_HOST, _) => "host preempted guest kernel",
        (unseen::LONG, Some(Platform::Guest)) => "host ran something else",
        (unseen::LONG, Some(Platform::Metal)) => "firmware or hardware",
        _ => "host, firmware or hardware",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine(kernel: &str, hypervisor: Option<&str>) -> MachineDoc {
        MachineDoc { kernel: kernel.to_owned(), hypervisor: hypervisor.map(str::to_owned), ..MachineDoc::default() }
    }

    #[test]
    fn time_without_events_is_named_by_what_the_machine_is() {
        let (guest, metal, unknown) = (machine("6.18", Some("KVM")), machine("6.18", None), machine("", None));
        let name =
            |machines: &[&MachineDoc]| plain_name(Kind::Unseen, unseen::LONG, platform(machines.iter().copied()));
        assert_eq!(name(&[&guest, &guest]), "host ran something else");
        assert_eq!(name(&[&metal]), "firmware or hardware");
        for machines in [&[][..], &[&guest, &metal], &[&unknown], &[&metal, &unknown]] {
            assert_eq!(name(machines), "host, firmware or hardware");
        }
    }

    #[test]
    fn interrupts_are_named_by_their_purpose() {
        let name = |source| plain_name(Kind::Irq, source, None);
        assert_eq!(name("tick"), "timer tick");
        assert_eq!(name("local_timer"), "timer interrupt (local_timer)");
        assert_eq!(name("timer:hrtimer_wakeup"), "timer hrtimer_wakeup");
        assert_eq!(name("ipi:flush_tlb_func"), "IPI flush_tlb_func");
        assert_eq!(name("nvme0q1"), "interrupt nvme0q1");
        assert_eq!(plain_name(Kind::Workqueue, "kworker:vmstat_update", None), "work item vmstat_update");
    }
}
