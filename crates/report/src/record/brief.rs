//! The short report: the verdict, the sources with their fixes, the CPUs, and the reliability of the figures, in at most 35 lines for up to 8 CPUs.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::mem;

use becalm_analyze::summary::{Books, Summary};
use becalm_model::Kind;
use becalm_model::audit::FirstStep;
use becalm_model::node::Rung;
use becalm_model::plain_name::platform;
use becalm_model::warning::Code;
use becalm_units::{CpuList, Nanos, counted, plural};

use crate::form::field::{Field, field, fields};
use crate::form::figure::{Ratio, Share, Time};
use crate::form::known::system;
use crate::form::section::{Block, Opening, Section};
use crate::form::table::Table;
use crate::form::value::{fine, time};
use crate::form::words::{capital, quoted};
use crate::record::conclusion::Conclusion;
use crate::record::figures::{self, CpuRow, cpu};
use crate::record::header;
use crate::record::html::headline::is_grave;
use crate::record::programs::{Program, programs};
use crate::record::verdict::{Verdict, interval, limits, ratio};

/// The number of sources with a row, including the source of the longest interruption. Fewer leave room for the rows of many CPUs.
const SOURCES: usize = 5;
const SOURCES_OF_MANY_CPUS: usize = 4;

/// So many CPUs are many.
const MANY_CPUS: usize = 5;

/// The number of CPUs with a row.
const CPUS: usize = 8;

/// The number of counters shown if sources are unknown.
const COUNTERS: usize = 5;

/// The number of kinds of warnings named.
const WARNINGS: usize = 3;

/// The width of the labels on the left.
const LABEL: usize = 10;

/// The sections of the short report.
pub(super) fn sections(summary: &Summary, at_scale: bool) -> Vec<Section> {
    let conclusion = Conclusion::from_run(summary);
    let mut sections: Vec<Section> = header::changes(summary).into_iter().collect();
    sections.push(headline(summary));
    if summary.total.detours() > 0 {
        let rows = source_rows(summary);
        if rows.is_empty() {
            sections.extend(counters(summary));
        } else {
            sections
                .push(Section::new("sources", "Sources", "Sources", vec![source_table(&rows)]).opened(Opening::Gap));
            sections.extend(fixes(&rows));
        }
        sections.push(cpus(summary));
    }
    sections.push(trust(summary, conclusion.scale().filter(|_| at_scale)));
    sections.push(next(summary));
    sections
}

fn entry(label: &str, text: impl Into<String>) -> Block {
    Block::entry(format!("{label:<LABEL$}"), text)
}

/// The verdict in one line.
pub(super) fn answer(summary: &Summary) -> String {
    let Verdict { word, reason, .. } = Verdict::new(summary);
    format!("{word:<LABEL$}{}", capital(&reason))
}

/// The recording, and whether it was quiet.
fn headline(summary: &Summary) -> Section {
    let mut blocks = vec![Block::Lead(identity(summary))];
    let verdict = Verdict::new(summary);
    blocks.push(entry(verdict.word, capital(&verdict.reason)));
    let work = summary.total.work_p99_ns.map(|ns| format!("1ms of work takes up to {} (p99). ", fine(ns)));
    blocks.push(entry("", work.unwrap_or_default() + &limits()));
    if summary.rung != Rung::Tracepoints && summary.total.detours() > 0 {
        blocks.push(entry(
            "",
            "Sources are not named: run sudo becalm record, or see what is missing with becalm doctor.",
        ));
    }
    blocks
        .extend(header::warnings(summary, |warning| is_grave(warning) && warning.known() != Some(Code::TraceChanged)));
    Section::new("headline", "Summary", "Is this machine quiet?", blocks)
}

/// The machine, the duration and the recording program.
fn identity(summary: &Summary) -> String {
    let [node] = summary.nodes.as_slice() else {
        let cpus = counted(summary.cpus.len() as u64, "CPU", "CPUs");
        let nodes = counted(summary.nodes.len() as u64, "node", "nodes");
        return format!("{nodes} with {cpus}, {} of CPU time", cpu::DURATION_NS.cell(&CpuRow::total(summary)));
    };
    let doc = &node.doc;
    let cpus: CpuList = doc.cpus.iter().map(|cpu| cpu.cpu).collect();
    let longest = doc.cpus.iter().map(|cpu| cpu.duration_ns).max().unwrap_or(Nanos::ZERO);
    let lasted = if doc.ended.is_some() { time(longest.get()) } else { "not ended".to_owned() };
    let mut parts = vec![format!("{}: {} {cpus}", doc.node, plural(doc.cpus.len() as u64, "CPU", "CPUs")), lasted];
    parts.push(system(&doc.machine.kernel, ""));
    parts.extend(doc.machine.hypervisor.as_ref().map(|name| format!("{name} guest")));
    parts.join(", ")
}

/// A source with its figures, or the sum of those without a row.
struct SourceRow {
    name: String,
    time_ratio: Option<f64>,
    share: Option<f64>,
    count: Option<u64>,
    mean_ns: Option<f64>,
    max_ns: Option<i64>,
    advice: Option<&'static str>,
    /// The letter of the fix in the list below the table.
    fix: Option<char>,
}

fields! {
    brief: SourceRow {
        SOURCE = "source", "What took the time", |row| row.name.clone();
        TIME_RATIO = "time_ratio", "of CPU", |row| row.time_ratio.map(Ratio);
        SHARE_RATIO = "share_ratio", "of noise", |row| row.share.map(Share);
        COUNT = "count", "count", |row| row.count;
        MEAN_NS = "mean_ns", "average", |row| row.mean_ns.and_then(Time::rounded);
        MAX_NS = "max_ns", "longest", |row| row.max_ns.map(Time);
        FIX = "fix", "fix", |row| row.fix.map_or_else(|| "-".to_owned(), String::from);
    }
}

/// The costliest sources, that of the longest interruption, and the sum of the others.
fn source_rows(summary: &Summary) -> Vec<SourceRow> {
    let platform = platform(summary.nodes.iter().map(|node| &node.doc.machine));
    let most = if summary.cpus.len() < MANY_CPUS { SOURCES } else { SOURCES_OF_MANY_CPUS };
    let mut shown = programs(&summary.sources);
    let mut others = shown.split_off(most.min(shown.len()));
    let longest = |rows: &[Program]| {
        let rows = rows.iter().enumerate().filter(|(_, row)| row.source.kind != Kind::Edge);
        rows.map(|(place, row)| (row.source.times.max(), place)).max()
    };
    if let Some((max, place)) = longest(&others)
        && longest(&shown).is_none_or(|(known, _)| max > known)
    {
        let last = shown.len() - 1;
        mem::swap(&mut shown[last], &mut others[place]);
    }
    let mut known: Vec<&str> = Vec::new();
    let mut letter = |advice: &'static str| {
        let at = known.iter().position(|one| *one == advice).unwrap_or_else(|| {
            known.push(advice);
            known.len() - 1
        });
        ('a'..='z').nth(at)
    };
    let mut rows: Vec<SourceRow> = shown
        .iter()
        .map(|row| {
            let advice = Conclusion::advice(&row.source, summary);
            SourceRow {
                name: row.name(platform),
                time_ratio: row.source.time_ratio,
                share: row.source.share,
                count: Some(row.source.times.count()),
                mean_ns: row.source.whole_mean_ns(),
                max_ns: row.source.times.max(),
                advice,
                fix: advice.and_then(&mut letter),
            }
        })
        .collect();
    if !others.is_empty() {
        rows.push(SourceRow {
            name: counted(others.len() as u64, "other", "others"),
            time_ratio: others.iter().map(|row| row.source.time_ratio).sum(),
            share: others.iter().map(|row| row.source.share).sum(),
            count: None,
            mean_ns: None,
            max_ns: others.iter().filter_map(|row| row.source.times.max()).max(),
            advice: None,
            fix: None,
        });
    }
    rows
}

fn source_table(rows: &[SourceRow]) -> Block {
    let fields = [
        &brief::SOURCE,
        &brief::TIME_RATIO,
        &brief::SHARE_RATIO,
        &brief::COUNT,
        &brief::MEAN_NS,
        &brief::MAX_NS,
        &brief::FIX,
    ];
    let mut table = Table::filled(&fields, rows).without_rules();
    table.may_leave_out(4);
    table.keep_whole(6);
    Block::Table(table)
}

/// The fixes for the sources.
fn fixes(rows: &[SourceRow]) -> Option<Section> {
    let fixes: BTreeMap<char, &str> = rows.iter().filter_map(|row| Some((row.fix?, row.advice?))).collect();
    let blocks: Vec<Block> =
        fixes.into_iter().map(|(letter, advice)| Block::entry(format!("  {letter}  "), capital(advice))).collect();
    (!blocks.is_empty()).then(|| Section::new("fixes", "Fixes", "What to do", blocks).opened(Opening::Gap))
}

/// The kernel counters that grew most, on nodes without sources.
fn counters(summary: &Summary) -> Option<Section> {
    let rows: Vec<_> = summary.nodes.iter().flat_map(|node| figures::others_counters(summary, node, false)).collect();
    if rows.is_empty() {
        return None;
    }
    let fields = [&figures::counter::NAME, &figures::counter::GROWTH, &figures::counter::RATE_HZ];
    let mut table = Table::filled(&fields, rows.iter().take(COUNTERS)).without_rules();
    table.name_column(0, "Kernel counters that grew most".to_owned());
    Some(Section::new("counters", "Counters", "Counters", vec![Block::Table(table)]).opened(Opening::Gap))
}

/// The 95 % CI of the noise, in one column.
pub(super) const INTERVAL: Field<CpuRow> = field!("noise_interval", "95 % CI", interval);

/// The losses of the CPUs, only the noisiest if there are many.
fn cpus(summary: &Summary) -> Section {
    let mut rows: Vec<CpuRow> = summary.cpus.iter().map(CpuRow::new).collect();
    let lost = |row: &CpuRow| row.figures.noise_ratio().unwrap_or(0.0);
    let mut others = Vec::new();
    if rows.len() > CPUS {
        rows.sort_by(|a, b| lost(b).partial_cmp(&lost(a)).unwrap_or(Ordering::Equal));
        others = rows.split_off(CPUS);
    }
    let mut fields = vec![&cpu::CPU, &cpu::NOISE_RATIO, &INTERVAL, &cpu::RATE_HZ];
    fields.extend([&cpu::MEDIAN_NS, &cpu::P99_NS, &cpu::MAX_NS]);
    if summary.nodes.len() > 1 {
        fields.insert(0, &cpu::NODE);
    }
    let mut table = Table::filled(&fields, &rows).without_rules();
    let first = fields.len() - 7;
    table.keep_whole(first + 2);
    for (column, title) in [(0, "CPU"), (1, "lost"), (3, "interruptions"), (6, "longest")] {
        table.name_column(first + column, title.to_owned());
    }
    let mut blocks = vec![Block::Table(table)];
    if let (Some(most), Some(least)) = (others.first(), others.last()) {
        let text = format!("{} others lost {} to {}", others.len(), ratio(lost(least)), ratio(lost(most)));
        blocks.push(Block::Text(text));
    }
    Section::new("cpus", "CPUs", "CPUs", blocks).opened(Opening::Gap)
}

/// The cost at scale if requested, and the reliability of the figures.
fn trust(summary: &Summary, at_scale: Option<String>) -> Section {
    let mut blocks: Vec<Block> = at_scale.map(|text| entry("At scale", text)).into_iter().collect();
    let mut parts = vec![
        match &summary.books {
            Books::Closed => "every nanosecond accounted for",
            Books::Open(_) => "activities do not add up to their interruptions",
            Books::NoActivities => "measured by the loops alone",
        }
        .to_owned(),
    ];
    parts.extend((summary.rung == Rung::Tracepoints).then(|| dropped(summary)));
    if let Some(own) = summary.total.own_ratio().filter(|own| *own > 0.0) {
        parts.push(format!("becalm's own {} excluded", ratio(own)));
    }
    let mut text = format!("{}.", capital(&parts.join(", ")));
    if let Some(rarest) = summary.total.rarest_seen_ns.filter(|ns| *ns > 0) {
        text += &format!(" Too short for what comes less than once in {}.", time(rarest));
    }
    text += &notes(summary);
    blocks.push(entry("Trust", text));
    let opening = if summary.cpus.len() < MANY_CPUS { Opening::Gap } else { Opening::None };
    Section::new("trust", "Trust", "How far to trust it", blocks).opened(opening)
}

fn dropped(summary: &Summary) -> String {
    match summary.total.lost_events {
        None => "dropped events not known".to_owned(),
        Some(0) => "no events dropped".to_owned(),
        Some(lost) => format!("{} dropped", counted(lost, "kernel event", "kernel events")),
    }
}

/// The codes of the warnings that only the full report contains.
fn notes(summary: &Summary) -> String {
    let hidden: Vec<&str> = summary
        .warnings
        .iter()
        .filter(|(_, warning)| !is_grave(warning))
        .map(|(_, warning)| warning.code.as_str())
        .collect();
    let mut codes: Vec<String> = Vec::new();
    for code in &hidden {
        let code = code.replace('_', " ");
        if !codes.contains(&code) {
            codes.push(code);
        }
    }
    if codes.is_empty() {
        return String::new();
    }
    let more = codes.len().saturating_sub(WARNINGS);
    codes.truncate(WARNINGS);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!(" {} in --full: {}{more}.", counted(hidden.len() as u64, "note", "notes"), codes.join(", "))
}

/// Suggested next commands.
fn next(summary: &Summary) -> Section {
    let path = quoted(&summary.path.to_string_lossy());
    let step = |command: String, why: &str| FirstStep { command, why: why.to_owned() };
    let mut steps = vec![
        step(format!("becalm report {path} --full"), "everything about this recording"),
        step(format!("becalm report {path} --html page.html"), "every interruption, as charts"),
    ];
    let is_summary = summary.warnings.iter().any(|(_, warning)| warning.known() == Some(Code::SummaryForm));
    if summary.rung == Rung::Tracepoints && !is_summary && summary.total.detours() > 0 {
        steps.push(step(format!("becalm detours {path} --longest 3"), "what happened in the longest interruptions"));
    }
    Section::new("next", "Next", "Next", vec![Block::Commands(steps)]).opened(Opening::Gap)
}
