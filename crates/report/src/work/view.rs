//! Runs of work for people.

use std::path::Path;

use becalm_analyze::work::{BaselineComparison, CpiFrom, CpuWork, SubtractionStep, Tone, WorkSummary};
use becalm_model::node::{Fixed, NodeDoc, WorkDoc};
use becalm_units::counted;

use super::fields::{COUNT, CUMULATIVE, Subtracted, against, cpu, peaks, step, tone};
use super::{comparison, drawing, html};
use crate::Value;
use crate::form::field::Field;
use crate::form::section::{Block, Page, Section};
use crate::form::table::Table;
use crate::form::value::{fine, grouped, three_digits, time};
use crate::form::words::quoted;
use crate::predict::view::warning;
use crate::record::header;

/// The number of CPUs and of sources in the short text.
const FEW: usize = 4;

/// The rule for outliers in plain words.
const OUTLIERS: &str = "outliers: samples that differ from the median by more than 1 % and by more than 7.4 times the usual difference (median \
                        absolute deviation)";

/// The columns of a frequency.
const TONES: &[&Field<Tone>] =
    &[&tone::FREQUENCY_HZ, &tone::PERIOD_NS, &tone::SOURCE, &tone::AMPLITUDE_NS, &tone::PROMINENCE_RATIO];

/// The columns of samples compared with a baseline.
const AGAINST_SAMPLES: &[&Field<BaselineComparison>] = &[
    &against::BASELINE_SAMPLES,
    &against::BASELINE_MEAN_NS,
    &against::BASELINE_MEDIAN_NS,
    &against::BASELINE_P99_NS,
    &against::BASELINE_MAX_NS,
    &against::MEAN_RATIO,
    &against::MEDIAN_RATIO,
    &against::P99_RATIO,
    &against::MAX_RATIO,
    &against::DISTANCE_RATIO,
    &against::BEYOND,
];

/// The columns of one-second repetitions compared with a baseline.
const AGAINST_REPETITIONS: &[&Field<BaselineComparison>] = &[
    &against::REPETITION_MIN_RATIO,
    &against::REPETITION_MEAN_RATIO,
    &against::REPETITION_MEDIAN_RATIO,
    &against::REPETITION_MAX_RATIO,
];

/// Runs of work, one after another and side by side; charts only for a single one. Without `all`, each in a few lines.
pub(super) fn page(summaries: &[WorkSummary], all: bool) -> Page {
    let mut sections = if let [summary] = summaries { html::sections(summary) } else { Vec::new() };
    let gap = |at| (at > 0).then(|| Block::Lines(vec![String::new()]));
    let of_run = |run| if all { full(run) } else { brief(run, summaries.len() == 1) };
    let runs = summaries.iter().enumerate().flat_map(|(at, run)| gap(at).into_iter().chain(of_run(run)));
    sections.push(Section::new("samples", "Samples", "Measurement and settings", runs.collect()));
    if summaries.len() > 1 {
        sections.extend(comparison::section(summaries));
        sections.extend(copies(summaries));
    }
    let name = |path: &Path| {
        path.file_stem().map_or_else(|| path.to_string_lossy(), |name| name.to_string_lossy()).into_owned()
    };
    let names: Vec<String> = summaries.iter().map(|summary| name(&summary.path)).collect();
    let docs = || summaries.iter().flat_map(|summary| &summary.nodes);
    let mut nodes: Vec<&str> = docs().map(|doc| doc.node.as_str()).collect();
    nodes.dedup();
    let when = docs().map(header::when).min().unwrap_or_default();
    Page {
        title: format!("{}: work and its interruptions", names.join(", ")),
        subtitle: format!("{} \u{b7} {when}", nodes.join(", ")),
        sections,
        foot: Vec::new(),
    }
}

/// The cost of interruptions, their sources, and the most important figures; without the latter if the runs are compared.
fn brief(summary: &WorkSummary, with_table: bool) -> Vec<Block> {
    let named = html::by_name(summary);
    let Some(worst) = html::slowest(&named) else { return summary.nodes.iter().flat_map(head).collect() };
    let mut facts = Vec::new();
    if let Some(work) = summary.nodes.iter().find_map(|doc| doc.settings.work.as_ref()) {
        facts.push(("work", done(work)));
    }
    facts.push(("sources", sources(summary, worst.cpu)));
    facts.push(("details", format!("becalm report {} --full", quoted(&summary.path.to_string_lossy()))));
    let mut blocks = vec![Block::Lead(html::answer(&named, worst).1), Block::facts(facts)];
    let mut warnings = summary.nodes.iter().flat_map(|doc| &doc.warnings);
    if let Some(first) = warnings.next() {
        let more = warnings.count();
        let more = if more > 0 {
            format!(" (and {})", counted(more as u64, "more warning", "more warnings"))
        } else {
            String::new()
        };
        blocks.push(Block::warning(format!("{}{more}", first.message)));
    }
    if with_table {
        let mut slowest: Vec<&CpuWork> = summary.cpus.iter().collect();
        slowest.sort_by(|a, b| html::cost(b).total_cmp(&html::cost(a)));
        let of = summary.cpus.len();
        let table = Table::filled(&brief_fields(summary), slowest)
            .captioned("Samples")
            .with_most_important(FEW, |_| format!("the slowest {FEW} of {of} CPUs"));
        blocks.extend([gap(), Block::Table(table)]);
    }
    blocks
}

/// The columns of the short text.
fn brief_fields(summary: &WorkSummary) -> Vec<&'static Field<CpuWork>> {
    let node = (summary.nodes.len() > 1).then_some(&cpu::NODE);
    let figures = [&cpu::CPU, &cpu::SAMPLES, &cpu::MIN_NS, &cpu::MEDIAN_NS, &cpu::MEAN_NS, &cpu::P99_NS, &cpu::MAX_NS];
    node.into_iter().chain(figures).collect()
}

/// The sources that took most of the time of a CPU, with their shares.
fn sources(summary: &WorkSummary, cpu: &CpuWork) -> String {
    if summary.nodes.iter().all(|doc| doc.tracing.is_none()) {
        return "unknown, because the kernel was not traced".to_owned();
    }
    if cpu.subtraction.is_empty() {
        return "none".to_owned();
    }
    let share = |step: &SubtractionStep| {
        format!("{} {}", step.source, Value::Ratio(step.total_ns as f64 / cpu.duration_ns.max(1) as f64).cell())
    };
    let shares: Vec<String> = cpu.subtraction.iter().take(FEW).map(share).collect();
    let more = cpu.subtraction.len().saturating_sub(FEW);
    let more = if more > 0 { format!(", and {more} more") } else { String::new() };
    format!("{} of the time{more}", shares.join(", "))
}

fn full(summary: &WorkSummary) -> Vec<Block> {
    let mut blocks: Vec<Block> = summary.nodes.iter().flat_map(head).collect();
    blocks.push(gap());
    blocks.push(samples(summary));
    if let Some(note) = cpi_note(&summary.cpus) {
        blocks.extend([gap(), Block::Text(note.to_owned())]);
    }
    blocks.extend([gap(), Block::Text(OUTLIERS.to_owned())]);
    blocks.extend(summary.cpus.iter().flat_map(|cpu| details(cpu, summary.cpus.len() > 1)));
    blocks.push(Block::OnPage(vec![loops(summary)]));
    blocks
}

/// An empty line on a terminal.
fn gap() -> Block {
    Block::Lines(vec![String::new()])
}

fn samples(summary: &WorkSummary) -> Block {
    let fields = [
        &cpu::NODE,
        &cpu::CPU,
        &cpu::SAMPLES,
        &cpu::ITERATIONS,
        &cpu::MEAN_NS,
        &cpu::STDDEV_NS,
        &cpu::MIN_NS,
        &cpu::P25_NS,
        &cpu::MEDIAN_NS,
        &cpu::P75_NS,
        &cpu::P99_NS,
        &cpu::P999_NS,
        &cpu::MAX_NS,
        &cpu::FASTIES,
        &cpu::SLOWIES,
    ];
    let mut fields = if summary.nodes.len() > 1 { fields.to_vec() } else { fields[1..].to_vec() };
    if summary.cpus.iter().any(|cpu| cpu.loop_body != summary.cpus[0].loop_body) {
        let behind = fields.iter().position(|field| field.name == cpu::CPU.name).map_or(0, |at| at + 1);
        fields.insert(behind, &cpu::LOOP_BODY);
    }
    if summary.cpus.iter().any(|cpu| cpu.cpi.is_some()) {
        fields.extend([&cpu::CPI, &cpu::CPI_LOW, &cpu::CPI_HIGH]);
    }
    Block::Table(Table::filled(&fields, &summary.cpus).captioned("Samples"))
}

/// The data of the loops besides their samples.
fn loops(summary: &WorkSummary) -> Block {
    let fields =
        [&cpu::NODE, &cpu::CPU, &cpu::CALIBRATED_NS, &cpu::DURATION_NS, &cpu::ALL_ITERATIONS, &cpu::INCOMPLETE];
    Block::Table(Table::filled(&fields, &summary.cpus).captioned("Measuring loops"))
}

/// The source of the cycles per instruction; `None` without any.
fn cpi_note(cpus: &[CpuWork]) -> Option<&'static str> {
    Some(match cpus.iter().find_map(|cpu| cpu.cpi)?.from {
        CpiFrom::Counters => "CPI: cycles per instruction, counted by the processor in the loop",
        CpiFrom::CoreClock => {
            "CPI: cycles per instruction, estimated from the calibrated iterations and the speed of the core just before them. From \
             and to leave out the slowest and the fastest 5 % of those. It is wrong if the core changes its speed later"
        }
    })
}

/// The work, the machine, the settings, and everything that limits the numbers.
fn head(doc: &NodeDoc) -> Vec<Block> {
    let facts = head_lines(doc).into_iter().map(|(label, text)| (label.to_owned(), text)).collect();
    let gap = (!doc.warnings.is_empty()).then(gap);
    [Block::Facts(facts)].into_iter().chain(gap).chain(doc.warnings.iter().map(warning)).collect()
}

/// The facts about a node's run: labels with texts.
fn head_lines(doc: &NodeDoc) -> Vec<(&'static str, String)> {
    let mut lines = vec![("node", format!("{}, {}", doc.node, header::when(doc)))];
    if let Some(work) = &doc.settings.work {
        let longest = doc.cpus.iter().map(|cpu| cpu.duration_ns.get()).max().unwrap_or(0);
        let lasted = if longest > 0 { format!("{}, ", time(longest)) } else { String::new() };
        let sessions = match work.sessions.len() {
            0 | 1 => String::new(),
            parts => format!(", in {parts} sessions"),
        };
        let ended = header::ended(doc.ended);
        lines.push(("work", done(work)));
        lines.push(("run", format!("{lasted}scheduling class {}, {ended}{sessions}", doc.settings.sched)));
    }
    lines.push(("machine", header::machine(&doc.machine)));
    lines.push(("clock", header::clock(&doc.clock)));
    let lost: u64 = doc.cpus.iter().map(|cpu| cpu.lost_events).fold(0, u64::saturating_add);
    lines.push(match &doc.tracing {
        Some(_) if lost > 0 => ("trace", format!("incomplete: {} kernel events dropped", grouped(lost))),
        Some(_) => ("trace", "complete".to_owned()),
        None => ("trace", "none: only the samples are known, not what interrupted them".to_owned()),
    });
    let not_counted = doc.settings.work.iter().flat_map(|work| &work.not_counted);
    lines.extend(not_counted.map(|reason| ("counters", format!("no {reason}"))));
    lines
}

pub(super) fn done(work: &WorkDoc) -> String {
    let what = match work.fixed {
        Fixed::Work => format!("fixed work of {}", work.grain_ns),
        Fixed::Time => format!("fixed time of {} (a value is that and the time lost in it)", work.grain_ns),
    };
    let memory = match work.memory_bytes {
        0 => String::new(),
        bytes => format!(", on {} KiB", grouped(bytes >> 10)),
    };
    let copies = match work.copies {
        0 | 1 => String::new(),
        copies => format!(", {copies} copies on the CPU, one measured"),
    };
    let added = match work.added_hz {
        0 => String::new(),
        hz => format!(", with {} more timer interrupts a second", grouped(hz.into())),
    };
    let calibrated: Vec<String> = work.loops.iter().map(|work_loop| fine(work_loop.calibrated_ns.get())).collect();
    let unit = match work.fixed {
        Fixed::Work => "a sample calibrated at",
        Fixed::Time => "a step at",
    };
    let calibrated = if calibrated.len() > 8 { String::new() } else { format!(", {unit} {}", calibrated.join(", ")) };
    format!("{} ({}){memory}: {what}{calibrated}{copies}{added}", work.body, work.iteration)
}

fn details(cpu: &CpuWork, named: bool) -> Vec<Block> {
    let title = || Block::Heading(format!("CPU {} of {}: {}", cpu.cpu, cpu.node, cpu.loop_body));
    let mut blocks: Vec<Block> = named.then(title).into_iter().collect();
    blocks.push(Block::Lines(drawing::histogram(&cpu.curves)));
    blocks.extend(peaks(cpu));
    for draw in [drawing::cumulative, drawing::survival, drawing::series] {
        blocks.push(Block::Lines(draw(&cpu.curves)));
    }
    // One-second repetitions, if the samples are shorter.
    if let Some(cumulative) = cpu.cumulative.as_ref().filter(|cumulative| cumulative.samples_each > 1) {
        let title = "Repetitions of a second: consecutive samples together, relative to undisturbed";
        blocks.extend(titled(title.to_owned(), Table::filled(&CUMULATIVE.iter().collect::<Vec<_>>(), [cumulative])));
    }
    blocks.extend(subtraction(cpu));
    blocks.extend(tones(cpu));
    blocks.extend(counts(cpu));
    if let Some(against) = &cpu.baseline {
        let title = format!("Against the baseline (its values times {}; 1 is equal)", against.scale);
        blocks.extend(titled(title, Table::filled(AGAINST_SAMPLES, [against])));
        if against.repetitions.is_some() {
            let title = "Repetitions of a second, relative to the baseline's mean for the same work";
            blocks.extend(titled(title.to_owned(), Table::filled(AGAINST_REPETITIONS, [against])));
        }
    }
    blocks
}

fn titled(title: String, table: Table) -> [Block; 2] {
    [Block::Heading(title.clone()), Block::Table(table.captioned(&title))]
}

/// The processor's counts.
fn counts(cpu: &CpuWork) -> Vec<Block> {
    if cpu.counts.is_empty() {
        return Vec::new();
    }
    let title = "The processor's events, in the loop (user) and in interruptions (kernel)";
    let table = Table::filled(&COUNT.iter().collect::<Vec<_>>(), &cpu.counts);
    let note = "counted: the share of the time. The processor has too few counters for all events, so they take turns, and the figures \
                are scaled up. The timer that switches them interrupts the CPU, too";
    let is_scaled = cpu.counts.iter().any(|count| count.counted_ratio < 1.0);
    let note = is_scaled.then(|| Block::Text(note.to_owned()));
    titled(title.to_owned(), table).into_iter().chain(note).collect()
}

/// The effect of the timer interrupt on a grain shorter than its period.
fn peaks(cpu: &CpuWork) -> Vec<Block> {
    let Some(found) = &cpu.peaks else { return Vec::new() };
    let said = if found.are_apart { "two peaks" } else { "no two peaks" };
    let text = format!(
        "{said}: the timer interrupt hit {} of the samples ({} if it were evenly spaced). Their median is {}, that of the others {}",
        peaks::HIT_RATIO.cell(found),
        peaks::EXPECTED_RATIO.cell(found),
        peaks::HIT_MEDIAN_NS.cell(found),
        peaks::MISSED_MEDIAN_NS.cell(found)
    );
    vec![gap(), Block::Text(text)]
}

fn subtraction(cpu: &CpuWork) -> Vec<Block> {
    if cpu.subtraction.is_empty() {
        return Vec::new();
    }
    let title = "Subtraction: the samples minus the direct time of one source after another";
    let row = |step: Option<&SubtractionStep>| Subtracted {
        step: step.cloned(),
        left: step.map_or(cpu.spread, |step| step.left),
        all_ns: cpu.duration_ns,
    };
    let rows: Vec<Subtracted> = [None].into_iter().chain(cpu.subtraction.iter().map(Some)).map(row).collect();
    let mut blocks = titled(title.to_owned(), Table::filled(&SUBTRACTED, &rows)).to_vec();
    let rest = match cpu.beyond_middle_ns() {
        Some((all, rest)) => format!(
            "rest above the median: {} of {} per sample on average: entry/exit overhead, cold caches, and time that no kernel trace \
             shows",
            time(rest.round() as i64),
            time(all.round() as i64)
        ),
        None => IN_MOST.to_owned(),
    };
    let there = "\"there\": the samples with this source, without its time";
    blocks.extend([gap(), Block::Text(rest), Block::Text(there.to_owned())]);
    blocks
}

/// The columns of a step of the subtraction.
const SUBTRACTED: [&Field<Subtracted>; 15] = [
    &step::SOURCE,
    &step::KIND,
    &step::COUNT,
    &step::SAMPLES,
    &step::TOTAL_NS,
    &step::SHARE_RATIO,
    &step::MEAN_NS,
    &step::STDDEV_NS,
    &step::MEDIAN_NS,
    &step::P99_NS,
    &step::MAX_NS,
    &step::SLOWIES,
    &step::TOUCHED_MEAN_NS,
    &step::TOUCHED_STDDEV_NS,
    &step::TOUCHED_BACK,
];

/// The text shown instead of the remainder if the main body itself is disturbed.
pub(super) const IN_MOST: &str =
    "the sources are in most samples, so there is no undisturbed median to compare the rest with (use --baseline)";

fn tones(cpu: &CpuWork) -> Vec<Block> {
    let Some(tones) = &cpu.tones else { return Vec::new() };
    let title = format!("Frequencies of lost time, up to {}", hertz(tones.highest_hz));
    if !tones.tones.is_empty() {
        return titled(title, Table::filled(TONES, &tones.tones)).to_vec();
    }
    let none = format!(
        "none: no power is {:.1} times that of its surroundings, and the slowest samples have no period (resolution {})",
        tones.threshold_ratio,
        hertz(tones.resolution_hz)
    );
    vec![Block::Heading(title), Block::Text(none)]
}

pub(super) fn hertz(hz: f64) -> String {
    format!("{} Hz", three_digits(hz))
}

/// Runs with different numbers of copies, by their combined throughput.
fn copies(summaries: &[WorkSummary]) -> Option<Section> {
    let works = || summaries.iter().flat_map(|summary| &summary.nodes).filter_map(|doc| doc.settings.work.as_ref());
    if works().all(|work| work.copies == 1) {
        return None;
    }
    let mut blocks = Vec::new();
    for summary in summaries {
        let copies = summary.nodes.iter().find_map(|doc| doc.settings.work.as_ref()).map_or(1, |work| work.copies);
        for cpu in &summary.cpus {
            let Some(ns) = cpu.ns_per_iteration() else { continue };
            let text = if ns >= 1e4 { fine(ns.round() as i64) } else { format!("{}ns", three_digits(ns)) };
            blocks.push(Block::Remark(format!("{copies} on CPU {}", cpu.cpu), text));
        }
    }
    Some(Section::named("copies", "Copies on a CPU: time per iteration, all copies together", blocks))
}
