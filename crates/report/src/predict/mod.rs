//! Predictions for a terminal and as `becalm.predict/1`.

pub(crate) mod books;
pub mod intervals;
pub mod rounded;
mod tolerance;
pub(crate) mod view;

use becalm_model::Estimate;
use becalm_model::node::Warning;
use becalm_scale::blame::{Blame, Removal};
use becalm_scale::collective::{Collective, Operation};
use becalm_scale::phases::PhaseSpread;
use becalm_scale::predict::{Question, RankPrediction};
use becalm_scale::tolerance::{Tolerance, lost};
use becalm_scale::{Alignment, Noise};
use becalm_units::{Nanos, Share, plural};
use serde::Serialize;

use crate::Value;
use crate::catalogue;
use crate::form::field::{Field, Object, fields};
use crate::form::figure::{self, Factor, Often, Ratio, Time};
use crate::form::plot::Curve;
use crate::form::section::{Block, Page};
use crate::form::sheet::Form;
use crate::form::table::Table;
use crate::form::value::{grouped, three_digits, time};
use crate::predict::rounded::{round, times};
use crate::report::Report;

/// The number of sources with their own line for each number of ranks.
const SHOWN: usize = 8;

/// The question and the answers of a prediction.
pub struct PredictReport<'a> {
    /// The recording or the formula behind the noise.
    pub name: &'a str,
    /// The noise, without the sources removed at the start.
    pub noise: &'a Noise,
    /// Whether the noise is from a recording in summary form.
    pub summary: bool,
    /// Whether it is that of observed threads, each a node of its own.
    pub of_threads: bool,
    /// The names of the sources removed at the start.
    pub without: &'a [String],
    /// The question; each row has its own grain.
    pub question: Question,
    /// The answers, grain by grain.
    pub rows: &'a [RankPrediction],
    /// The blame for each grain, if requested.
    pub blame: &'a [(Nanos, Vec<Blame>)],
    /// The names of all sources.
    pub sources: &'a [String],
    /// The node and the CPU number of each recorded trace.
    pub places: &'a [(String, i32)],
    /// The share of a job's time that may be lost, with the answers for each grain; if requested.
    pub tolerance: Option<(Share, &'a [Tolerance])>,
    /// The node-hours of such jobs per year, if known.
    pub node_hours: Option<f64>,
    /// Everything that limits the numbers.
    pub warnings: &'a [Warning],
}

/// A row with its error, as far as known.
pub struct PredictedRow {
    row: RankPrediction,
    replicas: u64,
    node_hours: Option<f64>,
}

impl PredictedRow {
    /// A row of a prediction with this number of replicas.
    pub const fn new(row: RankPrediction, replicas: u64) -> Self {
        Self { row, replicas, node_hours: None }
    }

    pub(crate) fn with_node_hours(self, node_hours: Option<f64>) -> Self {
        Self { node_hours, ..self }
    }

    fn slowdown(&self, end: fn(&Estimate) -> f64) -> Option<Factor> {
        self.row.slowdown.as_ref().map(|slowdown| Factor(end(slowdown)))
    }

    /// An end of the interval over the seeds; `None` with a single replica or without a replay.
    fn seeds(&self, end: fn(&Estimate) -> f64) -> Option<Factor> {
        if self.replicas > 1 && self.row.replayed { self.slowdown(end) } else { None }
    }

    /// The lower end of the interval: over recordings if the noise was recorded, over seeds if it is a formula.
    fn low(&self) -> Option<Factor> {
        match &self.row.recording {
            Some(bounds) => Some(Factor(bounds.low)),
            None if self.row.formula => self.seeds(|slowdown| slowdown.low),
            None => None,
        }
    }

    /// Its upper end; `None` if the recording does not bound it.
    fn high(&self) -> Option<Factor> {
        match &self.row.recording {
            Some(bounds) => bounds.high.map(Factor),
            None if self.row.formula => self.seeds(|slowdown| slowdown.high),
            None => None,
        }
    }

    /// The interval as text.
    fn interval(&self) -> Option<String> {
        rounded::interval(self.low().map(|low| low.0), self.high().map(|high| high.0))
    }

    /// The node-hours lost to noise at this slowdown.
    fn lost_hours(&self, slowdown: Option<Factor>) -> Option<Often> {
        Some(Often(self.node_hours? * lost(slowdown?.0)))
    }

    /// A time of the spread of phases.
    fn spread(&self, time: fn(&PhaseSpread) -> Nanos) -> Option<Nanos> {
        self.row.spread.as_ref().map(time)
    }

    /// The share of the added time that comes from the longest 1, 3 or 10 delays of the recording.
    fn longest(&self, number: usize) -> Option<Ratio> {
        self.row.recording.map(|bounds| Ratio(bounds.longest[number]))
    }
}

fields! {
    /// The figures of a prediction for one number of ranks.
    pub ROW, row: PredictedRow {
        RANKS = catalogue::RANKS, |line| line.row.ranks;
        GRAIN_NS = "grain_ns", "grain", |line| line.row.grain;
        PHASES = "phases", "phases", |line| line.row.phases;
        COLLECTIVE = "collective", "collective", |line| line.row.collective.to_string();
        ALGORITHM = "algorithm", "algorithm", |line| line.row.algorithm.to_string();
        SLOWDOWN_RATIO = catalogue::SLOWDOWN_RATIO, |line| line.slowdown(|slowdown| slowdown.mean);
        SLOWDOWN_LOW = "slowdown_low", "low", PredictedRow::low;
        SLOWDOWN_HIGH = "slowdown_high", "high", PredictedRow::high;
        SEEDS_LOW = "seeds_low", "seeds low", |line| line.seeds(|slowdown| slowdown.low);
        SEEDS_HIGH = "seeds_high", "seeds high", |line| line.seeds(|slowdown| slowdown.high);
        LONGEST_1_RATIO = "longest_1_ratio", "longest 1", |line| line.longest(0);
        LONGEST_3_RATIO = "longest_3_ratio", "longest 3", |line| line.longest(1);
        LONGEST_10_RATIO = "longest_10_ratio", "longest 10", |line| line.longest(2);
        RECORDING_NEEDED_NS = "recording_needed_ns", "needs",
            |line| line.row.recording.and_then(|bounds| bounds.needed);
        MISSED_EVERY_NS = "missed_every_ns", "may miss",
            |line| line.row.missed.map(|missed| missed.every);
        MISSED_PHASES_RATIO = "missed_phases_ratio", "may hit",
            |line| line.row.missed.map(|missed| figure::Share(missed.phases));
        EXPECTED_RATIO = "expected_ratio", "expected",
            |line| line.row.expected_ratio.map(Factor);
        LAW_RATIO = "law_ratio", "law",
            |line| line.row.law.map(|law| Factor(law.slowdown_ratio));
        EFFICIENCY_RATIO = "efficiency_ratio", "efficiency",
            |line| line.row.efficiency().map(figure::Share);
        LOST_NODE_HOURS = "lost_node_hours", "lost node-hours", |line| line.lost_hours(line.slowdown(|slowdown| slowdown.mean));
        LOST_NODE_HOURS_LOW = "lost_node_hours_low", "low", |line| line.lost_hours(line.low());
        LOST_NODE_HOURS_HIGH = "lost_node_hours_high", "high", |line| line.lost_hours(line.high());
        PHASE_MEDIAN_NS = "phase_median_ns", "median", |line| line.spread(|spread| spread.median);
        PHASE_P99_NS = "phase_p99_ns", "99 %", |line| line.spread(|spread| spread.p99);
        PHASE_P999_NS = "phase_p999_ns", "99.9 %", |line| line.spread(|spread| spread.p999);
        DELAYED_RATIO = "delayed_ratio", "delayed",
            |line| line.row.spread.map(|spread| Ratio(spread.delayed_ratio()));
        WORST_PHASE_NS = "worst_phase_ns", "worst phase",
            |line| line.row.worst_phase;
        MEAN_PHASE_NS = "mean_phase_ns", "mean phase",
            |line| line.row.mean_phase_ns.and_then(Time::rounded);
        QUIET_PHASE_NS = "quiet_phase_ns", "quiet phase", |line| Time::rounded(line.row.quiet_phase_ns);
    }
}

fields! {
    /// Fields only of tables.
    pub columns: PredictedRow {
        INTERVAL = "interval", "95 % CI", PredictedRow::interval;
        LONGEST = "longest", "longest", |line| line.longest(0).map(|share| figure::Share(share.0));
        LONGEST_3 = "longest_3", "longest 3", |line| line.longest(1).map(|share| figure::Share(share.0));
        LONGEST_10 = "longest_10", "longest 10", |line| line.longest(2).map(|share| figure::Share(share.0));
    }
}

impl Report for PredictReport<'_> {
    fn schema(&self) -> &'static str {
        "becalm.predict/1"
    }

    fn document(&self) -> impl Serialize {
        document(self)
    }

    fn view(&self, _: Form) -> Page {
        view::page(self)
    }
}

#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub(crate) struct PredictDocument<'a> {
    noise: NoiseDoc<'a>,
    without: &'a [String],
    seed: u64,
    replicas: u64,
    ranks_per_node: u64,
    alignment: &'static str,
    synchronized: bool,
    node_hours: Option<f64>,
    network: Option<String>,
    bytes: Option<u64>,
    rows: Vec<Object<PredictedRow>>,
    tolerance: Vec<tolerance::ToleranceDoc>,
    added: Vec<books::BooksDoc>,
    blame: Vec<BlameDoc<'a>>,
    warnings: &'a [Warning],
}

#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
struct NoiseDoc<'a> {
    name: &'a str,
    nodes: usize,
    cpus: usize,
    threads: usize,
    detours: usize,
    noise_ratio: f64,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
struct BlameDoc<'a> {
    ranks: u64,
    grain_ns: i64,
    without: Vec<&'a str>,
    slowdown_ratio: f64,
    gain_ratio: Option<f64>,
    gain_low: Option<f64>,
    gain_high: Option<f64>,
}

/// Builds `becalm.predict/1`.
///
/// `added` has the exact accounting for each number of ranks. The blame is first that of all the noise (`without` is what was removed at the start),
/// then without each source alone, or without those that add most, then without the best ones cumulatively.
fn document<'a>(report: &'a PredictReport<'_>) -> PredictDocument<'a> {
    let question = &report.question;
    let messages = collectives(report).iter().any(|collective| *collective != Collective::Ideal);
    let lines = lines(report);
    PredictDocument {
        noise: NoiseDoc {
            name: report.name,
            nodes: if report.of_threads { 1 } else { report.noise.nodes().len() },
            cpus: if report.of_threads { 0 } else { report.noise.traces().count() },
            threads: if report.of_threads { report.noise.traces().count() } else { 0 },
            detours: detours(report.noise),
            noise_ratio: report.noise.noise_ratio(),
        },
        without: report.without,
        seed: question.seed,
        replicas: question.replicas,
        ranks_per_node: question.per_node,
        alignment: alignment(report.noise),
        synchronized: question.synchronized,
        node_hours: report.node_hours,
        network: messages.then(|| question.network.to_string()),
        bytes: messages.then_some(question.bytes),
        rows: lines.iter().map(Object::new).collect(),
        tolerance: tolerance::docs(report),
        added: books::docs(report),
        blame: blame_docs(report),
        warnings: report.warnings,
    }
}

fn blame_docs<'a>(report: &PredictReport<'a>) -> Vec<BlameDoc<'a>> {
    let mut docs = Vec::new();
    for (grain, blames) in report.blame {
        for blame in blames {
            // The first cumulative removal is a single source, which `each` contains.
            let entries = std::iter::once(&blame.all).chain(&blame.each).chain(blame.next.iter().skip(1));
            docs.extend(entries.map(|entry| BlameDoc {
                ranks: entry.ranks,
                grain_ns: grain.get(),
                without: report.without.iter().map(String::as_str).chain(names(report, entry)).collect(),
                slowdown_ratio: entry.slowdown,
                gain_ratio: entry.gain.map(|gain| gain.mean),
                gain_low: entry.gain.filter(|_| report.question.replicas > 1).map(|gain| gain.low),
                gain_high: entry.gain.filter(|_| report.question.replicas > 1).map(|gain| gain.high),
            }));
        }
    }
    docs
}

pub(crate) fn names<'a>(report: &PredictReport<'a>, entry: &Removal) -> impl Iterator<Item = &'a str> {
    let sources = report.sources;
    entry.sources.iter().map(|source| sources[*source].as_str())
}

pub(crate) fn lines(report: &PredictReport<'_>) -> Vec<PredictedRow> {
    let (replicas, node_hours) = (report.question.replicas, report.node_hours);
    report.rows.iter().map(|row| PredictedRow { row: row.clone(), replicas, node_hours }).collect()
}

pub(crate) fn detours(noise: &Noise) -> usize {
    noise.traces().map(becalm_scale::NoiseTrace::len).sum()
}

type RowField = Field<PredictedRow>;

fn is_shown(lines: &[PredictedRow], field: &RowField) -> bool {
    lines.iter().any(|line| (field.get)(line) != Value::Missing)
}

/// The columns that identify a row.
fn job_fields(report: &PredictReport<'_>) -> Vec<&'static RowField> {
    let mut fields = vec![&row::RANKS, &row::GRAIN_NS];
    if collectives(report).len() > 1 {
        fields.push(&row::COLLECTIVE);
    }
    fields
}

/// The columns of the slowdowns, without empty ones.
fn slowdown_fields(report: &PredictReport<'_>, lines: &[PredictedRow]) -> Vec<&'static RowField> {
    let mut fields = job_fields(report);
    if lines.iter().any(|line| line.row.algorithm != line.row.collective) {
        fields.push(&row::ALGORITHM);
    }
    fields.push(&row::SLOWDOWN_RATIO);
    let some: [&'static RowField; 5] =
        [&columns::INTERVAL, &row::EXPECTED_RATIO, &row::LAW_RATIO, &row::EFFICIENCY_RATIO, &row::LOST_NODE_HOURS];
    fields.extend(some.into_iter().filter(|field| is_shown(lines, field)));
    fields
}

/// The share of the added time that comes from the longest detours of the recording, if known.
fn longest_table(report: &PredictReport<'_>, lines: &[PredictedRow]) -> Option<Table> {
    let known: Vec<&PredictedRow> =
        lines.iter().filter(|line| line.longest(2).is_some_and(|share| share.0 > 0.0)).collect();
    let mut fields = job_fields(report);
    fields.extend([&columns::LONGEST, &columns::LONGEST_3, &columns::LONGEST_10] as [&'static RowField; 3]);
    (!known.is_empty()).then(|| Table::filled(&fields, known).captioned(LONGEST_TITLE))
}

/// The title of that table.
const LONGEST_TITLE: &str = "Share of the added time from the longest interruptions recorded";

/// The columns of the spread of phases, if known.
fn phase_fields(report: &PredictReport<'_>, lines: &[PredictedRow]) -> Option<Vec<&'static RowField>> {
    if !is_shown(lines, &row::DELAYED_RATIO) {
        return None;
    }
    let mut fields = job_fields(report);
    let spread: [&'static RowField; 4] =
        [&row::MEAN_PHASE_NS, &row::PHASE_MEDIAN_NS, &row::PHASE_P99_NS, &row::PHASE_P999_NS];
    fields.extend(spread);
    fields.extend([&row::WORST_PHASE_NS, &row::DELAYED_RATIO]);
    Some(fields)
}

/// The error of alltoall predictions against measurements: B25 and B27 of the book's published figures.
const ALLTOALL: &str = "alltoall: -16 % to +101 % from the one published measurement (Beckman et al. 2007, Figure 6)";

/// The meaning of the slowdown columns, in sentences without full stops.
fn meanings(report: &PredictReport<'_>, lines: &[PredictedRow]) -> Vec<String> {
    let mut sentences = intervals::sentences(report.rows, report.question.replicas);
    let some = [
        (&row::EXPECTED_RATIO, "expected: order statistics of phases that start at random times"),
        (&row::LAW_RATIO, "law: Tsafrir's noise law"),
    ];
    let some: Vec<&str> =
        some.iter().filter(|(field, _)| is_shown(lines, field)).map(|(_, meaning)| *meaning).collect();
    if !some.is_empty() {
        sentences.push(some.join("; "));
    }
    if collectives(report).iter().any(|collective| collective.operation() == Some(Operation::Alltoall)) {
        sentences.push(ALLTOALL.to_owned());
    }
    if let Some(hours) = report.node_hours {
        sentences.push(format!("lost node-hours: of {} per year", Value::Often(hours).cell()));
    }
    sentences
}

fn noise(report: &PredictReport<'_>) -> String {
    let noise = report.noise;
    let cpus = noise.traces().count();
    let nodes = noise.nodes().len();
    let length = noise.traces().map(becalm_scale::NoiseTrace::length).max().unwrap_or(Nanos::ZERO);
    let ratio = three_digits(noise.noise_ratio() * 100.0);
    let without = match report.without {
        [] => String::new(),
        names => format!(", without {}", names.join(", ")),
    };
    if report.summary {
        let (cpus, delays) = (counted(cpus as u64, "CPU", "CPUs"), counted(detours(noise) as u64, "delay", "delays"));
        return format!(
            "{}{without}: {cpus} in summary form, {} drawn with {delays}, {ratio}% of the time",
            report.name,
            time(length.get())
        );
    }
    let place = match (noise.together(), nodes, cpus) {
        _ if report.of_threads => {
            format!("{}, awake for up to {}", counted(cpus as u64, "thread", "threads"), time(length.get()))
        }
        (false, ..) => format!("a circle of {}", time(length.get())),
        (true, 1, 1) => format!("1 CPU over {}", time(length.get())),
        (true, 1, _) => format!("{cpus} CPUs over {}", time(length.get())),
        (true, ..) => format!("{cpus} CPUs of {nodes} nodes over {}", time(length.get())),
    };
    let count = detours(noise);
    let detours = counted(count as u64, "detour", "detours");
    format!("{}{without}: {place}, {detours}, {ratio}% of the time", report.name)
}

/// A count with its noun: `1 detour`, `16,384 ranks`.
pub(crate) fn counted(count: u64, one: &str, many: &str) -> String {
    format!("{} {}", grouped(count), plural(count, one, many))
}

/// The collectives of all rows, each once.
fn collectives(report: &PredictReport<'_>) -> Vec<Collective> {
    let mut found = vec![report.question.collective];
    for row in report.rows {
        if !found.contains(&row.collective) {
            found.push(row.collective);
        }
    }
    found
}

/// The question for one collective and ranks that replay the CPUs of a node together.
pub fn job(question: &Question) -> String {
    job_of(question, Alignment::Node, &[question.collective])
}

/// Which ranks share an offset, as in a document.
pub(crate) fn alignment(noise: &Noise) -> &'static str {
    match noise.alignment() {
        Alignment::Independent => "independent",
        Alignment::Node => "node",
        Alignment::Recording => "recording",
    }
}

/// The number of ranks per node, and which of them share an offset.
fn ranks_of_node(question: &Question, alignment: Alignment) -> String {
    let per_node = question.per_node;
    let ranks = format!("{} per node", counted(per_node, "rank", "ranks"));
    match alignment {
        // All of them do then, and the next words say so.
        _ if question.synchronized => ranks,
        Alignment::Recording => format!("{ranks}, all recorded nodes at one offset"),
        Alignment::Node if per_node > 1 => format!("{ranks}, at one offset"),
        Alignment::Independent if per_node > 1 => format!("{ranks}, each at its own offset"),
        Alignment::Node | Alignment::Independent => ranks,
    }
}

/// The question, for rows with these collectives.
pub(crate) fn job_of(question: &Question, alignment: Alignment, collectives: &[Collective]) -> String {
    let bytes = counted(question.bytes, "byte", "bytes");
    let collective = match collectives {
        [Collective::Ideal] => "ideal collective".to_owned(),
        [collective] if collective.operation() == Some(Operation::Barrier) => collective.to_string(),
        [collective] => format!("{collective} of {bytes}"),
        several => format!("{} collectives of {bytes}", several.len()),
    };
    let mut parts = vec![counted(question.phases, "phase", "phases"), collective];
    if collectives != [Collective::Ideal] {
        parts.push(format!("network {}", question.network));
    }
    parts.push(ranks_of_node(question, alignment));
    if question.synchronized {
        parts.push("noise synchronized".to_owned());
    }
    parts.push(counted(question.replicas, "replica", "replicas"));
    parts.push(format!("seed {}", question.seed));
    parts.join(", ")
}

/// Whether two rows differ only in their ranks.
fn same_curve(a: &PredictedRow, b: &PredictedRow) -> bool {
    a.row.grain == b.row.grain && a.row.collective == b.row.collective
}

/// The name of a curve of rows: its grain, and the collective if there are several.
fn curve_name(lines: &[PredictedRow], row: &RankPrediction) -> String {
    let several = lines.iter().any(|line| line.row.collective != lines[0].row.collective);
    let collective = if several { format!("{}, ", row.collective) } else { String::new() };
    format!("{collective}grain {}", row.grain)
}

/// One curve per grain and collective; if there are too many ranks for a replay, the expectation by order statistics.
fn curves(lines: &[PredictedRow]) -> Vec<Curve> {
    let curve = |rows: &[PredictedRow]| {
        let point = |line: &PredictedRow| {
            let slowdown = line.row.slowdown.map(|slowdown| slowdown.mean).or(line.row.expected_ratio)?;
            Some((line.row.ranks, slowdown))
        };
        let mut points: Vec<(u64, f64)> = rows.iter().filter_map(point).collect();
        points.sort_by_key(|point| point.0);
        Curve { name: curve_name(lines, &rows[0].row), points }
    };
    lines.chunk_by(same_curve).map(curve).collect()
}

/// A table of rows, with a line between curves.
fn rows_table(fields: &[&RowField], lines: &[PredictedRow]) -> Table {
    let mut table = Table::new(fields);
    for (at, row) in lines.iter().enumerate() {
        if at > 0 && !same_curve(&lines[at - 1], row) {
            table.rule();
        }
        table.row(fields, row);
    }
    let slowdowns = [row::SLOWDOWN_RATIO.name, row::EXPECTED_RATIO.name, row::LAW_RATIO.name];
    for (at, _) in fields.iter().enumerate().filter(|(_, field)| slowdowns.contains(&field.name)) {
        round(&mut table, at);
    }
    table
}

/// The duration of a phase without noise, in nanoseconds.
pub(crate) fn quiet_phase_ns(report: &PredictReport<'_>, blame: &Blame) -> f64 {
    let is_of = |blames: &[Blame]| blames.iter().any(|other| std::ptr::eq(other, blame));
    let grain =
        report.blame.iter().find(|(_, blames)| is_of(blames)).map_or(report.question.grain, |(grain, _)| *grain);
    let row = report.rows.iter().find(|row| row.grain == grain && row.ranks == blame.all.ranks);
    row.map(|row| row.quiet_phase_ns).filter(|quiet| *quiet > 0.0).unwrap_or(grain.get() as f64)
}

/// The blame at one number of ranks on a terminal.
fn blame_blocks(report: &PredictReport<'_>, grain: Nanos, blame: &Blame) -> Vec<Block> {
    let ranks = counted(blame.all.ranks, "rank", "ranks");
    let slowdown = times(blame.all.slowdown);
    let mut blocks =
        vec![Block::Heading(format!("Blame at {ranks}, grain {grain}: slowdown {slowdown} in the replay"))];
    if let Some(books) = &blame.books {
        blocks.extend(books::blocks(report, blame, books));
        blocks.push(Block::Text("without the sources that add most:".to_owned()));
    }
    let alone = view::blame::alone(report, blame, SHOWN);
    if alone.is_empty() {
        blocks.push(Block::Text("no source gains anything when it is removed alone".to_owned()));
    } else {
        blocks.push(Block::Table(alone));
    }
    blocks.extend(Block::texts(blame.next.iter().skip(1).map(|without| {
        let names: Vec<&str> = names(report, without).collect();
        format!("without {}: slowdown {}", names.join(" and "), times(without.slowdown))
    })));
    blocks
}

#[cfg(test)]
mod tests {
    /// The sentence matches the differences in the book.
    #[test]
    fn alltoalls_are_off_by_what_the_book_says() {
        let page = include_str!("../../../../docs/src/papers/figures.md");
        let difference = |figure: &str| {
            let row = page.lines().find(|line| line.starts_with(&format!("| {figure} |"))).unwrap();
            row.split('|').nth(5).unwrap().trim().trim_end_matches(" %").parse::<f64>().unwrap().round()
        };
        let said = format!("{:+} % to {:+} %", difference("B25"), difference("B27"));
        assert!(super::ALLTOALL.contains(&said), "{said}");
    }
}
