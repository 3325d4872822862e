//! A run of work on the terminal.

use std::io::{self, Write};

use becalm_analyze::work::{BaselineComparison, CpiFrom, CpuWork, RULE, Tone, WorkSummary};
use becalm_model::node::{Fixed, NodeDoc, WorkDoc};
use becalm_units::printable;

use super::fields::{COUNT, CUMULATIVE, Subtracted, against, cpu, peaks, step, tone};
use super::{comparison, drawing};
use crate::form::field::Field;
use crate::form::paragraph::{line, paragraph};
use crate::form::sheet::Sheet;
use crate::form::table::Table;
use crate::form::value::{fine, grouped, time};
use crate::record::header::{self};

/// Sources that the subtraction shows one by one; the others come off together, in its last line.
const STEPS: usize = 12;

/// What is shown of a frequency.
pub(super) const TONES: &[&Field<Tone>] =
    &[&tone::FREQUENCY_HZ, &tone::PERIOD_NS, &tone::SOURCE, &tone::AMPLITUDE_NS, &tone::PROMINENCE_RATIO];

/// What is shown of samples against those of a baseline.
pub(super) const AGAINST_SAMPLES: &[&Field<BaselineComparison>] = &[
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

/// What is shown of repetitions of a second against a baseline.
pub(super) const AGAINST_REPETITIONS: &[&Field<BaselineComparison>] = &[
    &against::REPETITION_MIN_RATIO,
    &against::REPETITION_MEAN_RATIO,
    &against::REPETITION_MEDIAN_RATIO,
    &against::REPETITION_MAX_RATIO,
];

/// Prints runs of work: one after another, and, where the copies on a CPU differ, how they compare.
pub(super) fn render(summaries: &[WorkSummary], out: &mut Sheet<'_>) -> io::Result<()> {
    for (at, summary) in summaries.iter().enumerate() {
        if at > 0 {
            writeln!(out)?;
        }
        run(summary, out)?;
    }
    if summaries.len() > 1 {
        comparison::print(summaries, out)?;
        copies(summaries, out)?;
    }
    Ok(())
}

fn run(summary: &WorkSummary, out: &mut Sheet<'_>) -> io::Result<()> {
    for doc in &summary.nodes {
        head(doc, out)?;
    }
    writeln!(out)?;
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
    let mut table = Table::new(&fields);
    summary.cpus.iter().for_each(|cpu| table.row(&fields, cpu));
    table.print(out)?;
    if let Some(note) = cpi_note(&summary.cpus) {
        writeln!(out)?;
        paragraph(out, "  ", note)?;
    }
    writeln!(out)?;
    paragraph(out, "  ", RULE)?;
    for cpu in &summary.cpus {
        details(cpu, summary.cpus.len() > 1, out)?;
    }
    Ok(())
}

/// Where the cycles an instruction come from; nothing where there are none.
pub(super) fn cpi_note(cpus: &[CpuWork]) -> Option<&'static str> {
    Some(match cpus.iter().find_map(|cpu| cpu.cpi)?.from {
        CpiFrom::Counters => "CPI: cycles an instruction, as the processor counted both in the loop itself",
        CpiFrom::CoreClock => {
            "CPI: cycles an instruction, an estimate: what the calibrated iterations took, at the speed that the core had \
             just before by additions of one cycle each; from and to are by all but the slowest and the fastest twentieth \
             of those. A core that changes its speed later makes it wrong"
        }
    })
}

/// What was done, where and how, and everything that limits what the numbers say.
fn head(doc: &NodeDoc, out: &mut Sheet<'_>) -> io::Result<()> {
    for (label, text) in head_lines(doc) {
        line(out, label, &text)?;
    }
    if !doc.warnings.is_empty() {
        writeln!(out)?;
    }
    for warning in &doc.warnings {
        paragraph(out, "  ! ", &warning.message)?;
        if !warning.advice.is_empty() {
            paragraph(out, "    \u{2192} ", &warning.advice)?;
        }
    }
    Ok(())
}

/// What is known of a node's run: labels with their texts.
pub(super) fn head_lines(doc: &NodeDoc) -> Vec<(&'static str, String)> {
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
        lines.push(("run", format!("{lasted}class {}, {ended}{sessions}", doc.settings.sched)));
    }
    lines.push(("machine", header::machine(&doc.machine)));
    lines.push(("clock", header::clock(&doc.clock)));
    let lost: u64 = doc.cpus.iter().map(|cpu| cpu.lost_events).fold(0, u64::saturating_add);
    lines.push(match &doc.tracing {
        Some(_) if lost > 0 => ("lost", format!("{} kernel events", grouped(lost))),
        Some(_) => ("lost", "nothing".to_owned()),
        None => ("seen", "the samples alone: what ran in them is not known".to_owned()),
    });
    let not_counted = doc.settings.work.iter().flat_map(|work| &work.not_counted);
    lines.extend(not_counted.map(|reason| ("counted", format!("no {reason}"))));
    lines
}

pub(super) fn done(work: &WorkDoc) -> String {
    let what = match work.fixed {
        Fixed::Work => format!("fixed work of {}", work.grain_ns),
        Fixed::Time => format!("fixed time of {}, of which the value is that and what was lost of it", work.grain_ns),
    };
    let memory = match work.memory_bytes {
        0 => String::new(),
        bytes => format!(", on {} KiB", grouped(bytes >> 10)),
    };
    let copies = match work.copies {
        0 | 1 => String::new(),
        copies => format!(", {copies} copies on the CPU, one of them measured"),
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

fn details(cpu: &CpuWork, named: bool, out: &mut Sheet<'_>) -> io::Result<()> {
    if named {
        writeln!(out, "\nCPU {} of {}: {}", cpu.cpu, printable(&cpu.node), printable(&cpu.loop_body))?;
    }
    drawing::histogram(&cpu.curves, out)?;
    peaks(cpu, out)?;
    drawing::cumulative(&cpu.curves, out)?;
    drawing::survival(&cpu.curves, out)?;
    drawing::series(&cpu.curves, out)?;
    cumulative(cpu, out)?;
    subtraction(cpu, out)?;
    tones(cpu, out)?;
    counts(cpu, out)?;
    if let Some(against) = &cpu.baseline {
        writeln!(out, "\nAgainst the baseline (its values times {}; 1 is the same)", against.scale)?;
        let fields = AGAINST_SAMPLES;
        let mut table = Table::new(fields);
        table.row(fields, against);
        table.print(out)?;
        if against.repetitions.is_some() {
            writeln!(out, "\nRepetitions of a second, by the baseline's mean for the same work")?;
            let fields = AGAINST_REPETITIONS;
            let mut table = Table::new(fields);
            table.row(fields, against);
            table.print(out)?;
        }
    }
    Ok(())
}

/// Repetitions of a second, where the samples are shorter.
fn cumulative(cpu: &CpuWork, out: &mut Sheet<'_>) -> io::Result<()> {
    let Some(cumulative) = cpu.cumulative.as_ref().filter(|cumulative| cumulative.samples_each > 1) else {
        return Ok(());
    };
    writeln!(out, "\nRepetitions of a second: consecutive samples together, by what they would take undisturbed")?;
    let fields: Vec<_> = CUMULATIVE.iter().collect();
    let mut table = Table::new(&fields);
    table.row(&fields, cumulative);
    table.print(out)
}

/// What the processor counted.
fn counts(cpu: &CpuWork, out: &mut Sheet<'_>) -> io::Result<()> {
    if cpu.counts.is_empty() {
        return Ok(());
    }
    writeln!(out, "\nThe processor's counters: in the loop itself (user), and in what interrupted it (kernel)")?;
    let fields: Vec<_> = COUNT.iter().collect();
    let mut table = Table::new(&fields);
    cpu.counts.iter().for_each(|count| table.row(&fields, count));
    table.print(out)?;
    if cpu.counts.iter().any(|count| count.counted_ratio < 1.0) {
        let note = "counted: for which part of the time; the processor has too few counters for all at once, so they take \
                    turns, and the figures are scaled up. The turns are taken by a timer, which interrupts the CPU, too";
        paragraph(out, "  ", note)?;
    }
    Ok(())
}

/// What the timer's interrupt does to a grain shorter than its period.
fn peaks(cpu: &CpuWork, out: &mut Sheet<'_>) -> io::Result<()> {
    let Some(found) = &cpu.peaks else { return Ok(()) };
    let said = if found.are_apart { "two peaks" } else { "no two peaks" };
    let text = format!(
        "{said}: the timer's interrupt came in {} of the samples ({} if it came at equal distances), whose median is {}; that of the others is {}",
        peaks::HIT_RATIO.cell(found),
        peaks::EXPECTED_RATIO.cell(found),
        peaks::HIT_MEDIAN_NS.cell(found),
        peaks::MISSED_MEDIAN_NS.cell(found)
    );
    writeln!(out)?;
    paragraph(out, "  ", &text)
}

fn subtraction(cpu: &CpuWork, out: &mut Sheet<'_>) -> io::Result<()> {
    let Some(last) = cpu.subtraction.last() else { return Ok(()) };
    writeln!(out, "\nSubtraction: the samples less the direct time of each source in turn, and what is left of them")?;
    let fields = [
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
    let mut table = Table::new(&fields);
    table.row(&fields, &Subtracted { step: None, left: cpu.spread, all_ns: cpu.duration_ns });
    for step in cpu.subtraction.iter().take(STEPS) {
        table.row(&fields, &Subtracted { step: Some(step.clone()), left: step.left, all_ns: cpu.duration_ns });
    }
    table.print(out)?;
    if cpu.subtraction.len() > STEPS {
        let others = &cpu.subtraction[STEPS..];
        let total: i64 = others.iter().map(|step| step.total_ns).sum();
        let text = format!(
            "{} further sources took {} together; without them, too: mean {}, stddev {}, max {}",
            others.len(),
            time(total),
            fine(last.left.mean_ns.round() as i64),
            time(last.left.stddev_ns.round() as i64),
            fine(last.left.max_ns)
        );
        paragraph(out, "  ", &text)?;
    }
    writeln!(out)?;
    let rest = match cpu.beyond_middle_ns() {
        Some((all, rest)) => format!(
            "left above the main body's middle, on the average: {} of {} a sample: entries and exits, caches, and what no \
             trace of the kernel shows",
            time(rest.round() as i64),
            time(all.round() as i64)
        ),
        None => IN_MOST.to_owned(),
    };
    paragraph(out, "  ", &rest)?;
    paragraph(out, "  ", "\"there\": the samples in which the source came, after it was taken out")
}

/// What is said instead of what is left, where the main body is disturbed itself.
pub(super) const IN_MOST: &str = "the sources are in so many samples that the main body holds them too: what is left has no \
                                  undisturbed middle to be held against (--baseline does that)";

fn tones(cpu: &CpuWork, out: &mut Sheet<'_>) -> io::Result<()> {
    let Some(tones) = &cpu.tones else { return Ok(()) };
    writeln!(out, "\nFrequencies in the time that was lost, up to {}", hertz(tones.highest_hz))?;
    if tones.tones.is_empty() {
        return paragraph(
            out,
            "  ",
            &format!(
                "none: no power stands out {:.1} times from its surroundings, and the slowest samples have no period; {} can be \
                 told apart",
                tones.threshold_ratio,
                hertz(tones.resolution_hz)
            ),
        );
    }
    let fields = TONES;
    let mut table = Table::new(fields);
    tones.tones.iter().for_each(|tone| table.row(fields, tone));
    table.print(out)
}

pub(super) fn hertz(hz: f64) -> String {
    format!("{} Hz", crate::form::value::three_digits(hz))
}

/// Runs with different numbers of copies, by their combined throughput.
fn copies(summaries: &[WorkSummary], out: &mut Sheet<'_>) -> io::Result<()> {
    let works = || summaries.iter().flat_map(|summary| &summary.nodes).filter_map(|doc| doc.settings.work.as_ref());
    if works().all(|work| work.copies == 1) {
        return Ok(());
    }
    writeln!(out, "\nCopies on a CPU: the time of one iteration, by all of them together")?;
    for summary in summaries {
        let copies = summary.nodes.iter().find_map(|doc| doc.settings.work.as_ref()).map_or(1, |work| work.copies);
        for cpu in &summary.cpus {
            let Some(ns) = cpu.ns_per_iteration() else { continue };
            let text =
                if ns >= 1e4 { fine(ns.round() as i64) } else { format!("{}ns", crate::form::value::three_digits(ns)) };
            writeln!(out, "  {copies:>4} on CPU {}: {text}", cpu.cpu)?;
        }
    }
    Ok(())
}
