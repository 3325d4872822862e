//! A recording for people.

use becalm_analyze::summary::{NodeSummary, SourceSummary, Summary};
use becalm_model::audit::FirstStep;
use becalm_model::node::Rung;

use crate::form::field::Field;
use crate::form::section::{Block, Opening, Page, Section};
use crate::form::table::Table;
use crate::form::value::{grouped, three_digits};
use crate::form::words::quoted;
use crate::record::brief::INTERVAL;
use crate::record::figures::{self, CounterRow, CpuRow, counter, cpu, interval_note, part, source};
use crate::record::html::{self, Drawn};
use crate::record::notes::notes;
use crate::record::{header, sure};

/// The number of sources shown unless all are wanted.
const SHOWN: usize = 20;

const TITLE: &str = "operating system noise";

/// The short report.
pub(super) fn brief(summary: &Summary, at_scale: bool) -> Page {
    page(summary, TITLE, super::brief::sections(summary, at_scale))
}

/// The full report: conclusion, header, CPUs, sources, measuring loops, and suggested commands. A page shows the charts after the conclusion.
pub(super) fn full(summary: &Summary, drawn: Option<&Drawn<'_>>) -> Page {
    let rows: Vec<CpuRow> = summary.cpus.iter().map(CpuRow::new).collect();
    let mut sections: Vec<Section> = header::changes(summary).into_iter().collect();
    sections.push(html::headline::section(summary));
    sections.extend(drawn.into_iter().flat_map(|drawn| html::pictures(summary, drawn)));
    sections.extend(html::distribution::spectrum(summary));
    sections.push(header::section(summary));
    sections.push(cpus(summary, &rows, drawn));
    sections.push(sure::intervals(summary, &rows));
    sections.push(sure::tails(summary, &rows));
    sections.extend(sure::equals(summary));
    sections.push(sources(summary, false, true));
    sections.extend(anatomy(summary));
    sections.extend(sure::periods(summary));
    if summary.nodes.iter().any(|node| node.doc.has_loop()) {
        sections.push(loops(summary, &rows));
    }
    sections.push(next(summary));
    page(summary, TITLE, sections)
}

/// The header and the sources.
pub(super) fn ranked(summary: &Summary, per_cpu: bool, all: bool) -> Page {
    let mut sections: Vec<Section> = header::changes(summary).into_iter().collect();
    sections.extend([header::section(summary), sources(summary, per_cpu, all)]);
    page(summary, "sources of noise", sections)
}

fn page(summary: &Summary, title: &str, sections: Vec<Section>) -> Page {
    let path = &summary.path;
    let name = path.file_stem().map_or_else(|| path.to_string_lossy(), |name| name.to_string_lossy());
    let nodes: Vec<&str> = summary.nodes.iter().map(|node| node.doc.node.as_str()).collect();
    let nodes = match nodes.as_slice() {
        [] => String::new(),
        [node] => (*node).to_owned(),
        [first, .., last] => format!("{} nodes, {first} to {last}", nodes.len()),
    };
    let when = summary.nodes.iter().map(|node| header::when(&node.doc)).min().unwrap_or_default();
    Page {
        title: format!("{name}: {title}"),
        subtitle: format!("{nodes} \u{b7} {when}"),
        sections,
        foot: vec![format!("The recording is {}.", path.display())],
    }
}

/// The losses of the CPUs.
fn cpus(summary: &Summary, rows: &[CpuRow], drawn: Option<&Drawn<'_>>) -> Section {
    let mut fields = vec![&cpu::CPU, &cpu::DETOURS, &cpu::RATE_HZ, &cpu::NOISE_RATIO, &INTERVAL];
    fields.extend([&cpu::LONG_NOISE_RATIO, &cpu::MEDIAN_NS, &cpu::MEAN_NS, &cpu::P99_NS, &cpu::P999_NS, &cpu::MAX_NS]);
    let mut blocks = vec![Block::OnPage(html::cpus::blocks(summary, drawn.map(|drawn| drawn.picture)))];
    blocks.extend(cpu_table(summary, rows, fields));
    blocks.push(Block::Text("95 % CI: of the noise, by circular block bootstrap".to_owned()));
    blocks.extend(notes(summary, rows, |row| interval_note(&row.figures)));
    Section::named("cpus", "CPUs", blocks)
}

/// How the CPUs were measured.
fn loops(summary: &Summary, rows: &[CpuRow]) -> Section {
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
    Section::named("loops", "Loops that measured", cpu_table(summary, rows, fields))
}

fn cpu_table(summary: &Summary, rows: &[CpuRow], mut fields: Vec<&'static Field<CpuRow>>) -> Vec<Block> {
    if summary.nodes.len() > 1 {
        fields.insert(0, &cpu::NODE);
    }
    let mut table = Table::filled(&fields, rows);
    if let Some(column) = fields.iter().position(|field| field.name == INTERVAL.name) {
        table.keep_whole(column);
    }
    if summary.cpus.len() > 1 {
        table.total(&fields, &CpuRow::total(summary), "all");
    }
    vec![Block::Table(table)]
}

/// The sources if they are known, and the counters of nodes without tracepoints.
fn sources(summary: &Summary, per_cpu: bool, all: bool) -> Section {
    let mut blocks = vec![Block::OnPage(html::sources::blocks(summary))];
    let title = if per_cpu { "Sources on each CPU" } else { "Sources" };
    let is_known = summary.rung == Rung::Tracepoints || !summary.sources.is_empty();
    if is_known {
        let rows = if per_cpu { &summary.cpu_sources } else { &summary.sources };
        blocks.extend(ranked_blocks(summary, rows, per_cpu, all));
    }
    blocks.extend(summary.nodes.iter().flat_map(|node| counters(summary, node, per_cpu)));
    let section = Section::new("sources", "Sources", title, blocks).explained(
        "First the total time of each source, with everything charged to it: a program loses that on average. Then its longest time at \
         once: a synchronized job waits for that.",
    );
    if is_known { section.opened(Opening::Title(title.to_owned())) } else { section }
}

/// The columns of a counter; those over all CPUs lack the first.
const COUNTERS: [&Field<CounterRow>; 4] = [&counter::CPU, &counter::NAME, &counter::GROWTH, &counter::RATE_HZ];

fn counters(summary: &Summary, node: &NodeSummary, per_cpu: bool) -> Vec<Block> {
    let rows =
        if node.doc.rung == Rung::Tracepoints { Vec::new() } else { figures::others_counters(summary, node, per_cpu) };
    if rows.is_empty() {
        return Vec::new();
    }
    let on_node = if summary.nodes.len() > 1 { format!(" on {}", node.doc.node) } else { String::new() };
    let fields = if per_cpu { &COUNTERS[..] } else { &COUNTERS[1..] };
    let most = if per_cpu { usize::MAX } else { SHOWN };
    let left_out = format!("the fastest {SHOWN} of {} counters", rows.len());
    let table = Table::filled(fields, &rows).with_most_important(most, |_| left_out);
    vec![Block::Heading(format!("Kernel counters that grew{on_node}")), Block::Table(table)]
}

/// The composition of one occurrence of the costliest interrupt.
fn anatomy(summary: &Summary) -> Option<Section> {
    let anatomy = summary.anatomy.as_ref()?;
    let times = grouped(anatomy.parts.first().map_or(0, |part| part.times.count()));
    let fields = [&part::PART, &part::MEAN_NS, &part::MEDIAN_NS, &part::P99_NS, &part::MAX_NS];
    let (all, parts) = anatomy.parts.split_last().map_or((None, &[][..]), |(all, parts)| (Some(all), parts));
    let mut table = Table::filled(&fields, parts.iter().filter(|row| row.times.total() > 0));
    if let Some(all) = all {
        table.total(&fields, all, "all");
    }
    let title = format!("One {}, in total", anatomy.source);
    let note = format!("over the {times} detours that contain it once; missing parts count as 0");
    let blocks = vec![Block::Table(table), Block::Text(note)];
    Some(Section::new("anatomy", "One interrupt", title.clone(), blocks).opened(Opening::Title(title)))
}

fn ranked_blocks(summary: &Summary, rows: &[SourceSummary], per_cpu: bool, all: bool) -> Vec<Block> {
    if rows.is_empty() {
        return vec![Block::Text("none: no detour was seen".to_owned())];
    }
    let mut fields = vec![
        &source::SOURCE,
        &source::KIND,
        &source::COUNT,
        &source::MAX_NS,
        &source::MEAN_NS,
        &source::TOTAL_NS,
        &source::WHOLE_MEAN_NS,
        &source::WHOLE_NS,
        &source::SHARE_RATIO,
        &source::TIME_RATIO,
    ];
    if per_cpu {
        fields.insert(0, &source::CPU);
        if summary.nodes.len() > 1 {
            fields.insert(0, &source::NODE);
        }
    }
    let mut table = Table::new(&fields);
    let first = fields.len() - 10;
    [4, 5, 6].into_iter().for_each(|column| table.may_leave_out(first + column));
    let mut hidden: Vec<&SourceSummary> = Vec::new();
    for place in rows.chunk_by(|a, b| a.place == b.place) {
        let shown = if all { place.len() } else { SHOWN.min(place.len()) };
        table.rule();
        place[..shown].iter().for_each(|row| table.row(&fields, row));
        hidden.extend(&place[shown..]);
    }
    let mut blocks = vec![Block::Table(table)];
    if !hidden.is_empty() {
        let share: f64 = hidden.iter().map(|row| row.whole_ns as f64).sum::<f64>()
            / (summary.total.durations.total() as f64).max(1.0);
        let share = three_digits(share * 100.0);
        let hidden = grouped(hidden.len() as u64);
        blocks.push(Block::Text(format!("and {hidden} more with {share}% of the noise; --full shows all of them")));
    }
    blocks.push(Block::Text(WHOLE.to_owned()));
    blocks
}

/// The meaning of the source columns.
const WHOLE: &str = "longest and own: the time of the source itself; total: with all time charged to it (entry and exit, \
                     softirqs, cold caches); of noise, of time: the shares of total";

/// Next steps for the user.
fn next(summary: &Summary) -> Section {
    let path = quoted(&summary.path.to_string_lossy());
    let step = |command: String, why: &str| FirstStep { command, why: why.to_owned() };
    let mut steps = Vec::new();
    if summary.rung == Rung::Tracepoints {
        if summary.cpus.len() > 1 {
            steps.push(step(format!("becalm report {path} --sources --per-cpu"), "the same for each CPU"));
        }
        steps.push(step(format!("becalm detours {path} --longest 10"), "what happened in the longest detours"));
    } else {
        steps.push(step("becalm".to_owned(), "what is missing here to name the sources, and how to get it"));
    }
    steps.push(step(format!("becalm report {path} --json"), "the same for scripts"));
    Section::named("next", "Next", vec![Block::Commands(steps)])
}
