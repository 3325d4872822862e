//! Is the tick really gone? Evaluates ticks counted while a thread is busy on the CPU, or in a recording. If the kernel does not name its ticks, all
//! timer interrupts are counted.

use std::collections::BTreeMap;

use becalm_model::node::MachineDoc;
use becalm_model::remedy::may_be_the_tick;
use becalm_units::CpuList;

use super::finding::Findings;
use super::subject::{NOHZ_FULL, Subject};
use super::words::cpus;
use crate::Known;
use crate::document::{Area, Finding, Severity, TickCount, TicksFrom};

/// The limit for a stopped tick, in interrupts per second: such a CPU still has timers of its own, and the kernel's slowest tick has 100 per second.
const GONE_HZ: f64 = 20.0;

pub(super) fn check(subject: &Subject<'_>, ticks: &[TickCount], findings: &mut Findings<'_>) {
    let ticks: Vec<&TickCount> = ticks.iter().filter(|count| subject.cpus.contains(count.cpu)).collect();
    let (tickless, ticking): (Vec<&TickCount>, Vec<&TickCount>) =
        ticks.iter().partition(|count| count.rate_hz() < GONE_HZ);
    if !tickless.is_empty() {
        let title = format!("the tick is gone on {}: {}", named(&tickless), rates(&tickless));
        for_each_source(findings.add(Area::Tick, Severity::Fine, title), &tickless);
    }
    let machine = MachineDoc { built_with: tick_hz(subject), ..MachineDoc::default() };
    let (unknown, ticking): (Vec<&TickCount>, Vec<&TickCount>) =
        ticking.into_iter().partition(|count| !count.are_ticks && !may_be_the_tick(count.rate_hz(), [&machine]));
    if !unknown.is_empty() {
        let title = format!(
            "not only the tick interrupts {}, and the kernel does not name the other timers: {}",
            named(&unknown),
            rates(&unknown)
        );
        for_each_source(findings.add(Area::Tick, Severity::Note, title), &unknown);
    }
    let (promised, other): (Vec<&TickCount>, Vec<&TickCount>) =
        ticking.into_iter().partition(|count| subject.sets.nohz_full.contains(count.cpu));
    let crowded =
        |count: &&TickCount| matches!(count.from, TicksFrom::Measured { preempted } if crowds(count, preempted));
    let (crowded, promised): (Vec<&TickCount>, Vec<&TickCount>) = promised.into_iter().partition(crowded);
    for (counts, severity, why) in [
        (promised, Severity::Error, "although nohz_full is to stop it"),
        (crowded, Severity::Warning, "as other threads ran there, too; the kernel stops it for one thread only"),
        (other, Severity::Warning, "while a thread runs"),
    ] {
        if counts.is_empty() {
            continue;
        }
        let title = format!("the tick runs on {}, {why}: {}", named(&counts), rates(&counts));
        let finding = findings.add(Area::Tick, severity, title);
        finding.seen(
            NOHZ_FULL,
            if subject.knows_nohz_full { subject.sets.nohz_full.to_string() } else { "no such file".into() },
        );
        for_each_source(finding, &counts);
        if severity == Severity::Error {
            finding
                .fix("see what keeps it: /sys/kernel/tracing/events/timer/tick_stop says so, by its field dependency");
        }
        finding
            .lets(Known::Tick)
            .lets(Known::LocalTimer)
            .lets(Known::ArchTimer)
            .lets(Known::Timer)
            .lets(Known::AnySoftTimer);
    }
}

/// The tick rate that the kernel was built with.
fn tick_hz(subject: &Subject<'_>) -> BTreeMap<String, String> {
    let hz = subject.config.as_ref().and_then(|config| config.value("HZ"));
    hz.map(|hz| ("HZ".to_owned(), hz.to_owned())).into_iter().collect()
}

/// Whether other threads were frequent enough to be the reason.
fn crowds(count: &TickCount, preempted: u64) -> bool {
    preempted * 10 >= count.interrupts
}

fn for_each_source(finding: &mut Finding, counts: &[&TickCount]) {
    for count in counts.iter().take(4) {
        let during = count.during;
        match count.from {
            TicksFrom::Measured { preempted } => {
                let text = format!("{} on CPU {} in {during:.1}, {preempted} preemptions", count.interrupts, count.cpu);
                let from = if count.are_ticks { "the kernel's trace" } else { "/proc/interrupts" };
                finding.seen(from, text)
            }
            TicksFrom::Recorded => {
                finding.seen("the recording", format!("{} on CPU {} in {during:.1}", count.interrupts, count.cpu))
            }
        };
    }
}

fn named(counts: &[&TickCount]) -> String {
    cpus(&counts.iter().map(|count| count.cpu).collect::<CpuList>())
}

/// `250 ticks a second`, or the lowest and the highest rate.
fn rates(counts: &[&TickCount]) -> String {
    let what = if counts.iter().all(|count| count.are_ticks) { "ticks" } else { "timer interrupts" };
    let rates = counts.iter().map(|count| count.rate_hz());
    let (low, high) = rates.fold((f64::INFINITY, 0.0_f64), |(low, high), rate| (low.min(rate), high.max(rate)));
    let (low, high) = (format!("{low:.0}"), format!("{high:.0}"));
    if low == high { format!("{low} {what} a second") } else { format!("{low} to {high} {what} a second") }
}
