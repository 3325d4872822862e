//! A tuning plan for a terminal and as `becalm.tune-plan/1`.
//!
//! Changes of one kind, as those of many threads, are one row of the table; the document has each.

use std::io::{self, Write};

use serde::Serialize;

use crate::Value;
use crate::form::field::{Field, Object, columns};
use crate::form::paragraph::{line, paragraph};
use crate::form::sheet::Sheet;
use crate::form::table::Table;
use crate::form::value::{factor, grouped};
use crate::report::Report;

/// A plan, as it is shown.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct TunePlanReport {
    /// The CPUs that become quiet.
    pub cpus: String,
    /// Those left idle; empty if none.
    pub left_idle: String,
    /// Siblings that go offline; empty if none.
    pub siblings: String,
    /// The CPUs for everything else.
    pub housekeeping: String,
    /// What they are wanted for.
    pub profile: String,
    /// Every change, in order.
    pub changes: Vec<PlannedRow>,
    /// What only a reboot can give.
    pub boot: Vec<BootRow>,
    /// What to add to the kernel's command line; empty if nothing.
    pub command_line: String,
    /// Families, and what there is to know of them.
    pub notes: Vec<(String, String)>,
    /// What the noise costs now, and without all that the plan removes.
    pub gains: Vec<GainRow>,
    /// Where the gains are from; empty without a recording.
    pub gains_from: String,
}

/// One change.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct PlannedRow {
    /// Its number, from 1.
    pub number: u64,
    /// Its family of knobs.
    pub family: String,
    /// What is changed.
    pub knob: String,
    /// What rows that may be shown as one have in common, instead of the knob; empty where it stands alone.
    pub alike: String,
    /// How many changes the row stands for.
    pub count: u64,
    /// The value now.
    pub from: String,
    /// The value to be.
    pub to: String,
    /// What is tried where the kernel does not take that.
    pub or_else: Vec<String>,
    /// Why.
    pub reason: String,
    /// At what risk; empty if none.
    pub risk: String,
    /// The recorded sources that it removes.
    pub sources: Vec<String>,
    /// Ranks, and the slowdown that is left without those sources.
    pub without: Vec<(u64, f64)>,
}

/// A boot parameter.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct BootRow {
    /// Its name.
    pub name: String,
    /// Its value.
    pub value: String,
    /// What the kernel was booted with.
    pub from: Option<String>,
    /// Why.
    pub reason: String,
    /// At what risk.
    pub risk: String,
}

/// What the noise costs a job of some size.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct GainRow {
    /// Ranks of the job.
    pub ranks: u64,
    /// The slowdown as recorded.
    pub slowdown: f64,
    /// The slowdown without all sources that the plan removes.
    pub without: f64,
}

const CHANGE: &[Field<PlannedRow>] = &[
    Field { name: "step", title: "step", get: |row| Value::Number(row.number) },
    Field { name: "family", title: "family", get: |row| Value::Text(row.family.clone()) },
    Field { name: "knob", title: "knob", get: |row| Value::Text(row.knob.clone()) },
    Field { name: "from", title: "now", get: |row| Value::Text(short(&row.from)) },
    Field { name: "to", title: "to", get: |row| Value::Text(to(row)) },
    Field { name: "reason", title: "why", get: |row| Value::Text(row.reason.clone()) },
    Field {
        name: "without_ratio",
        title: "slowdown without",
        get: |row| row.without.last().map_or(Value::Missing, |(_, without)| Value::Factor(*without)),
    },
];

const GAIN: &[Field<GainRow>] = &[
    Field { name: "ranks", title: "ranks", get: |row| Value::Count(row.ranks) },
    Field { name: "slowdown_ratio", title: "slowdown", get: |row| Value::Factor(row.slowdown) },
    Field { name: "without_ratio", title: "without what the plan removes", get: |row| Value::Factor(row.without) },
];

/// A value that is too long for a column; documents have it whole.
fn short(value: &str) -> String {
    const LONGEST: usize = 24;
    let value = value.split_once('[').and_then(|(_, rest)| rest.split_once(']')).map_or(value, |(word, _)| word);
    if value.is_empty() {
        "-".to_owned()
    } else if value.chars().count() <= LONGEST {
        value.to_owned()
    } else {
        value.chars().take(LONGEST - 1).chain(['\u{2026}']).collect()
    }
}

fn to(row: &PlannedRow) -> String {
    std::iter::once(short(&row.to))
        .chain(row.or_else.iter().map(|or| format!("else {or}")))
        .collect::<Vec<_>>()
        .join(", ")
}

impl Report for TunePlanReport {
    fn schema(&self) -> &'static str {
        "becalm.tune-plan/1"
    }

    fn document(&self) -> impl Serialize {
        document(self)
    }

    fn text(&self, out: &mut Sheet<'_>) -> io::Result<()> {
        render(self, out)
    }
}

#[derive(Serialize)]
struct Document<'a> {
    cpus: &'a str,
    left_idle: &'a str,
    siblings: &'a str,
    housekeeping: &'a str,
    profile: &'a str,
    steps: Vec<StepDocument<'a>>,
    boot: &'a [BootRow],
    command_line: &'a str,
    notes: Vec<NoteDocument<'a>>,
    gains: Vec<Object>,
}

#[derive(Serialize)]
struct StepDocument<'a> {
    step: u64,
    family: &'a str,
    knob: &'a str,
    from: &'a str,
    to: &'a str,
    or_else: &'a [String],
    reason: &'a str,
    risk: &'a str,
    sources: &'a [String],
    gains: Vec<WithoutDocument>,
}

#[derive(Serialize)]
struct WithoutDocument {
    ranks: u64,
    without_ratio: f64,
}

/// Something to know.
#[derive(Serialize)]
pub(crate) struct NoteDocument<'a> {
    pub family: &'a str,
    pub text: &'a str,
}

/// As `becalm.tune-plan/1`.
fn document(report: &TunePlanReport) -> Document<'_> {
    Document {
        cpus: &report.cpus,
        left_idle: &report.left_idle,
        siblings: &report.siblings,
        housekeeping: &report.housekeeping,
        profile: &report.profile,
        steps: report.changes.iter().map(step_document).collect(),
        boot: &report.boot,
        command_line: &report.command_line,
        notes: report.notes.iter().map(|(family, text)| NoteDocument { family, text }).collect(),
        gains: report.gains.iter().map(|row| Object::new(GAIN, row)).collect(),
    }
}

fn step_document(row: &PlannedRow) -> StepDocument<'_> {
    StepDocument {
        step: row.number,
        family: &row.family,
        knob: &row.knob,
        from: &row.from,
        to: &row.to,
        or_else: &row.or_else,
        reason: &row.reason,
        risk: &row.risk,
        sources: &row.sources,
        gains: row
            .without
            .iter()
            .map(|(ranks, ratio)| WithoutDocument { ranks: *ranks, without_ratio: *ratio })
            .collect(),
    }
}

/// As a table, with its risks, notes and boot parameters. Changes that are alike are one row, unless `all`.
fn render(report: &TunePlanReport, out: &mut Sheet<'_>) -> io::Result<()> {
    line(out, "quiet", &format!("CPU {}, for {}", report.cpus, report.profile))?;
    for (label, cpus) in [("idle", &report.left_idle), ("offline", &report.siblings)] {
        if !cpus.is_empty() {
            line(out, label, &format!("CPU {cpus}"))?;
        }
    }
    line(out, "the rest", &format!("CPU {}", report.housekeeping))?;
    writeln!(out)?;
    if report.changes.is_empty() {
        paragraph(out, "  ", "nothing to change: all knobs are as they are wanted")?;
    } else {
        changes(report, out)?;
    }
    gains(report, out)?;
    risks(report, out)?;
    if !report.notes.is_empty() {
        writeln!(out)?;
    }
    for (family, text) in &report.notes {
        paragraph(out, "  ! ", &format!("{family}: {text}"))?;
    }
    boot(report, out)
}

fn changes(report: &TunePlanReport, out: &mut Sheet<'_>) -> io::Result<()> {
    let rows = if out.all() { report.changes.clone() } else { merged(&report.changes) };
    let mut names = vec!["step", "family", "knob", "from", "to", "reason"];
    if !report.gains.is_empty() {
        names.push("without_ratio");
    }
    let fields = columns(CHANGE, &names);
    let mut table = Table::new(&fields);
    rows.iter().for_each(|row| table.row(&fields, row));
    table.print(out)
}

fn gains(report: &TunePlanReport, out: &mut Sheet<'_>) -> io::Result<()> {
    if report.gains.is_empty() {
        return Ok(());
    }
    writeln!(out)?;
    paragraph(out, "  ", &format!("expected gain at most, by {}:", report.gains_from))?;
    writeln!(out)?;
    let fields = columns(GAIN, &["ranks", "slowdown_ratio", "without_ratio"]);
    let mut table = Table::new(&fields);
    report.gains.iter().for_each(|row| table.row(&fields, row));
    table.print(out)?;
    if let Some(last) = report.gains.last() {
        let text = format!(
            "'slowdown without' is what is left at {} ranks of {} if the sources that a change aims at vanish altogether",
            grouped(last.ranks),
            factor(last.slowdown)
        );
        paragraph(out, "  ", &text)?;
    }
    Ok(())
}

fn risks(report: &TunePlanReport, out: &mut Sheet<'_>) -> io::Result<()> {
    let mut risks: Vec<(&str, &str)> = Vec::new();
    for row in &report.changes {
        let risk = (row.family.as_str(), row.risk.as_str());
        if !row.risk.is_empty() && !risks.contains(&risk) {
            risks.push(risk);
        }
    }
    if !risks.is_empty() {
        writeln!(out)?;
        writeln!(out, "  risks")?;
    }
    for (family, risk) in risks {
        paragraph(out, "    ", &format!("{family}: {risk}"))?;
    }
    Ok(())
}

fn boot(report: &TunePlanReport, out: &mut Sheet<'_>) -> io::Result<()> {
    if report.boot.is_empty() {
        return Ok(());
    }
    writeln!(out)?;
    writeln!(out, "  only a reboot can give, on the kernel's command line:")?;
    writeln!(out)?;
    // On one line, however long, so that it can be copied.
    writeln!(out, "    {}", report.command_line)?;
    writeln!(out)?;
    for row in &report.boot {
        let risk = if row.risk.is_empty() { String::new() } else { format!(" (but {})", row.risk) };
        paragraph(out, "    ", &format!("{}: {}{risk}", row.name, row.reason))?;
    }
    Ok(())
}

/// Behind the reason of the first of several.
const MORE: &str = ", and others";

/// Rows that are alike, as one, at the place of the first; but those that have a gain of their own.
fn merged(rows: &[PlannedRow]) -> Vec<PlannedRow> {
    let mut merged: Vec<PlannedRow> = Vec::new();
    for row in rows {
        let key = |row: &PlannedRow| (row.alike.clone(), row.from.clone(), row.to.clone());
        let alone = row.alike.is_empty() || !row.without.is_empty();
        let alike = merged.iter_mut().find(|seen| !alone && seen.without.is_empty() && key(seen) == key(row));
        match alike {
            Some(seen) => {
                seen.count += 1;
                seen.knob = format!("{} {}", seen.count, row.alike);
                if seen.reason != row.reason && !seen.reason.ends_with(MORE) {
                    seen.reason += MORE;
                }
            }
            None => merged.push(row.clone()),
        }
    }
    merged
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::form::sheet::Form;
    use crate::report;

    fn row(number: u64, knob: &str, alike: &str) -> PlannedRow {
        PlannedRow {
            number,
            family: "affinity".into(),
            knob: knob.into(),
            alike: alike.into(),
            count: 1,
            from: "0-1".into(),
            to: "0".into(),
            reason: "it may run on any CPU".into(),
            risk: "a risk".into(),
            ..PlannedRow::default()
        }
    }

    #[test]
    fn what_is_alike_is_one_row_in_the_table_and_apart_in_the_document() {
        let changes = vec![row(1, "CPUs of a (7)", "threads"), row(2, "CPUs of b (8)", "threads"), row(3, "file", "")];
        let report =
            TunePlanReport { changes, cpus: "1".into(), housekeeping: "0".into(), ..TunePlanReport::default() };
        let text = |all| report::text(&report, Form::default().with_all(all));
        assert!(text(false).contains("2 threads") && !text(false).contains("CPUs of b"), "{}", text(false));
        assert!(text(true).contains("CPUs of b (8)"));
        // Each risk once.
        assert_eq!(text(false).matches("a risk").count(), 1);
        let document: serde_json::Value = serde_json::from_str(&report::json(&report)).unwrap();
        assert_eq!(document["schema"], "becalm.tune-plan/1");
        assert_eq!(document["steps"].as_array().unwrap().len(), 3);
        assert_eq!(document["steps"][1]["knob"], "CPUs of b (8)");
    }

    #[test]
    fn what_has_a_gain_of_its_own_is_a_row_of_its_own() {
        let gaining = PlannedRow { without: vec![(64, 1.25)], ..row(2, "CPUs of b (8)", "threads") };
        let changes = vec![row(1, "CPUs of a (7)", "threads"), gaining, row(3, "CPUs of c (9)", "threads")];
        let gains = vec![GainRow { ranks: 64, slowdown: 1.5, without: 1.25 }];
        let report = TunePlanReport { changes, gains, ..TunePlanReport::default() };
        let text = report::text(&report, Form::default());
        assert!(text.contains("2 threads") && text.contains("CPUs of b (8)") && text.contains("1.2500"), "{text}");
    }

    #[test]
    fn long_values_are_cut_and_choices_shown() {
        assert_eq!(short("always [madvise] never"), "madvise");
        assert_eq!(short(""), "-");
        assert_eq!(short(&"f".repeat(90)).chars().count(), 24);
    }
}
