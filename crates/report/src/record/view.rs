//! Reports for a terminal.

use std::cmp::Ordering;
use std::io::{self, Write};

use becalm_analyze::summary::{SourceSummary, Summary};
use becalm_model::node::Rung;

use crate::Value;
use crate::form::field::Field;
use crate::form::paragraph::{heading, paragraph};
use crate::form::sheet::Sheet;
use crate::form::table::Table;
use crate::form::value::{grouped, three_digits};
use crate::form::words::quoted;
use crate::record::conclusion::{Cause, Conclusion};
use crate::record::figures::{self, CounterRow, CpuRow, counter, cpu, interval_note, part, source};
use crate::record::header;
use crate::record::notes::print_notes;
use crate::record::sure;

/// How many CPUs and sources are shown unless all are asked for.
const SHOWN: usize = 20;

/// The whole report: the head, the CPUs, the sources, the loops that measured, what to do next.
pub(super) fn run(summary: &Summary, out: &mut Sheet<'_>) -> io::Result<()> {
    header::print_changes(summary, out)?;
    print_conclusion(summary, out)?;
    header::print(summary, out)?;
    let cpus = shown_cpus(summary, out.all());
    print_cpus(summary, &cpus, out)?;
    sure::print_intervals(summary, &cpus, out)?;
    sure::print_tails(summary, &cpus, out)?;
    sure::print_outliers(summary, out)?;
    print_sources(summary, false, out)?;
    print_anatomy(summary, out)?;
    sure::print_periods(summary, out)?;
    if summary.nodes.iter().any(|node| node.doc.has_loop()) {
        print_loops(summary, &cpus, out)?;
    }
    print_next(summary, out)
}

/// How much is lost and by what, before everything else.
fn print_conclusion(summary: &Summary, out: &mut Sheet<'_>) -> io::Result<()> {
    let conclusion = Conclusion::from_run(summary);
    paragraph(out, "", &conclusion.sentence)?;
    if let Some(scale) = conclusion.scale() {
        paragraph(out, "", &scale)?;
    }
    let advised = |cause: &Cause<'_>| match cause.advice {
        Some(advice) => format!("{}. {}", cause.figures(), capitalized(advice)),
        None => cause.figures(),
    };
    for (place, cause) in (1..).zip(&conclusion.causes) {
        paragraph(out, &format!("  {place}. {}: ", cause.name()), &advised(cause))?;
    }
    if let Some(cause) = &conclusion.longest {
        let most = Value::Time(cause.max_ns.unwrap_or(0)).cell();
        paragraph(out, &format!("  Longest, {most} at once: {}: ", cause.name()), &advised(cause))?;
    }
    if let Some(own) = conclusion.own() {
        paragraph(out, "  ", &own)?;
    }
    writeln!(out)
}

/// The head and the sources.
pub(super) fn sources(summary: &Summary, per_cpu: bool, out: &mut Sheet<'_>) -> io::Result<()> {
    header::print_changes(summary, out)?;
    header::print(summary, out)?;
    print_sources(summary, per_cpu, out)
}

/// The rows of the CPUs that are shown: all, or the noisiest first.
fn shown_cpus(summary: &Summary, all: bool) -> Vec<CpuRow> {
    let mut rows: Vec<CpuRow> = summary.cpus.iter().map(CpuRow::new).collect();
    if !all && rows.len() > SHOWN {
        // The order of node and CPU breaks ties, as the sort is stable.
        let noise = |row: &CpuRow| row.figures.noise_ratio().unwrap_or(0.0);
        rows.sort_by(|a, b| noise(b).partial_cmp(&noise(a)).unwrap_or(Ordering::Equal));
        rows.truncate(SHOWN);
    }
    rows
}

/// What the CPUs lost.
fn print_cpus(summary: &Summary, rows: &[CpuRow], out: &mut Sheet<'_>) -> io::Result<()> {
    heading(out, "CPUs")?;
    let mut fields =
        vec![&cpu::CPU, &cpu::DETOURS, &cpu::RATE_HZ, &cpu::NOISE_RATIO, &cpu::NOISE_RATIO_LOW, &cpu::NOISE_RATIO_HIGH];
    fields.extend([&cpu::LONG_NOISE_RATIO, &cpu::MEDIAN_NS, &cpu::MEAN_NS, &cpu::P99_NS, &cpu::P999_NS, &cpu::MAX_NS]);
    print_cpu_table(summary, rows, fields, out)?;
    paragraph(out, "  ", "low and high: the noise ratio's 95 % interval (circular block bootstrap)")?;
    print_notes(summary, rows, out, |row| interval_note(&row.figures))
}

/// How the CPUs were measured.
fn print_loops(summary: &Summary, rows: &[CpuRow], out: &mut Sheet<'_>) -> io::Result<()> {
    heading(out, "Loops that measured")?;
    let mut fields = vec![&cpu::CPU, &cpu::DURATION_NS, &cpu::ITERATIONS, &cpu::T_MIN_NS, &cpu::THRESHOLD_NS];
    fields.extend([&cpu::LOST_EVENTS, &cpu::INCOMPLETE]);
    for (field, there) in [
        (&cpu::UNSEEN_NS, summary.total.unseen_ns.is_some()),
        (&cpu::STEAL_NS, summary.cpus.iter().any(|cpu| cpu.figures.steal_ns.is_some())),
        (&cpu::CUT_SHORT, summary.total.cut_short),
    ] {
        if there {
            fields.push(field);
        }
    }
    print_cpu_table(summary, rows, fields, out)
}

fn print_cpu_table(
    summary: &Summary,
    rows: &[CpuRow],
    mut fields: Vec<&'static Field<CpuRow>>,
    out: &mut Sheet<'_>,
) -> io::Result<()> {
    if summary.nodes.len() > 1 {
        fields.insert(0, &cpu::NODE);
    }
    let mut table = Table::new(&fields);
    rows.iter().for_each(|row| table.row(&fields, row));
    let all = summary.cpus.len();
    if all > 1 {
        table.total(&fields, &CpuRow::total(summary), "all");
    }
    table.print(out)?;
    if rows.len() < all {
        writeln!(out, "  the noisiest {SHOWN} of {all} CPUs; --all shows every one")?;
    }
    Ok(())
}

fn print_sources(summary: &Summary, per_cpu: bool, out: &mut Sheet<'_>) -> io::Result<()> {
    if summary.rung == Rung::Tracepoints || !summary.sources.is_empty() {
        let rows = if per_cpu { &summary.cpu_sources } else { &summary.sources };
        heading(out, if per_cpu { "Sources on each CPU" } else { "Sources" })?;
        print_ranked(summary, rows, per_cpu, out)?;
    }
    for node in &summary.nodes {
        if node.doc.rung == Rung::Tracepoints {
            continue;
        }
        let rows = figures::counters(node, per_cpu);
        if rows.is_empty() {
            continue;
        }
        let on_node = if summary.nodes.len() > 1 { format!(" on {}", node.doc.node) } else { String::new() };
        heading(out, &format!("Kernel counters that grew{on_node}"))?;
        let fields = if per_cpu { &COUNTERS[..] } else { &COUNTERS[1..] };
        let shown = if out.all() || per_cpu { rows.len() } else { SHOWN.min(rows.len()) };
        let mut table = Table::new(fields);
        rows[..shown].iter().for_each(|row| table.row(fields, row));
        table.print(out)?;
        if shown < rows.len() {
            writeln!(out, "  the fastest {SHOWN} of {} counters; --all shows every one", rows.len())?;
        }
    }
    Ok(())
}

/// What one occurrence of the costliest interrupt is made of.
fn print_anatomy(summary: &Summary, out: &mut Sheet<'_>) -> io::Result<()> {
    let Some(anatomy) = &summary.anatomy else { return Ok(()) };
    let times = anatomy.parts.first().map_or(0, |part| part.times.count());
    heading(out, &format!("One {}, whole", anatomy.source))?;
    let fields = [&part::PART, &part::MEAN_NS, &part::MEDIAN_NS, &part::P99_NS, &part::MAX_NS];
    let mut table = Table::new(&fields);
    let (all, parts) = anatomy.parts.split_last().map_or((None, &[][..]), |(all, parts)| (Some(all), parts));
    parts.iter().filter(|row| row.times.total() > 0).for_each(|row| table.row(&fields, row));
    if let Some(all) = all {
        table.total(&fields, all, "all");
    }
    table.print(out)?;
    let times = grouped(times);
    paragraph(out, "  ", &format!("over the {times} detours that contain it once; missing parts count as 0"))
}

/// What is shown of a counter: of those over all CPUs without the first.
const COUNTERS: [&Field<CounterRow>; 4] = [&counter::CPU, &counter::NAME, &counter::GROWTH, &counter::RATE_HZ];

fn print_ranked(summary: &Summary, rows: &[SourceSummary], per_cpu: bool, out: &mut Sheet<'_>) -> io::Result<()> {
    if rows.is_empty() {
        return writeln!(out, "  none: no detour was seen");
    }
    let mut names = vec![
        &source::SOURCE,
        &source::KIND,
        &source::COUNT,
        &source::MAX_NS,
        &source::MEAN_NS,
        &source::TOTAL_NS,
        &source::WHOLE_MEAN_NS,
        &source::WHOLE_NS,
        &source::SHARE_RATIO,
    ];
    names.push(&source::TIME_RATIO);
    if per_cpu {
        names.insert(0, &source::CPU);
        if summary.nodes.len() > 1 {
            names.insert(0, &source::NODE);
        }
    }
    let fields: Vec<&Field<SourceSummary>> = names;
    let mut table = Table::new(&fields);
    let mut hidden: Vec<&SourceSummary> = Vec::new();
    for place in rows.chunk_by(|a, b| a.place == b.place) {
        let shown = if out.all() { place.len() } else { SHOWN.min(place.len()) };
        table.rule();
        place[..shown].iter().for_each(|row| table.row(&fields, row));
        hidden.extend(&place[shown..]);
    }
    table.print(out)?;
    if !hidden.is_empty() {
        let share: f64 = hidden.iter().map(|row| row.whole_ns as f64).sum::<f64>()
            / (summary.total.durations.total() as f64).max(1.0);
        let share = three_digits(share * 100.0);
        let hidden = grouped(hidden.len() as u64);
        paragraph(out, "  ", &format!("and {hidden} more with {share}% of the noise; --all shows every one"))?;
    }
    paragraph(out, "  ", WHOLE)
}

/// A sentence from words that go on after a colon.
fn capitalized(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

/// What the columns of sources mean.
const WHOLE: &str = "highest, mean and total: its own time; whole: all that goes with it (the way in and out, softirqs, \
                     aftermath), by which of noise and of time go";

/// What the user can do with what was found.
fn print_next(summary: &Summary, out: &mut Sheet<'_>) -> io::Result<()> {
    heading(out, "Next")?;
    let path = quoted(&summary.path.to_string_lossy());
    let mut commands = Vec::new();
    if summary.rung == Rung::Tracepoints {
        if summary.cpus.len() > 1 {
            commands.push((format!("becalm sources {path} --per-cpu"), "the same for each CPU"));
        }
        commands.push((format!("becalm sources {path} --longest 10"), "what happened in the longest detours"));
    } else {
        commands.push(("becalm".to_owned(), "what is missing here to name the sources, and how to get it"));
    }
    commands.push((format!("becalm report {path} --json"), "the same for scripts"));
    let width = commands.iter().map(|(command, _)| command.chars().count()).max().unwrap_or(0);
    for (command, what) in commands {
        // A command is never cut: on a narrow page what it is for stands below.
        paragraph(out, &format!("  {command:<width$}   "), what)?;
    }
    Ok(())
}
