//! Two runs against each other, for a terminal and as `becalm.compare/1`.

use std::cmp::Ordering;
use std::io::{self, Write};

use becalm_analyze::compare::{Comparison, Doubt, Family, LEVEL, Limit, Metric, Row, Side, Unit, Verdict};
use becalm_analyze::stats::{CONFIDENCE, RESAMPLES, SEED};
use becalm_trace::Kind;
use becalm_trace::node::{Rung, Warning};
use serde::Serialize;

use crate::Value;
use crate::field::{Field, Object, columns};
use crate::header::{line, paragraph};
use crate::json;
use crate::table::Table;
use crate::value::{grouped, signed, three_digits, time};

/// How many sources and CPUs are shown unless all are asked for.
const SHOWN: usize = 12;

/// How many sources the headline names.
pub(crate) const NAMED: usize = 3;

/// Longer names of sources lose their middle.
const NAME_WIDTH: usize = 20;

/// What was compared, and what was asked of it.
#[derive(Clone, Debug)]
pub struct CompareReport<'a> {
    /// The runs and the rows.
    pub comparison: &'a Comparison,
    /// The limits that were given; none, if none were.
    pub checks: &'a [Check],
}

/// A limit on how much worse the second run may be.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Check {
    /// Of which figure of all CPUs together.
    pub metric: Metric,
    /// By which part of the first run's figure it may be worse.
    pub share: f64,
    /// What came out.
    pub outcome: Limit,
}

/// A figure in its metric's unit.
pub(crate) fn figure(row: &Row, number: Option<f64>) -> Value {
    let Some(number) = number else { return Value::Missing };
    match row.metric.unit() {
        Unit::Nanoseconds => Value::time(number),
        Unit::Hertz => Value::Rate(number),
        Unit::Ratio => Value::Ratio(number),
    }
}

fn text(text: Option<impl Into<String>>) -> Value {
    text.map_or(Value::Missing, |text| Value::Text(text.into()))
}

fn plain(number: Option<f64>) -> Value {
    number.map_or(Value::Missing, Value::Factor)
}

pub(crate) fn ratio(row: &Row) -> Option<f64> {
    row.effect.and_then(|effect| effect.ratio)
}

pub(crate) fn change(ratio: Option<f64>) -> Value {
    ratio.map_or(Value::Missing, |ratio| Value::Change(ratio - 1.0))
}

/// The fields of a row.
const ROW: &[Field<Row>] = &[
    Field { name: "what", title: "", get: |row| Value::Text(row.metric.name().to_owned()) },
    Field { name: "title", title: "", get: |row| Value::Text(title(row)) },
    Field { name: "family", title: "family", get: |row| Value::Text(family(row.family).to_owned()) },
    Field { name: "node", title: "node", get: |row| text(row.place.as_ref().map(|place| place.node.as_str())) },
    Field {
        name: "cpu",
        title: "cpu",
        get: |row| row.place.as_ref().map_or(Value::Missing, |place| Value::Number(u64::from(place.cpu.get()))),
    },
    Field { name: "source", title: "source", get: |row| text(row.source.as_ref().map(|(_, source)| source.as_str())) },
    Field { name: "kind", title: "kind", get: |row| text(row.source.as_ref().map(|(kind, _)| kind.name())) },
    Field { name: "stretch_ns", title: "stretch", get: |row| row.stretch_ns.map_or(Value::Missing, Value::Time) },
    Field { name: "unit", title: "unit", get: |row| Value::Text(unit(row.metric.unit()).to_owned()) },
    Field { name: "a", title: "A", get: |row| figure(row, row.a) },
    Field { name: "b", title: "B", get: |row| figure(row, row.b) },
    Field { name: "difference", title: "B - A", get: |row| figure(row, row.difference) },
    Field { name: "low", title: "low", get: |row| figure(row, row.low) },
    Field { name: "high", title: "high", get: |row| figure(row, row.high) },
    Field { name: "effect", title: "effect", get: |row| plain(ratio(row)) },
    Field { name: "effect_ratio", title: "B / A", get: |row| plain(ratio(row)) },
    Field { name: "effect_ratio_low", title: "low", get: |row| plain(row.effect.and_then(|effect| effect.ratio_low)) },
    Field {
        name: "effect_ratio_high",
        title: "high",
        get: |row| plain(row.effect.and_then(|effect| effect.ratio_high)),
    },
    Field { name: "cliffs_delta", title: "delta", get: |row| plain(row.effect.and_then(|effect| effect.cliffs_delta)) },
    Field { name: "p_value", title: "p", get: |row| plain(row.p_value) },
    Field { name: "p_adjusted", title: "adjusted p", get: |row| plain(row.p_adjusted) },
    Field { name: "verdict", title: "verdict", get: |row| Value::Text(row.verdict.name().to_owned()) },
    Field { name: "note", title: "note", get: |row| text(row.doubt.map(reason)) },
];

/// The columns of a table beside the row's name, narrow enough for 80 columns.
pub(crate) const COLUMNS: &[Field<Row>] = &[
    Field { name: "a", title: "A", get: |row| figure(row, row.a) },
    Field { name: "b", title: "B", get: |row| figure(row, row.b) },
    Field { name: "change", title: "change", get: |row| change(ratio(row)) },
    Field { name: "low", title: "low", get: |row| change(row.effect.and_then(|effect| effect.ratio_low)) },
    Field { name: "high", title: "high", get: |row| change(row.effect.and_then(|effect| effect.ratio_high)) },
    Field { name: "difference", title: "difference", get: |row| Value::Text(said(row.verdict).to_owned()) },
];

/// The verdict below the title "difference".
const fn said(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Worse => "worse",
        Verdict::Better => "better",
        Verdict::NoDifferenceShown => "none shown",
        Verdict::NotEnoughData => "too little data",
    }
}

const fn unit(unit: Unit) -> &'static str {
    match unit {
        Unit::Nanoseconds => "ns",
        Unit::Hertz => "hz",
        Unit::Ratio => "ratio",
    }
}

const fn family(family: Family) -> &'static str {
    match family {
        Family::Headline => "headline",
        Family::Total => "total",
        Family::Sources => "sources",
        Family::Cpus => "cpus",
    }
}

/// What a figure is called in a table.
pub(crate) fn title(row: &Row) -> String {
    match (row.metric, row.stretch_ns) {
        (Metric::NoiseRatio, _) => "noise".to_owned(),
        (Metric::Rate, _) => "rate".to_owned(),
        (Metric::Mean, _) => "mean".to_owned(),
        (Metric::P99, _) => "p99".to_owned(),
        (Metric::P999, _) => "p99.9".to_owned(),
        (Metric::StretchMax, Some(ns)) => format!("longest in {}", time(ns)),
        (Metric::StretchMax, None) => "longest in a stretch".to_owned(),
        (Metric::Max, _) => "max".to_owned(),
        (Metric::TimeRatio, _) => "of time".to_owned(),
    }
}

/// Why there is not enough data, and what to do.
pub(crate) fn reason(doubt: Doubt) -> String {
    match doubt {
        Doubt::NoDetour => "there is no detour to compare".to_owned(),
        Doubt::FewTrains { trains } => format!(
            "both runs together rest on about {} stretches of time, fewer than 10; record longer",
            three_digits(trains)
        ),
        Doubt::LongTrains { block_ns } => format!(
            "a run drifts over stretches of about {}, of which fewer than 20 fit into it; record longer",
            time(block_ns)
        ),
        Doubt::ShortRun => "a run is too short to be cut into 20 parts".to_owned(),
        Doubt::FewDetours { needed } => format!("it takes about {} detours in each run", grouped(needed)),
        Doubt::FewStretches { stretches, width_ns } => {
            format!("the shorter run has {stretches} stretches of {}, and it takes 12; record longer", time(width_ns))
        }
        Doubt::CpusDiffer => "the longest detours of more CPUs are longer; compare as many".to_owned(),
        Doubt::OneValue => {
            "one detour of each run shows nothing; see the longest detours of stretches of time".to_owned()
        }
    }
}

#[derive(Serialize)]
struct Document<'a> {
    schema: &'static str,
    headline: String,
    a: SideDoc<'a>,
    b: SideDoc<'a>,
    shortest_ns: i64,
    method: MethodDoc,
    rows: Vec<Object<'a, Row>>,
    checks: Vec<CheckDoc>,
    notes: &'a [Warning],
}

#[derive(Serialize)]
struct SideDoc<'a> {
    path: String,
    nodes: Vec<&'a str>,
    cpus: String,
    observed_ns: i64,
    duration_ns: i64,
    t_min_ns: Option<i64>,
    threshold_ns: Option<i64>,
    rung: Rung,
    detours: u64,
    dropped_detours: u64,
    dropped_ns: i64,
    incomplete: u64,
}

/// How the intervals and verdicts are made.
#[derive(Serialize)]
struct MethodDoc {
    sums: &'static str,
    quantiles: &'static str,
    stretches: &'static str,
    adjustment: &'static str,
    confidence_ratio: f64,
    level_ratio: f64,
    resamples: usize,
    seed: u64,
}

#[derive(Serialize)]
struct CheckDoc {
    what: &'static str,
    limit_ratio: f64,
    outcome: &'static str,
}

/// As `becalm.compare/1`. `a`, `b`, `difference`, `low` and `high` of a row are in its `unit`, which the name in `what` ends
/// with; `effect` is b / a.
#[must_use]
pub fn compare_json(report: &CompareReport<'_>) -> String {
    let comparison = report.comparison;
    let check = |check: &Check| CheckDoc {
        what: check.metric.name(),
        limit_ratio: check.share,
        outcome: match check.outcome {
            Limit::Exceeded => "exceeded",
            Limit::NotShown => "not shown",
            Limit::Unknown => "not enough data",
        },
    };
    json::text(&Document {
        schema: "becalm.compare/1",
        headline: headline(comparison),
        a: side_doc(&comparison.a),
        b: side_doc(&comparison.b),
        shortest_ns: comparison.shortest_ns,
        method: MethodDoc {
            sums: "circular block bootstrap, studentized, and welch's t",
            quantiles: "woodruff, by blocks; differences by variance recovery",
            stretches: "mann-whitney; hodges-lehmann",
            adjustment: "holm, in each family",
            confidence_ratio: CONFIDENCE,
            level_ratio: LEVEL,
            resamples: RESAMPLES,
            seed: SEED,
        },
        rows: comparison.rows.iter().map(|row| Object(ROW, row)).collect(),
        checks: report.checks.iter().map(check).collect(),
        notes: &comparison.notes,
    })
}

fn side_doc(side: &Side) -> SideDoc<'_> {
    SideDoc {
        path: side.path.display().to_string(),
        nodes: side.docs.iter().map(|doc| doc.node.as_str()).collect(),
        cpus: side.cpus().to_string(),
        observed_ns: side.observed_ns,
        duration_ns: side.length_ns,
        t_min_ns: side.t_min_ns,
        threshold_ns: side.threshold_ns,
        rung: side.rung,
        detours: side.detours,
        dropped_detours: side.dropped,
        dropped_ns: side.dropped_ns,
        incomplete: side.incomplete,
    }
}

/// As tables. `all` shows every source and CPU, not only those that changed most.
///
/// # Errors
/// If `out` cannot be written.
pub fn render_compare(report: &CompareReport<'_>, out: &mut dyn Write, all: bool) -> io::Result<()> {
    let comparison = report.comparison;
    paragraph(out, "  ", &headline(comparison))?;
    writeln!(out)?;
    line(out, "A", &side(&comparison.a))?;
    line(out, "B", &side(&comparison.b))?;
    for note in &comparison.notes {
        paragraph(out, "  ! ", &note.message)?;
        paragraph(out, "    \u{2192} ", &note.advice)?;
    }
    print_rows(out, &place(comparison), "figure", &totals(comparison), &|row| title(row), true)?;
    for (metric, title) in [(Metric::TimeRatio, "Sources, of all time"), (Metric::Rate, "Sources, how often")] {
        print_rows(out, title, "source", &sources(comparison, metric), &source_name, all)?;
    }
    let mut cpus = cpus(comparison);
    if !all && cpus.len() > SHOWN {
        most_changed_first(&mut cpus);
    }
    let nodes = comparison.a.docs.len() > 1;
    print_rows(out, "CPUs, noise", "cpu", &cpus, &|row| cpu_name(row, nodes), all)?;
    writeln!(out)?;
    paragraph(out, "  ", &legend(comparison))?;
    print_checks(report, out)
}

/// The figures of all CPUs together.
pub(crate) fn totals(comparison: &Comparison) -> Vec<&Row> {
    comparison.rows.iter().filter(|row| row.source.is_none() && row.place.is_none()).collect()
}

/// Whose figures those are.
pub(crate) fn place(comparison: &Comparison) -> String {
    let cpus = comparison.a.cpus();
    match (comparison.a.count_cpus(), comparison.b.count_cpus()) {
        (1, 1) if cpus == comparison.b.cpus() => format!("CPU {cpus}"),
        _ => "All CPUs together".to_owned(),
    }
}

/// A figure of every source. What is shown to have changed stands first; the order by the size of the change is kept
/// otherwise.
pub(crate) fn sources(comparison: &Comparison, metric: Metric) -> Vec<&Row> {
    let rows = comparison.rows.iter().filter(|row| row.source.is_some() && row.metric == metric);
    let mut rows: Vec<&Row> = rows.collect();
    rows.sort_by_key(|row| !matches!(row.verdict, Verdict::Worse | Verdict::Better));
    rows
}

/// The noise of every CPU.
pub(crate) fn cpus(comparison: &Comparison) -> Vec<&Row> {
    comparison.rows.iter().filter(|row| row.place.is_some() && row.metric == Metric::NoiseRatio).collect()
}

/// By how much they changed.
pub(crate) fn most_changed_first(rows: &mut [&Row]) {
    let change = |row: &Row| row.difference.unwrap_or(0.0).abs();
    rows.sort_by(|a, b| change(b).partial_cmp(&change(a)).unwrap_or(Ordering::Equal));
}

fn print_rows(
    out: &mut dyn Write,
    heading: &str,
    first: &'static str,
    rows: &[&Row],
    name: &dyn Fn(&Row) -> String,
    all: bool,
) -> io::Result<()> {
    if rows.is_empty() {
        return Ok(());
    }
    writeln!(out, "\n{heading}")?;
    let shown = if all { rows.len() } else { rows.len().min(SHOWN) };
    let fields = columns(COLUMNS, &["a", "b", "change", "low", "high", "difference"]);
    let mut table = Table::named(first, &fields);
    rows[..shown].iter().for_each(|row| table.named_row(name(row), &fields, *row));
    table.print(out)?;
    if shown < rows.len() {
        writeln!(out, "  the first {SHOWN} of {}; --all shows every one", rows.len())?;
    }
    let mut said: Vec<String> = Vec::new();
    for row in &rows[..shown] {
        // The same reason with another figure is not said again.
        let Some(doubt) = row.doubt else { continue };
        let kind = format!("{:?}", std::mem::discriminant(&doubt));
        if row.source.is_none() || !said.contains(&kind) {
            paragraph(out, &format!("  {}: ", name(row)), &reason(doubt))?;
        }
        said.push(kind);
    }
    Ok(())
}

fn source_name(row: &Row) -> String {
    let name = row.source.as_ref().map_or("", |(_, source)| source.as_str());
    let length = name.chars().count();
    if length <= NAME_WIDTH {
        return name.to_owned();
    }
    let (head, tail) = (NAME_WIDTH / 2, NAME_WIDTH - NAME_WIDTH / 2 - 1);
    let head: String = name.chars().take(head).collect();
    let tail: String = name.chars().skip(length - tail).collect();
    format!("{head}\u{2026}{tail}")
}

pub(crate) fn cpu_name(row: &Row, nodes: bool) -> String {
    match &row.place {
        Some(place) if nodes => format!("{} {}", place.node, place.cpu),
        Some(place) => place.cpu.to_string(),
        None => String::new(),
    }
}

/// How the columns are to be read.
pub(crate) fn legend(comparison: &Comparison) -> String {
    let tested = comparison.rows.iter().filter(|row| row.p_value.is_some()).count();
    format!(
        "low and high: the 95 % interval of the change, of each row by itself. The difference is said at the 5 % level: of \
         noise by itself, of the other {} tested rows with allowance for their number (Holm; figures, sources and CPUs each \
         on their own). 'none shown' does not say that there is none",
        tested.saturating_sub(1)
    )
}

fn print_checks(report: &CompareReport<'_>, out: &mut dyn Write) -> io::Result<()> {
    if !report.checks.is_empty() {
        writeln!(out)?;
    }
    for check in report.checks {
        paragraph(out, "  ", &check_text(report.comparison, check))?;
    }
    Ok(())
}

/// What a limit says, in a sentence.
#[must_use]
pub fn check_text(comparison: &Comparison, check: &Check) -> String {
    let row = comparison.total(check.metric);
    let name = row.map_or_else(|| check.metric.name().to_owned(), title);
    let share = three_digits(check.share * 100.0);
    match check.outcome {
        Limit::Exceeded => match row.and_then(|row| row.effect).and_then(|effect| effect.ratio_low) {
            Some(low) => format!(
                "{name}: B is worse than A by more than {share}%: by at least {}%, with 95 % confidence",
                three_digits((low - 1.0) * 100.0)
            ),
            None => format!("{name}: B is worse than A by more than {share}%: A has none"),
        },
        Limit::NotShown => format!("{name}: it is not shown that B is worse than A by more than {share}%"),
        Limit::Unknown => {
            format!("{name}: there is not enough data to say whether B is worse than A by more than {share}%")
        }
    }
}

pub(crate) fn side(side: &Side) -> String {
    let nodes: Vec<&str> = side.docs.iter().map(|doc| doc.node.as_str()).collect();
    let mut parts = vec![format!("{}: {}", side.path.display(), nodes.join(", "))];
    parts.push(format!("CPU {} over {}", side.cpus(), time(side.length_ns)));
    parts.push(format!("{} detours", grouped(side.detours)));
    parts.extend(side.t_min_ns.map(|ns| format!("t_min {}", time(ns))));
    parts.extend(side.threshold_ns.map(|ns| format!("threshold {}", time(ns))));
    if let Some(doc) = side.docs.first() {
        parts.push(format!("Linux {}", doc.machine.kernel));
        parts.extend(Some(doc.machine.processor.clone()).filter(|name| !name.is_empty()));
    }
    parts.join(", ")
}

/// The answer in a sentence: whether the second run is quieter, by how much, and which sources made the difference.
#[must_use]
pub fn headline(comparison: &Comparison) -> String {
    let mut text = answer(comparison);
    for (_, name, how) in changed(comparison).take(NAMED) {
        text += &format!("; {name} {how}");
    }
    text
}

/// Whether the second run is quieter, and by how much.
pub(crate) fn answer(comparison: &Comparison) -> String {
    let Some(noise) = comparison.total(Metric::NoiseRatio) else { return "there is nothing to compare".to_owned() };
    let answer = match noise.verdict {
        Verdict::Better => "B is quieter",
        Verdict::Worse => "B is noisier",
        Verdict::NoDifferenceShown => "No difference in noise is shown",
        Verdict::NotEnoughData => "Not enough data to compare the noise",
    };
    let mut text = format!("{answer}: noise {} -> {}", figure(noise, noise.a).cell(), figure(noise, noise.b).cell());
    match (noise.low, noise.high, noise.doubt) {
        (Some(low), Some(high), _) => {
            text += &format!(" (95 %: {} to {} points)", signed(low * 100.0), signed(high * 100.0));
        }
        (.., Some(doubt)) => text += &format!("; {}", reason(doubt)),
        _ => {}
    }
    text
}

/// The sources whose share of time is shown to have changed, with their kinds, and how.
pub(crate) fn changed(comparison: &Comparison) -> impl Iterator<Item = (Kind, &str, String)> {
    let rows = comparison.rows.iter().filter(|row| row.metric == Metric::TimeRatio);
    let shown = rows.filter(|row| matches!(row.verdict, Verdict::Worse | Verdict::Better));
    shown.filter_map(|row| {
        let (kind, name) = row.source.as_ref()?;
        let how = match (row.a, row.b) {
            (_, Some(0.0)) => "gone".to_owned(),
            (Some(0.0), _) => "new".to_owned(),
            _ => change(ratio(row)).cell(),
        };
        Some((*kind, name.as_str(), how))
    })
}
