//! A prediction for people: on a terminal and on a page.

pub(crate) mod blame;
mod phases;
mod slowdown;

use becalm_model::node::Warning;
use becalm_scale::predict::RankPrediction;
use becalm_units::{Count, Nanos, plural};

use super::rounded::times;
use super::{
    LONGEST_TITLE, PredictReport, PredictedRow, blame_blocks, collectives, curves, job_of, lines, longest_table,
};
use super::{meanings, noise, phase_fields, rows_table, same_curve, slowdown_fields, tolerance};
use crate::Value;
use crate::form::section::{Block, Grade, Opening, Page, Section, sentence};

pub(crate) use slowdown::{chart as slowdown_chart, round_up, upward, wide_scale};

/// Up to this slowdown, noise costs a job next to nothing.
const GOOD: f64 = 1.01;
/// Up to this slowdown, noise costs a job a little.
const FAIR: f64 = 1.1;

/// The most sentences with answers.
const ANSWERS: usize = 4;

/// The most blame charts on a page.
const BLAME: usize = 12;

/// A prediction for people.
pub(super) fn page(report: &PredictReport<'_>) -> Page {
    let lines = lines(report);
    let mut sections = vec![headline(report, &lines), slowdowns(report, &lines)];
    sections.extend(spread(report, &lines));
    sections.extend(tolerance::section(report));
    sections.push(blamed(report, &lines));
    Page { title: "What noise costs a job".to_owned(), subtitle: report.name.to_owned(), sections, foot: Vec::new() }
}

/// A warning on a page.
pub(crate) fn warning(warning: &Warning) -> Block {
    Block::Warning { text: warning.message.clone(), advice: warning.advice.clone() }
}

/// How good a slowdown is.
pub(crate) fn grade(slowdown: f64) -> Grade {
    match slowdown {
        slowdown if slowdown <= GOOD => Grade::Good,
        slowdown if slowdown <= FAIR => Grade::Fair,
        _ => Grade::Bad,
    }
}

/// The slowdown of a row; if there are too many ranks for a replay, the expectation by order statistics.
pub(crate) fn slowdown(row: &RankPrediction) -> Option<f64> {
    row.slowdown.map(|slowdown| slowdown.mean).or(row.expected_ratio)
}

/// The slowdown of a row's job, in a sentence. `job` follows the grain.
pub(crate) fn job_sentence(row: &RankPrediction, slowdown: f64, job: &str) -> String {
    let ranks = match row.grain {
        Nanos::ZERO => format!("{} with collectives back to back", plural(row.ranks, "rank", "ranks")),
        grain => format!("{} every {grain}", plural(row.ranks, "rank that synchronizes", "ranks that synchronize")),
    };
    let about = if row.recording.is_none() && row.missed.is_some() { "at least" } else { "about" };
    let duration = match times(slowdown).as_str() {
        "1" => "as long as without noise".to_owned(),
        ratio => format!("{about} {ratio} times as long"),
    };
    let interval = match (row.recording, row.slowdown.filter(|_| row.formula)) {
        (Some(bounds), _) => Some((bounds.low, bounds.high)),
        (None, Some(slowdown)) => Some((slowdown.low, Some(slowdown.high))),
        (None, None) => None,
    };
    let interval = match interval.map(|(low, high)| (times(low), high.map(times))) {
        Some((low, Some(high))) if low != high => format!(" (95 % CI {low} to {high})"),
        Some((low, None)) => format!(" (95 % CI from {low}, no upper bound)"),
        _ => String::new(),
    };
    format!("A job of {} {ranks}{job} takes {duration}{interval}.", Count::new(row.ranks))
}

/// The answers in sentences: for all rows or, if there are many, for the most ranks of each curve.
fn answers(report: &PredictReport<'_>, lines: &[PredictedRow]) -> Vec<Block> {
    let several = collectives(report).len() > 1;
    let mut rows: Vec<&RankPrediction> = report.rows.iter().collect();
    if rows.len() > ANSWERS {
        let largest = |curve: &[PredictedRow]| curve.iter().map(|line| line.row.ranks).max();
        let largest: Vec<Option<u64>> =
            lines.chunk_by(same_curve).flat_map(|curve| vec![largest(curve); curve.len()]).collect();
        rows = report
            .rows
            .iter()
            .zip(largest)
            .filter(|(row, ranks)| Some(row.ranks) == *ranks)
            .map(|(row, _)| row)
            .collect();
    }
    let sentence = |row: &RankPrediction| {
        let job = if several { format!(" with {}", row.collective) } else { String::new() };
        Some(job_sentence(row, slowdown(row)?, &job))
    };
    let sentences: Vec<String> = rows.into_iter().filter_map(sentence).take(ANSWERS).collect();
    sentences.into_iter().map(Block::Lead).chain([Block::gap()]).collect()
}

fn headline(report: &PredictReport<'_>, lines: &[PredictedRow]) -> Section {
    let with_value = report.rows.iter().filter_map(|row| Some((row, slowdown(row)?)));
    let worst = with_value.max_by(|a, b| a.1.total_cmp(&b.1));
    let mut blocks = vec![Block::OnTerminal(answers(report, lines))];
    if let Some((row, slowdown)) = worst {
        let job = if collectives(report).len() > 1 { format!(" with {}", row.collective) } else { String::new() };
        let lost = Value::Ratio(becalm_scale::tolerance::lost(slowdown)).cell();
        blocks.push(Block::OnPage(vec![Block::Verdict {
            tone: grade(slowdown),
            text: job_sentence(row, slowdown, &job),
            basis: format!("This is the largest slowdown on this page. Noise takes {lost} of the time of this job."),
        }]));
    }
    let facts =
        [("noise", noise(report)), ("job", job_of(&report.question, report.noise.alignment(), &collectives(report)))];
    blocks.push(Block::facts(facts));
    blocks.extend(report.warnings.iter().map(warning));
    Section::new("headline", "Summary", "How much longer does such a job take?", blocks)
}

fn slowdowns(report: &PredictReport<'_>, lines: &[PredictedRow]) -> Section {
    let meanings = meanings(report, lines);
    let mut slowdowns = rows_table(&slowdown_fields(report, lines), lines).captioned("Predicted slowdown");
    slowdowns.note = meanings.iter().map(|text| sentence(text)).collect::<Vec<_>>().join(" ");
    let mut blocks: Vec<Block> =
        slowdown_chart(lines, "").map(|chart| Block::Charts(vec![chart])).into_iter().collect();
    let count = lines.chunk_by(same_curve).count();
    if count > slowdown::CURVES {
        blocks.push(Block::OnPage(vec![Block::Note(format!("The first {} of {count} curves.", slowdown::CURVES))]));
    }
    blocks.push(Block::Table(slowdowns));
    blocks.push(Block::OnTerminal(Block::texts(meanings)));
    if let Some(longest) = longest_table(report, lines) {
        blocks.push(Block::OnTerminal(vec![Block::Heading(LONGEST_TITLE.to_owned())]));
        blocks.push(Block::Table(longest));
    }
    Section::new("slowdown-by-ranks", "Slowdown", "Slowdown by the number of ranks", blocks)
        .opened(Opening::Title("Slowdown: mean phase / phase without noise".to_owned()))
        .explained(
            "The mean phase divided by the phase without noise. Bands are the 95 % CI. A band without an upper bound is open to \
             the top of the axis.",
        )
}

fn spread(report: &PredictReport<'_>, lines: &[PredictedRow]) -> Option<Section> {
    let fields = phase_fields(report, lines)?;
    let charts = phases::charts(lines);
    let mut blocks: Vec<Block> = Vec::new();
    if !charts.is_empty() {
        blocks.push(Block::Charts(charts));
    }
    blocks.push(Block::Table(rows_table(&fields, lines).captioned("Durations of phases")));
    let section = Section::new("phases", "Phases", "How the phases are spread", blocks)
        .opened(Opening::Title("Phases: durations, and the share that noise makes longer".to_owned()))
        .explained(
            "The mean, median, percentiles and maximum of the durations of phases. \u{201c}Delayed\u{201d} is the share of phases \
             that noise makes longer.",
        );
    Some(section)
}

/// The curves on a terminal, and the blame.
fn blamed(report: &PredictReport<'_>, lines: &[PredictedRow]) -> Section {
    let blamed: Vec<_> =
        report.blame.iter().flat_map(|(grain, blames)| blames.iter().map(move |blame| (*grain, blame))).collect();
    let mut on_page = Vec::new();
    for (grain, blame) in blamed.iter().take(BLAME) {
        if report.blame.len() > 1 {
            on_page.push(Block::Text(format!("With a grain of {grain}:")));
        }
        on_page.extend(blame::chart(report, blame, "blame-").map(|chart| Block::Charts(vec![chart])));
        on_page.extend(blame::tables(report, blame));
    }
    if blamed.len() > BLAME {
        let text = format!("The first {BLAME} of {}; becalm predict --json has all of them.", blamed.len());
        on_page.push(Block::Note(text));
    }
    let mut blocks = vec![Block::Plot("Slowdown against ranks".to_owned(), curves(lines))];
    blocks.extend(blamed.iter().map(|(grain, blame)| Block::OnTerminal(blame_blocks(report, *grain, blame))));
    if !on_page.is_empty() {
        blocks.push(Block::OnPage(on_page));
    }
    Section::new("blamed", "Blame", "What adds the time", blocks).explained(
        "The time that each source adds to a phase, and the slowdown without the source that costs most, then also without \
         the next.",
    )
}
