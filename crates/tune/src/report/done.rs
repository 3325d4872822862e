//! The outcome of applying or restoring, and the present state: for a terminal and as `becalm.tune-apply/1`, `becalm.tune-restore/1` and
//! `becalm.tune-status/1`.

use std::path::PathBuf;

use becalm_model::tune::Family;
use becalm_report::Report;
use becalm_report::catalogue;
use becalm_report::form::field::{columns, fields};
use becalm_report::form::section::{Block, Page, Section};
use becalm_report::form::sheet::Form;
use becalm_report::form::table::Table;
use becalm_units::{CpuList, Named, cpus};
use serde::Serialize;

use super::knob::{alike, managed_interrupt, shown, transition};
use super::listed;
use crate::document::{Attempt, Outcome, Stage};

/// The reported `tune` command.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TuneDoing {
    /// `tune apply`: changes were made.
    Apply,
    /// `tune restore`: originals were restored.
    Restore,
    /// `tune status`: nothing was changed.
    Status,
}

/// The outcome of a command, or the present state.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TuneDoneReport {
    /// The reported command.
    pub doing: TuneDoing,
    /// The stage of the settings.
    pub stage: Stage,
    /// The stage in a sentence.
    pub summary: String,
    /// The CPUs that are, or were, quiet; may be empty.
    pub cpus: CpuList,
    /// Every knob to be changed or restored, with its outcome.
    pub attempts: Vec<Attempt>,
    /// The journal's file; `None` if there is none.
    pub journal: Option<PathBuf>,
    /// The next step for the user; `None` if there is none.
    pub advice: Option<&'static str>,
}

/// A row of the table: one knob, or several similar ones.
struct KnobAttempt {
    family: Family,
    knob: String,
    before: String,
    after: String,
    outcome: Outcome,
    why: String,
}

fields! {
    ROW, row: KnobAttempt {
        FAMILY = catalogue::FAMILY, |row| row.family.to_string();
        KNOB = catalogue::KNOB, |row| row.knob.clone();
        BEFORE = "before", "before", |row| row.before.clone();
        AFTER = "after", "now", |row| row.after.clone();
        OUTCOME = "outcome", "outcome", |row| row.outcome.name().replace('_', " ");
        WHY = "why", "why", |row| row.why.clone();
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

    fn view(&self, form: Form) -> Page {
        let quiet = (!self.cpus.is_empty()).then(|| ("isolated", cpus(&self.cpus)));
        let journal = self.journal.as_ref().map(|journal| ("journal", journal.display().to_string()));
        let state = ("state", self.summary.clone());
        let mut blocks = vec![Block::facts(quiet.into_iter().chain([state]).chain(journal))];
        let rows = rows(&self.attempts, !form.all());
        if !rows.is_empty() {
            let mut names = vec!["family", "knob", "before", "after", "outcome"];
            names.extend(rows.iter().any(|row| !row.why.is_empty()).then_some("why"));
            let table = Table::filled(&columns(ROW, &names), &rows).captioned("The settings");
            blocks.push(Block::gap());
            blocks.extend(listed(table, rows.iter().flat_map(entries).collect()));
        }
        if let Some(advice) = self.advice {
            blocks.extend([Block::gap(), Block::entry("  \u{2192} ", advice)]);
        }
        let (title, subtitle) = ("Settings of isolated CPUs".to_owned(), self.summary.clone());
        Page {
            title,
            subtitle,
            sections: vec![Section::new("settings", "Settings", "Settings", blocks)],
            foot: Vec::new(),
        }
    }
}

#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub(crate) struct DoneDocument<'a> {
    state: Stage,
    cpus: &'a CpuList,
    journal: String,
    knobs: Vec<KnobDocument<'a>>,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
struct KnobDocument<'a> {
    family: Family,
    knob: String,
    before: &'a str,
    after: &'a str,
    outcome: Outcome,
    why: &'a str,
}

fn knob_document(attempt: &Attempt) -> KnobDocument<'_> {
    let Attempt { change, before, after, outcome, why } = attempt;
    KnobDocument {
        family: change.family,
        knob: change.knob.to_string(),
        before,
        after,
        outcome: *outcome,
        why: why.as_deref().unwrap_or_default(),
    }
}

fn document(report: &TuneDoneReport) -> DoneDocument<'_> {
    DoneDocument {
        state: report.stage,
        cpus: &report.cpus,
        journal: report.journal.as_ref().map(|path| path.display().to_string()).unwrap_or_default(),
        knobs: report.attempts.iter().map(knob_document).collect(),
    }
}

/// A knob with its outcome, and the reason below it, if there is one.
fn entries(row: &KnobAttempt) -> Vec<Block> {
    let first = format!("  {:<9}  {:<10}  ", row.outcome.name().replace('_', " "), row.family.to_string());
    let blank = " ".repeat(first.chars().count());
    let why = (!row.why.is_empty()).then(|| Block::entry(blank, &row.why));
    std::iter::once(Block::entry(first, transition(&row.knob, &row.before, &row.after))).chain(why).collect()
}

/// The rows of the table. Similar attempts may be merged, except those that need attention.
fn rows(attempts: &[Attempt], merge: bool) -> Vec<KnobAttempt> {
    let mut merged: Vec<(u64, &Attempt)> = Vec::new();
    let key = |attempt: &Attempt| (alike(&attempt.change), attempt.before.clone(), attempt.after.clone());
    for attempt in attempts {
        let may_join = merge && !attempt.outcome.needs_attention() && alike(&attempt.change).is_some();
        let same = |seen: &Attempt| seen.outcome == attempt.outcome && key(seen) == key(attempt);
        match merged.iter_mut().find(|(_, seen)| may_join && same(seen)) {
            Some((count, _)) => *count += 1,
            None => merged.push((1, attempt)),
        }
    }
    let row = |(count, attempt): (u64, &Attempt)| KnobAttempt {
        family: attempt.change.family,
        knob: match alike(&attempt.change).filter(|_| count > 1) {
            Some(alike) => format!("{count} {alike}"),
            None => attempt.change.knob.to_string(),
        },
        before: shown(&attempt.change.knob, &attempt.before),
        after: shown(&attempt.change.knob, &attempt.after),
        outcome: attempt.outcome,
        why: {
            let why = attempt.why.clone().unwrap_or_default();
            managed_interrupt(&attempt.change, &why).unwrap_or(why)
        },
    };
    merged.into_iter().map(row).collect()
}

#[cfg(test)]
mod tests {
    use crate::document::{Change, Knob};

    use super::*;
    use becalm_report as report;

    #[test]
    fn what_went_wrong_is_never_merged() {
        let attempt = |irq: u32, outcome| {
            let change = Change {
                family: Family::Irq,
                knob: Knob::cpu_list(format!("/proc/irq/{irq}/smp_affinity_list")),
                from: "0-1".into(),
                to: "0".into(),
                or_else: Vec::new(),
                after: false,
                reason: "interrupts".into(),
                risk: None,
                removes: Vec::new(),
            };
            Attempt::new(change, "0-1", "0", outcome)
        };
        let refused = |irq| attempt(irq, Outcome::Refused).because("Input/output error");
        let attempts = vec![attempt(1, Outcome::Changed), attempt(2, Outcome::Changed), refused(3), refused(4)];
        let report = TuneDoneReport {
            doing: TuneDoing::Apply,
            stage: Stage::Tuned,
            summary: "2 changes made".into(),
            cpus: "1".parse().unwrap(),
            attempts,
            journal: Some("/run/becalm/tune/journal.jsonl".into()),
            advice: Some("becalm tune restore"),
        };
        let text = report::text(&report, Form::default());
        assert!(text.contains("2 interrupts") && text.matches("refused").count() == 2, "{text}");
        let document: serde_json::Value = serde_json::from_str(&report::json(&report)).unwrap();
        assert_eq!((&document["schema"], &document["state"]), (&"becalm.tune-apply/1".into(), &"tuned".into()));
        assert_eq!(document["knobs"].as_array().unwrap().len(), 4);
        assert_eq!(document["knobs"][3]["why"], "Input/output error");
    }
}
