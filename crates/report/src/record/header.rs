//! The header of a report: what was recorded, where and how, and everything that limits the numbers.

use becalm_analyze::summary::{Books, Found, Measuring, NodeSummary, Summary};
use becalm_model::node::{ClockDoc, Ended, MachineDoc, NodeDoc, Rung, SettingsDoc, Warning};
use becalm_model::warning::Code;
use becalm_units::Nanos;

use crate::Value;
use crate::form::known::system;
use crate::form::section::{Block, Section};
use crate::form::value::{grouped, three_digits, time};
use becalm_units::plural;

/// The most interrupt lines named as incomplete in the trace.
const LACKING: usize = 3;

/// The recording, the machine, the settings, and every warning.
pub(crate) fn section(summary: &Summary) -> Section {
    let mut blocks: Vec<Block> = summary.nodes.iter().map(|node| Block::Facts(node_lines(node))).collect();
    blocks.push(Block::Facts(whole_lines(summary)));
    let warnings: Vec<Block> = warnings(summary, |warning| warning.known() != Some(Code::TraceChanged)).collect();
    if !warnings.is_empty() {
        blocks.push(Block::OnTerminal([Block::gap()].into_iter().chain(warnings).collect()));
    }
    Section::new("machine", "Machine", "Machine, clock and losses", blocks)
        .explained("The recording, the accuracy of its clock, and its losses.")
}

/// Changes of the trace by other programs, before everything else because they affect the meaning of the sources.
pub(crate) fn changes(summary: &Summary) -> Option<Section> {
    let warnings = warnings(summary, |warning| warning.known() == Some(Code::TraceChanged));
    let blocks: Vec<Block> = warnings.flat_map(|warning| [warning, Block::Lines(vec![String::new()])]).collect();
    (!blocks.is_empty()).then(|| Section::new("changes", "Trace", "The trace was changed", blocks))
}

/// The wanted warnings, with their nodes if there are several.
pub(crate) fn warnings(summary: &Summary, is_wanted: fn(&Warning) -> bool) -> impl Iterator<Item = Block> {
    let wanted = summary.warnings.iter().filter(move |(_, warning)| is_wanted(warning));
    wanted.map(|(node, warning)| {
        let node_prefix = if summary.nodes.len() > 1 { format!("{node}: ") } else { String::new() };
        Block::Warning { text: format!("{node_prefix}{}", warning.message), advice: warning.advice.clone() }
    })
}

/// The facts about one node's recording: labels with texts.
fn node_lines(node: &NodeSummary) -> Vec<(String, String)> {
    let doc = &node.doc;
    let mut lines = vec![
        ("node", format!("{}, {}", doc.node, when(doc))),
        ("run", run(doc)),
        ("machine", machine(&doc.machine)),
        ("clock", clock(&doc.clock)),
        ("seen", seen(doc)),
    ];
    let missing = doc.tracing.iter().flat_map(|tracing| &tracing.missing);
    lines.extend(missing.map(|missing| ("not seen", missing.clone())));
    lines.into_iter().map(|(label, text)| (label.to_owned(), text)).collect()
}

/// The facts about the whole recording.
fn whole_lines(summary: &Summary) -> Vec<(String, String)> {
    let lines = [
        ("sums", books(summary)),
        ("checked", checked(summary)),
        ("dropped", Some(lost(summary))),
        ("tracing", measuring(summary)),
        ("steal", steal(summary)),
        ("SMI", smis(summary)),
    ];
    lines.into_iter().filter_map(|(label, text)| Some((label.to_owned(), text?))).collect()
}

/// The start of the recording, to the second.
pub(crate) fn when(doc: &NodeDoc) -> String {
    doc.origin
        .map_or_else(|| "start not known".to_owned(), |origin| origin.strftime("%Y-%m-%d %H:%M:%S UTC").to_string())
}

fn run(doc: &NodeDoc) -> String {
    let longest = doc.cpus.iter().map(|cpu| cpu.duration_ns).max().unwrap_or(Nanos::ZERO);
    let lasted = if doc.ended.is_some() { format!("{}, ", time(longest.get())) } else { String::new() };
    let command = match doc.settings.command.as_slice() {
        [] => String::new(),
        words => format!(", with: {}", words.join(" ")),
    };
    let SettingsDoc { sched, threshold, .. } = &doc.settings;
    let most = doc.settings.detours.map_or_else(String::new, |most| {
        format!(", at most {} {} per CPU", grouped(most), plural(most, "detour", "detours"))
    });
    format!("{lasted}scheduling class {sched}, threshold {threshold}{most}, {}{command}", ended(doc.ended))
}

pub(crate) const fn ended(ended: Option<Ended>) -> &'static str {
    match ended {
        Some(Ended::Duration) => "completed",
        Some(Ended::Detours) => "completed with the requested number of detours",
        Some(Ended::Command) => "ended with its command",
        Some(Ended::Signal) => "ended by a signal",
        Some(Ended::User) => "ended by its user",
        Some(Ended::BufferFull) => "ENDED EARLY: a buffer was full",
        Some(Ended::CpusGone) => "ENDED EARLY: its CPUs went offline or left the cpuset",
        Some(Ended::Unattended) => "ENDED EARLY: its real-time loops left no time to collect their data",
        Some(Ended::Failed) => "FAILED",
        Some(Ended::Unknown) => "how it ended is not known",
        None => "NOT ENDED: still running, or killed",
    }
}

pub(crate) fn machine(machine: &MachineDoc) -> String {
    let mut parts = vec![system(&machine.kernel, &machine.processor)];
    if !machine.online.is_empty() {
        parts.push(format!("CPUs online {}", machine.online));
    }
    parts.extend(machine.hypervisor.as_ref().map(|name| format!("under {name}")));
    for (cpus, what) in [(&machine.isolated, "isolated"), (&machine.nohz_full, "nohz_full")] {
        if !cpus.is_empty() {
            parts.push(format!("{what} {cpus}"));
        }
    }
    if !machine.cache_bytes.is_empty() {
        let sizes: Vec<String> = machine.cache_bytes.iter().map(|bytes| size(*bytes)).collect();
        parts.push(format!("caches of {}", sizes.join(", ")));
    }
    parts.extend(machine.memory_bytes.map(|bytes| format!("{} of memory", size(bytes))));
    parts.extend(machine.highest_hz.map(|hz| format!("at most {} GHz", three_digits(hz as f64 / 1e9))));
    parts.retain(|part| !part.is_empty());
    parts.join(", ")
}

/// A number of bytes in the largest power of 1,024 that it reaches, with three digits.
fn size(bytes: u64) -> String {
    let units = ["B", "KiB", "MiB", "GiB", "TiB"];
    let power = (bytes.max(1).ilog2() as usize / 10).min(units.len() - 1);
    format!("{} {}", three_digits(bytes as f64 / (1_u64 << (10 * power)) as f64), units[power])
}

pub(crate) fn clock(clock: &ClockDoc) -> String {
    // The clock of another program's measurements is unknown.
    if clock.rate_hz <= 0.0 {
        return "unknown".to_owned();
    }
    let mut parts = vec![format!("{}, {:.3} MHz", clock.counter, clock.rate_hz / 1e6)];
    // Foreign recordings do not contain it; a measured rate always has an error.
    parts.push(match clock.rate_error_ratio {
        0.0 => "accuracy not known".to_owned(),
        ratio => format!("accurate to {} ppm", three_digits(ratio * 1e6)),
    });
    parts.push(format!("resolution {}", clock.resolution_ns));
    parts.extend(clock.cross_cpu_ns.map(|offset| format!("CPUs synchronized within {offset}")));
    parts.extend(wall(clock));
    if clock.backwards > 0 {
        parts.push(format!("RAN BACKWARDS {} times", grouped(clock.backwards)));
    }
    parts.join(", ")
}

/// The accuracy of the wall clock, if known.
fn wall(clock: &ClockDoc) -> Option<String> {
    match (clock.wall_synchronized?, clock.wall_error_ns?) {
        (true, error) => Some(format!("wall clock accurate to {error:.1}")),
        (false, _) => Some("wall clock not synchronized (no NTP/PTP)".to_owned()),
    }
}

pub(crate) fn seen(doc: &NodeDoc) -> String {
    if let Some(change) = doc.trace_change() {
        let until = change.traced_until_ns.max(Nanos::ZERO);
        return format!(
            "the loops, and the kernel's tracepoints for the first {until:.3}: sources are known for that time only"
        );
    }
    let is_all = doc.tracing.as_ref().is_none_or(|tracing| tracing.missing.is_empty());
    let seen = match doc.rung {
        Rung::Tracepoints if !doc.has_loop() => {
            if is_all {
                "the kernel's tracepoints alone: every source by its name, without kernel entry and exit"
            } else {
                "some of the kernel's tracepoints alone: sources by their names, except those not seen"
            }
        }
        Rung::Tracepoints if is_all => "the loops and the kernel's tracepoints: every source by its name",
        Rung::Tracepoints => {
            "the loops and some of the kernel's tracepoints: sources by their names, except those not seen"
        }
        Rung::Proc => {
            "the loops and the counters in /proc: detours without names; the counters below bound the sources"
        }
        Rung::Loop => "the loops alone: detours without names",
    };
    seen.to_owned()
}

fn books(summary: &Summary) -> Option<String> {
    let activities: u64 = summary.nodes.iter().map(|node| node.activities).sum();
    match &summary.books {
        Books::Closed => Some(format!(
            "exact: {} activities add up to {} detours, to the nanosecond",
            grouped(activities),
            grouped(summary.total.detours())
        )),
        Books::Open(_) => Some("NOT EXACT: activities do not add up to their detours, see below".to_owned()),
        Books::NoActivities => None,
    }
}

pub(crate) fn lost(summary: &Summary) -> String {
    match (summary.total.lost_events, summary.total.incomplete) {
        (None, 0) => "not known: the file has no count".to_owned(),
        (Some(0), 0) => "no events".to_owned(),
        (lost, incomplete) => {
            let lost = lost.map_or_else(|| "an unknown number of".to_owned(), grouped);
            let detours = plural(incomplete, "detour is", "detours are");
            format!("{lost} kernel events; {} {detours} incomplete", grouped(incomplete))
        }
    }
}

/// The number of system management interrupts, if the processor counts them.
fn smis(summary: &Summary) -> Option<String> {
    let each = || summary.nodes.iter().flat_map(|node| &node.doc.cpus).filter_map(|cpu| cpu.smis);
    let (least, most) = (each().min()?, each().max()?);
    let count = if least == most { grouped(most) } else { format!("{} to {}", grouped(least), grouped(most)) };
    Some(format!("{count} system management {} on each CPU", plural(most, "interrupt", "interrupts")))
}

/// How many of the events counted by the kernel are in the trace, if there is one.
fn checked(summary: &Summary) -> Option<String> {
    if summary.rung != Rung::Tracepoints {
        return None;
    }
    if summary.nodes.iter().any(|node| node.doc.trace_change().is_some()) {
        return Some("no, because the trace was changed".to_owned());
    }
    let Some(checked) = &summary.checked else {
        return Some("no, because the recording has no kernel counts".to_owned());
    };
    let share = |found: Found, what: &str| format!("{} of {} {what}", grouped(found.found), grouped(found.counted));
    let parts =
        [(checked.timers, "timer interrupts"), (checked.others, "other interrupts"), (checked.softirqs, "softirqs")];
    let parts: Vec<String> =
        parts.iter().filter(|(found, _)| found.counted > 0).map(|(found, what)| share(*found, what)).collect();
    let warnings = || summary.nodes.iter().flat_map(|node| &node.doc.warnings);
    // A count of 0 is not enough: a readable file may report that there were none.
    let is_compared = |what| !warnings().any(|it| becalm_model::warning::says_not_compared(it, what));
    let (compared, not_compared): (Vec<_>, Vec<_>) =
        ["interrupts", "softirqs"].into_iter().partition(|what| is_compared(what));
    let not_compared: String = not_compared.into_iter().map(|what| format!("; {what} are not compared")).collect();
    if parts.is_empty() {
        return Some(format!("the kernel counted no {}{not_compared}", compared.join(" and no ")));
    }
    let lacking = checked.lacking.iter().take(LACKING);
    let lacking: Vec<String> =
        lacking.map(|(line, found)| format!("{line} {}", grouped(found.counted - found.found))).collect();
    let lacking = if lacking.is_empty() { String::new() } else { format!("; it lacks {}", lacking.join(", ")) };
    Some(format!("{} that the kernel counted are in the trace{lacking}{not_compared}", parts.join(", ")))
}

/// The cost of writing the trace, if known.
fn measuring(summary: &Summary) -> Option<String> {
    let Measuring { events, event_cost_ns, cost_ns, time_ratio } = summary.measuring?;
    let share = time_ratio.map_or_else(String::new, |ratio| format!(", {} of the time", Value::Ratio(ratio).cell()));
    let each = time(event_cost_ns.round() as i64);
    Some(format!("about {}{share}: {} kernel events, {each} each with warm caches", time(cost_ns), grouped(events)))
}

/// The steal time next to the unseen time. The hypervisor took more: neither exits nor emulation count as steal.
fn steal(summary: &Summary) -> Option<String> {
    let steal = summary.total.steal_ns.filter(|ns| *ns > 0)?;
    let steal = time(steal);
    Some(match summary.total.unseen_ns.filter(|ns| *ns > 0) {
        Some(unseen) => {
            format!("{steal} of steal time, the least that the hypervisor took; {} unseen", time(unseen))
        }
        None => format!("{steal} of steal time, the least that the hypervisor took"),
    })
}
