//! The cost of the noise for a job of many ranks, by source.

use crate::PredictReport;
use crate::form::field::Field;
use crate::form::section::{Block, Section};
use crate::form::table::Table;
use crate::predict::intervals::meaning;
use crate::predict::view::{blame, job_sentence, slowdown_chart, warning};
use crate::predict::{self, row};

/// A prediction, or why there is none.
pub enum Scaling<'a> {
    /// The prediction for one grain.
    Predicted(Box<PredictReport<'a>>),
    /// Why there is none.
    Unknown(String),
}

pub(super) fn section(scaling: &Scaling<'_>) -> Section {
    let (reading, blocks) = match scaling {
        Scaling::Predicted(report) => (reading(report), predicted(report)),
        Scaling::Unknown(why) => (String::new(), vec![Block::Text(format!("There is no prediction: {why}."))]),
    };
    Section::new("scale", "At scale", "Cost at scale", vec![Block::OnPage(blocks)]).explained(&reading)
}

fn reading(report: &PredictReport<'_>) -> String {
    format!(
        "The slowdown of a job whose ranks (processes) all wait for each other after every {} of work, each with the noise of one \
         of these CPUs{}.",
        report.question.grain,
        match report.blame.is_empty() {
            true => "",
            false => ", and what is left without the most expensive source, then also without the next",
        }
    )
}

fn predicted(report: &PredictReport<'_>) -> Vec<Block> {
    let text = most_ranks(report);
    let mut charts: Vec<_> = slowdown_chart(&predict::lines(report), &text).into_iter().collect();
    let blame = report.blame.first().and_then(|(_, blames)| blames.last());
    charts.extend(blame.and_then(|blame| blame::chart(report, blame, "blame")));
    let mut blocks = vec![Block::Text(text), Block::Charts(charts), Block::Table(slowdown_table(report))];
    blocks.extend(blame.iter().flat_map(|blame| blame::tables(report, blame)));
    blocks.push(Block::Note(format!(
        "{}. becalm predict uses the same seed and settings, and answers for other compute times, collectives and networks.",
        predict::job(&report.question)
    )));
    blocks.extend(report.warnings.iter().map(warning));
    blocks
}

/// The figures for each number of ranks.
fn slowdown_table(report: &PredictReport<'_>) -> Table {
    let mut fields: Vec<&Field<predict::PredictedRow>> = vec![
        &row::RANKS,
        &row::SLOWDOWN_RATIO,
        &row::SLOWDOWN_LOW,
        &row::SLOWDOWN_HIGH,
        &row::EXPECTED_RATIO,
        &row::MEAN_PHASE_NS,
        &row::WORST_PHASE_NS,
        &row::LONGEST_1_RATIO,
        &row::LONGEST_3_RATIO,
        &row::LONGEST_10_RATIO,
    ];
    let is_open = report.rows.iter().any(|row| row.recording.is_some_and(|bounds| bounds.high.is_none()));
    if is_open {
        fields.push(&row::RECORDING_NEEDED_NS);
    }
    let mut table = Table::filled(&fields, &predict::lines(report)).captioned("Predicted slowdown");
    let mut meanings: Vec<String> = meaning(report.rows, report.question.replicas).into_iter().collect();
    if is_open {
        meanings.push(
            "high: - if the recording is too short for an upper end; needs: length of one with an upper end".to_owned(),
        );
    }
    meanings.push("expected: by order statistics, for phases at random times".to_owned());
    meanings.push(
        "longest 1, 3, 10: share of the added time that comes from so many of the longest interruptions".to_owned(),
    );
    table.note = meanings.join(". ") + ".";
    table
}

/// The prediction for the largest number of ranks, in a sentence.
fn most_ranks(report: &PredictReport<'_>) -> String {
    let largest = report.rows.iter().filter_map(|row| Some((row, row.slowdown?.mean))).next_back();
    largest.map_or_else(String::new, |(row, slowdown)| job_sentence(row, slowdown, ""))
}
