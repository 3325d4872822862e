//! The noise of the configurations compared with the baseline: the result for each, and why some have none.

use becalm_analyze::compare::{Basis, ComparedFigure, Comparison, FLOOR, Metric, Verdict};
use becalm_model::node::Warning;
use becalm_report::catalogue;
use becalm_report::compare::{self, NAMED, changed, figure, interval, reason, said};
use becalm_report::form::field::{Object, fields};
use becalm_report::form::figure::Figure;
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

fields! {
    /// The columns of the table.
    pub(super) AGAINST, against: AgainstRow {
        CONFIGURATION = "configuration", "configuration", |row| row.name.clone();
        CPUS = catalogue::CPUS, |row| row.cpus.clone();
        BASELINE = "baseline", "baseline", |row| figure(&row.noise, row.noise.a);
        NOISE = catalogue::NOISE_RATIO, |row| figure(&row.noise, row.noise.b);
        CHANGE = "change", "change", |row| compare::change(row.noise.effect.and_then(|effect| effect.ratio));
        INTERVAL = "interval", "95 % CI", |row| interval(&row.noise);
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
            "{}: recorded once, so an effect cannot be distinguished from a change of the machine itself. To record several turns: \
             becalm study --turns 3",
            names.join(", ")
        )
    })
}

/// Explains the columns.
pub(super) fn legend(rows: &[AgainstRow]) -> String {
    let worded = match rows.len() {
        1 => String::new(),
        several => format!(", corrected for {several} configurations (Holm)"),
    };
    let rests = match rows.iter().any(|row| row.basis == Basis::BetweenRuns) {
        true => {
            "Geometric means of the turns that both have, on the CPUs that both measured, of the interruptions that all loops kept. \
             95 % CI: of each row alone, from the differences between turns (Welch's t of the logarithms)"
        }
        false => {
            "On the CPUs that both measured, of the interruptions that both loops kept. 95 % CI: of each row alone, from the scatter \
             within each recording and the usual differences between recordings of an unchanged machine"
        }
    };
    format!("{rests}. Significant: at the 5 % level and at least {}%{worded}", three_digits(100.0 * FLOOR))
}

/// The verdict on the noise of a configuration, for the end of a sentence; `None` if it was not compared.
pub(super) fn verdict(studied: &Studied) -> Option<String> {
    let row = comparison(studied)?.total(Metric::NoiseRatio)?;
    let by = compare::change(row.effect.and_then(|effect| effect.ratio)).value().cell();
    Some(match row.verdict {
        Verdict::Better | Verdict::Lower => format!("its noise is significantly lower ({by})"),
        Verdict::Worse | Verdict::Higher => format!("its noise is significantly higher ({by})"),
        Verdict::NoDifferenceShown => "its noise does not differ significantly from the baseline's".to_owned(),
        Verdict::NotEnoughData => "there is not enough data to compare its noise with the baseline's".to_owned(),
    })
}

/// A comparison with the baseline, for documents.
#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub(super) struct AgainstJson<'a> {
    /// Why there is none.
    error: Option<String>,
    basis: Option<&'static str>,
    turns: usize,
    cpus: String,
    /// The figures of all CPUs together and of the sources. The p-value of the noise is adjusted for all configurations.
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
