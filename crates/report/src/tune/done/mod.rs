//! What came of applying or restoring, and what is changed now: for a terminal and as `becalm.tune-apply/1`,
//! `becalm.tune-restore/1` and `becalm.tune-status/1`.

use std::io::{self, Write};

use serde::Serialize;

use crate::Value;
use crate::form::field::{Field, columns};
use crate::form::paragraph::{line, paragraph};
use crate::form::sheet::Sheet;
use crate::form::table::Table;
use crate::report::Report;

/// Which command it was.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TuneDoing {
    /// Changes were made.
    Apply,
    /// Originals were brought back.
    Restore,
    /// Somebody asked.
    Status,
}

/// What is shown.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TuneDoneReport {
    /// Of which command.
    pub doing: TuneDoing,
    /// In one word: `untuned`, `tuned`, `running`, `unfinished`, `restored`, `partly_restored`, `earlier_boot`.
    pub state: &'static str,
    /// In a sentence.
    pub summary: String,
    /// The CPUs that are, or were, quiet; empty if none.
    pub cpus: String,
    /// Every knob.
    pub rows: Vec<DoneRow>,
    /// The journal.
    pub journal: String,
    /// What to do next; empty if nothing.
    pub advice: String,
}

/// One knob.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DoneRow {
    /// Its family.
    pub family: String,
    /// What it is.
    pub knob: String,
    /// What rows that may be shown as one have in common, instead of the knob; empty where it stands alone.
    pub alike: String,
    /// The value before.
    pub before: String,
    /// The value after.
    pub after: String,
    /// In a word: `changed`, `already`, `gone`, `refused`, `left_out`, `restored`, `unchanged`, `foreign`, `failed`.
    pub outcome: &'static str,
    /// Why; empty where the outcome says it.
    pub why: String,
}

impl DoneRow {
    /// Whether somebody should look at it.
    const fn is_bad(&self) -> bool {
        matches!(self.outcome.as_bytes(), b"refused" | b"foreign" | b"failed" | b"left_out")
    }
}

const ROW: &[Field<DoneRow>] = &[
    Field { name: "family", title: "family", get: |row| Value::Text(row.family.clone()) },
    Field { name: "knob", title: "knob", get: |row| Value::Text(row.knob.clone()) },
    Field { name: "before", title: "before", get: |row| Value::Text(shown(&row.before)) },
    Field { name: "after", title: "now", get: |row| Value::Text(shown(&row.after)) },
    Field { name: "outcome", title: "outcome", get: |row| Value::Text(row.outcome.replace('_', " ")) },
    Field { name: "why", title: "why", get: |row| Value::Text(row.why.clone()) },
];

fn shown(value: &str) -> String {
    let value = value.split_once('[').and_then(|(_, rest)| rest.split_once(']')).map_or(value, |(word, _)| word);
    match value.chars().count() {
        0 => "-".to_owned(),
        1..=24 => value.to_owned(),
        _ => value.chars().take(23).chain(['\u{2026}']).collect(),
    }
}

impl Report for TuneDoneReport {
    fn schema(&self) -> &'static str {
        match self.doing {
            TuneDoing::Apply => "becalm.tune-apply/1",
            TuneDoing::Restore => "becalm.tune-restore/1",
            TuneDoing::Status => "becalm.tune-status/1",
        }
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
    state: &'static str,
    cpus: &'a str,
    journal: &'a str,
    knobs: Vec<DoneDocument<'a>>,
}

#[derive(Serialize)]
struct DoneDocument<'a> {
    family: &'a str,
    knob: &'a str,
    before: &'a str,
    after: &'a str,
    outcome: &'static str,
    why: &'a str,
}

fn row_document(row: &DoneRow) -> DoneDocument<'_> {
    let DoneRow { family, knob, before, after, outcome, why, .. } = row;
    DoneDocument { family, knob, before, after, outcome, why }
}

/// As one JSON document.
fn document(report: &TuneDoneReport) -> Document<'_> {
    Document {
        state: report.state,
        cpus: &report.cpus,
        journal: &report.journal,
        knobs: report.rows.iter().map(row_document).collect(),
    }
}

/// As a table of what somebody should look at, or of every knob if `all`, and what is to be done.
fn render(report: &TuneDoneReport, out: &mut Sheet<'_>) -> io::Result<()> {
    if !report.cpus.is_empty() {
        line(out, "quiet", &format!("CPU {}", report.cpus))?;
    }
    line(out, "state", &report.summary)?;
    if !report.journal.is_empty() {
        line(out, "journal", &report.journal)?;
    }
    let rows: Vec<DoneRow> = if out.all() { report.rows.clone() } else { merged(&report.rows) };
    if !rows.is_empty() {
        writeln!(out)?;
        let mut names = vec!["family", "knob", "before", "after", "outcome"];
        if rows.iter().any(|row| !row.why.is_empty()) {
            names.push("why");
        }
        let fields = columns(ROW, &names);
        let mut table = Table::new(&fields);
        rows.iter().for_each(|row| table.row(&fields, row));
        table.print(out)?;
    }
    if !report.advice.is_empty() {
        writeln!(out)?;
        paragraph(out, "  \u{2192} ", &report.advice)?;
    }
    Ok(())
}

/// Rows that are alike, as one, but those that somebody should look at.
fn merged(rows: &[DoneRow]) -> Vec<DoneRow> {
    let mut merged: Vec<(u64, DoneRow)> = Vec::new();
    for row in rows {
        let key = |row: &DoneRow| (row.alike.clone(), row.before.clone(), row.after.clone(), row.outcome);
        let alike = merged.iter_mut().find(|(_, seen)| !row.alike.is_empty() && !row.is_bad() && key(seen) == key(row));
        match alike {
            Some((count, seen)) => {
                *count += 1;
                seen.knob = format!("{count} {}", row.alike);
            }
            None => merged.push((1, row.clone())),
        }
    }
    merged.into_iter().map(|(_, row)| row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::form::sheet::Form;
    use crate::report;

    #[test]
    fn what_went_wrong_is_never_merged() {
        let row = |knob: &str, outcome| DoneRow {
            family: "irq".into(),
            knob: knob.into(),
            alike: "interrupts".into(),
            before: "0-1".into(),
            after: "0".into(),
            outcome,
            why: if outcome == "refused" { "Input/output error".into() } else { String::new() },
        };
        let rows = vec![row("a", "changed"), row("b", "changed"), row("c", "refused"), row("d", "refused")];
        let report = TuneDoneReport {
            doing: TuneDoing::Apply,
            state: "tuned",
            summary: "2 changes made".into(),
            cpus: "1".into(),
            rows,
            journal: "/run/becalm/tune/journal.jsonl".into(),
            advice: "becalm tune restore".into(),
        };
        let text = report::text(&report, Form::default());
        assert!(text.contains("2 interrupts") && text.matches("refused").count() == 2, "{text}");
        let document: serde_json::Value = serde_json::from_str(&report::json(&report)).unwrap();
        assert_eq!(document["schema"], "becalm.tune-apply/1");
        assert_eq!(document["knobs"].as_array().unwrap().len(), 4);
    }
}
