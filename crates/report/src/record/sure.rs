//! The statistical parts of a report: intervals, the longest detour to expect, outliers, periods, and what may have been missed.

use becalm_analyze::summary::{Origin, PeriodSummary, Summary};
use becalm_stats::Interval;
use becalm_units::CpuList;

use crate::Value;
use crate::catalogue;
use crate::form::field::{Field, field, fields};
use crate::form::section::{Block, Section};
use crate::form::table::Table;
use crate::form::value::{factor, grouped, time};
use crate::record::figures::{CpuRow, cpu, period};
use crate::record::notes::notes;
use crate::record::tails;

/// The number of periods shown unless all are wanted.
const SHOWN: usize = 12;

/// Fewer events may be chance.
const SELDOM: u64 = 3;

/// Two figures as one cell: `2.44us-2.46us`; `over 2.44us` if one is missing; `~` before rough ones.
fn between(row: &CpuRow, low: &Field<CpuRow>, high: &Field<CpuRow>, rough: bool) -> Option<String> {
    let [low, high] = [low, high].map(|field| match (field.get)(row) {
        Value::Missing => None,
        value => Some(value.cell()),
    });
    let mark = if rough { "~" } else { "" };
    match (low, high) {
        (Some(low), Some(high)) if low == high => Some(format!("{mark}{low}")),
        (Some(low), Some(high)) => Some(format!("{mark}{low}-{high}")),
        (Some(low), None) => Some(format!("{mark}over {low}")),
        (None, Some(high)) => Some(format!("{mark}up to {high}")),
        (None, None) => None,
    }
}

fields! {
    intervals: CpuRow {
        RATE = "rate", "rate", |row| between(row, &cpu::RATE_LOW_HZ, &cpu::RATE_HIGH_HZ, rough_rate(row));
        MEDIAN = "median", "median", |row| between(row, &cpu::MEDIAN_LOW_NS, &cpu::MEDIAN_HIGH_NS,
            row.figures.median_bounds.rough);
        P99 = "p99", "p99", |row| between(row, &cpu::P99_LOW_NS, &cpu::P99_HIGH_NS, row.figures.p99_bounds.rough);
        P999 = "p999", "p99.9", |row| between(row, &cpu::P999_LOW_NS, &cpu::P999_HIGH_NS, row.figures.p999_bounds.rough);
    }
}

fn table(summary: &Summary, rows: &[&CpuRow], shown: &[&Field<CpuRow>], with_all: bool) -> Table {
    let mut fields: Vec<&Field<CpuRow>> = Vec::new();
    if summary.nodes.len() > 1 {
        fields.push(&cpu::NODE);
    }
    fields.extend(shown);
    let mut table = Table::new(&fields);
    rows.iter().for_each(|row| table.row(&fields, *row));
    if with_all {
        table.total(&fields, &CpuRow::total(summary), "all");
    }
    table
}

/// The intervals of each CPU's figures, and what the recording may have missed.
pub(crate) fn intervals(summary: &Summary, rows: &[CpuRow]) -> Section {
    let every: Vec<&CpuRow> = rows.iter().collect();
    let shown = [&cpu::CPU, &intervals::RATE, &intervals::MEDIAN, &intervals::P99, &intervals::P999];
    let mut blocks = vec![Block::Table(table(summary, &every, &shown, summary.cpus.len() > 1))];
    let all = CpuRow::total(summary);
    if rows.iter().chain([&all]).any(|row| row.figures.detours() > 0 && open(row)) {
        blocks
            .push(Block::Text("- and 'over': no upper bound, because the recording is too short or drifts".to_owned()));
    }
    if rows.iter().chain([&all]).any(rough) {
        blocks.push(Block::Text(
            "~: rough, from 8 parts of the recording, because it drifts or has long trains of events".to_owned(),
        ));
    }
    blocks.extend(missed(summary));
    Section::new("sure", "Intervals", "95 % confidence intervals", blocks).titled().explained(
        "Another recording of this length would give other figures. The true ones are within these intervals in 95 of 100 cases. \
         Events that are rarer than the recording is long may be missing.",
    )
}

/// Events that the recording is too short to have seen, or to have seen often enough.
fn missed(summary: &Summary) -> Vec<Block> {
    let mut missed = Vec::new();
    if let Some(rarest) = summary.total.rarest_seen_ns.filter(|ns| *ns > 0) {
        let text = format!("events that are rarer than once in {} per CPU (probability above 5 %)", time(rarest));
        missed.push(Block::Remark("may have been missed".to_owned(), text));
    }
    let seldom: Vec<_> = summary.sources.iter().filter(|source| source.times.count() < SELDOM).collect();
    if let Some(needed) = seldom.iter().filter_map(|source| source.run_at_least_ns).max() {
        let names: Vec<String> =
            seldom.iter().take(5).map(|source| format!("{} {}", source.kind, source.source)).collect();
        let more = if seldom.len() > 5 { format!(" and {} more", seldom.len() - 5) } else { String::new() };
        let text = format!(
            "{}{more}; record at least {} to see each again with 95 % probability",
            names.join(", "),
            time(needed)
        );
        missed.push(Block::Remark("seen once or twice".to_owned(), text));
    }
    missed
}

fn rough_rate(row: &CpuRow) -> bool {
    row.figures.rate_interval.is_some_and(Interval::is_rough)
}

/// Whether an interval of the table is rough.
fn rough(row: &CpuRow) -> bool {
    let figures = &row.figures;
    rough_rate(row)
        || [figures.median_bounds, figures.p99_bounds, figures.p999_bounds].iter().any(|bounds| bounds.rough)
}

/// Whether an interval lacks an end.
fn open(row: &CpuRow) -> bool {
    let figures = &row.figures;
    [figures.median_bounds, figures.p99_bounds, figures.p999_bounds].iter().any(|bounds| bounds.high.is_none())
}

/// The fields of a fitted tail.
const TAIL: [&Field<CpuRow>; 8] = [
    &cpu::CPU,
    &cpu::RETURN_PERIOD_NS,
    &cpu::RETURN_LEVEL_NS,
    &cpu::RETURN_LEVEL_LOW_NS,
    &cpu::RETURN_LEVEL_HIGH_NS,
    &cpu::TAIL_SHAPE,
    &cpu::TAIL_CLUSTERS,
    &cpu::TAIL_THRESHOLD_NS,
];

/// Whether a tail was fitted to a CPU's detours.
const fn fits(row: &CpuRow) -> bool {
    matches!(row.figures.tail, Some(Ok(_)))
}

/// The return levels of long detours.
pub(crate) fn tails(summary: &Summary, rows: &[CpuRow]) -> Section {
    let fitting: Vec<&CpuRow> = rows.iter().filter(|row| fits(row)).collect();
    let total = summary.cpus.len() > 1 && fits(&CpuRow::total(summary));
    let mut blocks = Vec::new();
    if !fitting.is_empty() || total {
        let note = "over: the length exceeded once in that time; low and high: its 95 % CI (peaks over threshold)";
        blocks.extend([Block::Table(table(summary, &fitting, &TAIL, total)), Block::Text(note.to_owned())]);
    }
    blocks.extend(notes(summary, rows, |row| row.figures.tail.as_ref().and_then(tails::note)));
    Section::new("tails", "Longest", "Longest interruptions to expect", blocks).titled()
}

/// The compared peers, and their outliers; `None` for a single CPU.
pub(crate) fn equals(summary: &Summary) -> Option<Section> {
    if summary.cpus.len() < 2 {
        return None;
    }
    let mut equals = Vec::new();
    for peers in &summary.peers {
        let (who, what) = match &peers.node {
            Some(node) if summary.nodes.len() > 1 => (format!("CPUs of {node}"), "CPUs"),
            Some(_) => ("CPUs".to_owned(), "CPUs"),
            None => ("nodes".to_owned(), "nodes"),
        };
        let needed = becalm_stats::outliers::PEERS_MIN;
        if !peers.enough {
            let text = format!("not enough {what} to find outliers: {} of {needed} needed", peers.compared);
            equals.push(Block::Remark(who, text));
            continue;
        }
        let differ: Vec<String> = summary
            .outliers
            .iter()
            .filter(|outlier| match &peers.node {
                Some(node) => outlier.cpu.is_some() && outlier.node == *node,
                None => outlier.cpu.is_none(),
            })
            .map(|outlier| {
                let name = outlier.cpu.map_or_else(|| outlier.node.clone(), |cpu| format!("CPU {cpu}"));
                format!("{name} has {}x the median noise", factor(outlier.outlier.factor))
            })
            .collect();
        let text = match differ.is_empty() {
            true => format!("no outliers among {}", peers.compared),
            false => differ.join("; "),
        };
        equals.push(Block::Remark(who, text));
    }
    (!equals.is_empty()).then(|| Section::new("equals", "Peers", "Peers compared", equals).titled())
}

/// A period with all CPUs of a node that have it.
struct PeriodRow {
    /// The one with the most events.
    found: PeriodSummary,
    cpus: CpuList,
}

fields! {
    PERIODIC, periodic: PeriodRow {
        SOURCE = "source", "what", |row| what(&row.found.origin);
        INTERVAL_NS = "interval_ns", "every", |row| row.found.every();
        JITTER_NS = period::JITTER_NS => |row| &row.found;
        SEEN_RATIO = period::SEEN_RATIO => |row| &row.found;
        CPUS = "cpus", "CPUs", |row| row.cpus.to_string();
    }
}

/// The node of a period, if there are several.
const NODE: Field<PeriodRow> = field!(catalogue::NODE, |row| row.found.node.clone());

fn what(origin: &Origin) -> String {
    match origin {
        Origin::Source { kind, source } => format!("{kind} {source}"),
        Origin::Detours { from_ns, below_ns } => format!("detours of {}-{}", time(*from_ns), time(*below_ns)),
    }
}

/// The periods, those of the costliest source first.
fn period_rows(summary: &Summary) -> Vec<PeriodRow> {
    let mut rows: Vec<PeriodRow> = Vec::new();
    for found in &summary.periods {
        match rows.iter_mut().find(|row| row.found.is_same(found)) {
            Some(row) => {
                row.cpus = row.cpus.iter().chain([found.cpu]).collect();
                if found.period.events > row.found.period.events {
                    row.found = found.clone();
                }
            }
            None => rows.push(PeriodRow { found: found.clone(), cpus: [found.cpu].into_iter().collect() }),
        }
    }
    let noise = |row: &PeriodRow| match &row.found.origin {
        Origin::Source { kind, source } => {
            summary.sources.iter().position(|other| other.kind == *kind && other.source == *source)
        }
        Origin::Detours { .. } => None,
    };
    rows.sort_by_key(|row| noise(row).unwrap_or(usize::MAX));
    rows
}

/// The periods of guests that are the timer tick of their host: on all CPUs of the node.
fn host_ticks<'a>(summary: &'a Summary, rows: &'a [PeriodRow]) -> impl Iterator<Item = Block> + 'a {
    rows.iter().filter_map(|row| {
        let node = summary.nodes.iter().find(|node| node.doc.node == row.found.node)?;
        let hz = row.found.host_tick_hz().filter(|_| node.doc.machine.hypervisor.is_some())?;
        let name = format!("{} every {}", what(&row.found.origin), row.found.every());
        let is_everywhere = node.doc.cpus.iter().all(|cpu| row.cpus.contains(cpu.cpu));
        is_everywhere.then(|| Block::Remark(name, format!("the host's timer tick ({} Hz)", grouped(hz.into()))))
    })
}

/// The section of periods, if there are any.
pub(crate) fn periods(summary: &Summary) -> Option<Section> {
    let rows = period_rows(summary);
    let mut fields: Vec<&Field<PeriodRow>> = PERIODIC.iter().collect();
    if summary.nodes.len() > 1 {
        fields.insert(0, &NODE);
    }
    let mut table = Table::filled(&fields, &rows).with_most_important(SHOWN, |hidden| format!("and {hidden} more"));
    table.note = "jitter: the deviation of events from the period; of beats: the share of periods that have an event."
        .to_owned();
    let blocks = std::iter::once(Block::Table(table)).chain(host_ticks(summary, &rows)).collect();
    let section = Section::named("periods", "Periods", blocks).explained(
        "Sources that come back after a constant time: each is driven by a timer, which can be found and often switched off.",
    );
    (!rows.is_empty()).then_some(section)
}
