//! The noise of the configurations compared with the baseline: the result for each, and why some have none.

use becalm_analyze::compare::{Basis, ComparedFigure, Comparison, FLOOR, Metric, Verdict};
use becalm_model::node::Warning;
use becalm_report::catalogue;
use becalm_report::compare::{self, NAMED, change, changed, figure, reason, said};
use becalm_report::form::field::{Object, fields};
use becalm_report::form::figure::{Change, Figure};
use becalm_report::form::value::three_digits;
use serde::Serialize;

use super::StudyEntry;
use crate::study::analysis::Studied;

/// The noise of a configuration compared with the baseline's.
#[derive(Clone)]
pub(super) struct AgainstRow {
    pub(super) name: String,
    cpus: String,
    basis: Basis,
    pub(super) noise: ComparedFigure,
}

fn end(row: &AgainstRow, end: impl Fn(becalm_analyze::compare::Effect) -> Option<f64>) -> Option<Change> {
    change(row.noise.effect.and_then(end))
}

fields! {
    /// The columns of the table.
    pub(super) AGAINST, against: AgainstRow {
        CONFIGURATION = "configuration", "configuration", |row| row.name.clone();
        CPUS = catalogue::CPUS, |row| row.cpus.clone();
        BASELINE = "baseline", "baseline", |row| figure(&row.noise, row.noise.a);
        NOISE = catalogue::NOISE_RATIO, |row| figure(&row.noise, row.noise.b);
        CHANGE = "change", "change", |row| end(row, |effect| effect.ratio);
        LOW = "low", "low", |row| end(row, |effect| effect.ratio_low);
        HIGH = "high", "high", |row| end(row, |effect| effect.ratio_high);
        DIFFERENCE = "difference", "difference", |row| said(row.noise.verdict);
    }
}

/// The comparison of a configuration with the baseline, if there is one.
fn comparison(studied: &Studied) -> Option<&Comparison> {
    studied.against_baseline.as_ref()?.as_ref().ok()
}

/// A row for each configuration that was compared.
pub(super) fn rows(entries: &[StudyEntry<'_>]) -> Vec<AgainstRow> {
    let row = |entry: &StudyEntry<'_>| {
        let comparison = comparison(entry.studied?)?;
        let noise = comparison.total(Metric::NoiseRatio)?.clone();
        let cpus = comparison.b.cpus().to_string();
        Some(AgainstRow { name: entry.doc.name.clone(), cpus, basis: comparison.basis, noise })
    };
    entries.iter().filter_map(row).collect()
}

/// Explains the rows, in a sentence per configuration: sources that changed, or why there is not enough data.
pub(super) fn remarks(entries: &[StudyEntry<'_>]) -> Vec<String> {
    let mut remarks = Vec::new();
    for entry in entries {
        let Some(against) = entry.studied.and_then(|studied| studied.against_baseline.as_ref()) else { continue };
        let name = &entry.doc.name;
        let comparison = match against {
            Ok(comparison) => comparison,
            Err(error) => {
                remarks.push(format!("{name} cannot be compared with the baseline: {error}"));
                continue;
            }
        };
        let doubt = comparison.total(Metric::NoiseRatio).and_then(|row| row.doubt);
        remarks.extend(doubt.map(|doubt| format!("{name}: {}", reason(doubt))));
        let sources: Vec<String> =
            changed(comparison).take(NAMED).map(|(_, source, how)| format!("{source} {how}")).collect();
        if !sources.is_empty() {
            remarks.push(format!("{name}, of all time: {}", sources.join("; ")));
        }
    }
    remarks
}

/// The limits of single recordings, with the configurations that have only one; `None` if all have several.
pub(super) fn single_turn_remark(entries: &[StudyEntry<'_>]) -> Option<String> {
    let single = |entry: &&StudyEntry<'_>| {
        entry.studied.and_then(comparison).is_some_and(|comparison| comparison.basis == Basis::WithinRuns)
    };
    let names: Vec<&str> = entries.iter().filter(single).map(|entry| entry.doc.name.as_str()).collect();
    (!names.is_empty()).then(|| {
        format!(
            "{}: of one turn, and so a comparison of two recordings: what the machine changed by itself between them is not told \
             from an effect; becalm study --turns 3 records by turns",
            names.join(", ")
        )
    })
}

/// Explains the columns.
pub(super) fn legend(rows: &[AgainstRow]) -> String {
    let worded = match rows.len() {
        1 => String::new(),
        several => format!(", with allowance for the {several} configurations (Holm)"),
    };
    let rests = match rows.iter().any(|row| row.basis == Basis::BetweenRuns) {
        true => {
            "Typical turns (geometric means) of those that both have, on the CPUs that both measured, of the detours that all loops \
             kept. low and high: the 95 % interval of the change, of each row by itself, by how the turns of each differ among \
             themselves (Welch's t of the logarithms)"
        }
        false => {
            "On the CPUs that both measured, of the detours that both loops kept. low and high: the 95 % interval of the change, of each \
             row by itself, by how each recording scatters within itself and how recordings of one unchanged machine were found to differ"
        }
    };
    format!(
        "{rests}. Differences are significant at the 5 % level and from {}% on{worded}. 'not significant' does not mean that there is none",
        three_digits(100.0 * FLOOR)
    )
}

/// The verdict on the noise of a configuration, as the end of a sentence about it; `None` if it was not compared.
pub(super) fn verdict(studied: &Studied) -> Option<String> {
    let row = comparison(studied)?.total(Metric::NoiseRatio)?;
    let by = compare::change(row.effect.and_then(|effect| effect.ratio)).value().cell();
    Some(match row.verdict {
        Verdict::Better => format!("its noise is shown to be lower ({by})"),
        Verdict::Worse => format!("its noise is shown to be higher ({by})"),
        Verdict::Lower | Verdict::Higher => {
            format!("its noise is {}, by more than two recordings of one machine differ ({by})", row.verdict.name())
        }
        Verdict::NoDifferenceShown => "that its noise differs from the baseline's is not shown".to_owned(),
        Verdict::NotEnoughData => "whether its noise differs from the baseline's is not known".to_owned(),
    })
}

/// A comparison with the baseline as documents have it.
#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub(super) struct AgainstJson<'a> {
    /// Why there is none.
    error: Option<String>,
    basis: Option<&'static str>,
    turns: usize,
    cpus: String,
    /// The figures of all CPUs together, of which the noise is adjusted for all configurations, and those of the sources.
    rows: Vec<Object<ComparedFigure>>,
    notes: &'a [Warning],
}

/// The comparison of a configuration; `None` if it was not compared.
pub(super) fn document(studied: &Studied) -> Option<AgainstJson<'_>> {
    Some(match studied.against_baseline.as_ref()? {
        Ok(comparison) => AgainstJson {
            error: None,
            basis: Some(comparison.basis.name()),
            turns: comparison.b.runs.len(),
            cpus: comparison.b.cpus().to_string(),
            rows: comparison.rows.iter().filter(|row| row.place.is_none()).map(Object::new).collect(),
            notes: &comparison.notes,
        },
        Err(error) => AgainstJson {
            error: Some(error.to_string()),
            basis: None,
            turns: 0,
            cpus: String::new(),
            rows: Vec::new(),
            notes: &[],
        },
    })
}
