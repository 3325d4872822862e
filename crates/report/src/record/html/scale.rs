//! The cost of the noise for a job of many ranks, by source.

use crate::PredictReport;
use crate::form::field::Field;
use crate::form::section::{Block, Section};
use crate::form::table::Table;
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
    Section::new("scale", "At scale", "What it costs at scale", vec![Block::OnPage(blocks)]).explained(&reading)
}

fn reading(report: &PredictReport<'_>) -> String {
    format!(
        "How many times as long a job takes whose ranks all wait for each other after every {} of work, each rank with the \
         noise of one of these CPUs{}.",
        report.question.grain,
        match report.blame.is_empty() {
            true => "",
            false => "; beside it, what is left without the source that costs most, then also without the next",
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
        "{}. Seed and settings are those of becalm predict, which answers for other grains, collectives and networks.",
        predict::job(&report.question)
    )));
    blocks.extend(report.warnings.iter().map(warning));
    blocks
}

/// The figures for each number of ranks.
fn slowdown_table(report: &PredictReport<'_>) -> Table {
    let fields: &[&Field<predict::PredictedRow>] = &[
        &row::RANKS,
        &row::SLOWDOWN_RATIO,
        &row::SLOWDOWN_LOW,
        &row::SLOWDOWN_HIGH,
        &row::EXPECTED_RATIO,
        &row::MEAN_PHASE_NS,
        &row::WORST_PHASE_NS,
    ];
    let mut table = Table::new(fields).captioned("Predicted slowdown");
    predict::lines(report).iter().for_each(|line| {
        table.row(fields, line);
    });
    let mut sentences = predict::intervals::sentences(report.rows, report.question.replicas);
    sentences.push("expected: by order statistics, where phases may be taken to start at random times".to_owned());
    table.note = sentences.join(". ") + ".";
    table
}

/// The prediction for the largest number of ranks, in a sentence.
fn most_ranks(report: &PredictReport<'_>) -> String {
    let largest = report.rows.iter().filter_map(|row| Some((row, row.slowdown?.mean))).next_back();
    largest.map_or_else(String::new, |(row, slowdown)| job_sentence(row, slowdown, ""))
}
