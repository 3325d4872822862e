//! A study for people.

use becalm_report::Value;
use becalm_report::compare::forest_chart;
use becalm_report::form::field::Field;
use becalm_report::form::section::{Block, Grade, Opening, Page, Section, sentence};
use becalm_report::form::table::Table;
use becalm_report::form::value::grouped;
use becalm_report::html::AxisUnit;
use becalm_report::predict::rounded::round;
use becalm_report::predict::{PredictedRow, columns, intervals, job, row};
use becalm_report::record::figures::source;
use becalm_report::sweep::{Axes, Axis, SweepFigure};
use becalm_units::{Count, Nanos, printable};

use super::against::{self, AGAINST, AgainstRow};
use super::{
    FIGURES, StudyEntry, StudyFigures, StudyReport, answer, entries, grains, grains_in_words, heading, lines, missing,
    most_ranks, series,
};
use crate::study::analysis::{Studied, mean_slowdown};

/// The number of sources of each configuration that a terminal shows.
const SHOWN: usize = 5;

/// The most rows of a table of sources on a page.
const ROWS: usize = 100;

/// A recorded configuration with its results.
struct Recorded<'a> {
    name: &'a str,
    studied: &'a Studied,
}

/// A study for people.
pub(super) fn page(report: &StudyReport<'_>) -> Page {
    let entries = entries(report);
    let recorded: Vec<Recorded<'_>> =
        entries.iter().filter_map(|entry| Some(Recorded { name: &entry.doc.name, studied: entry.studied? })).collect();
    let mut sections = vec![headline(report, &entries)];
    if let Some(ranks) = most_ranks(report) {
        sections.push(configurations(&entries, ranks));
        sections.extend(against_baseline(&entries));
        sections.push(slowdowns(report, &recorded));
        sections.extend(series::section(&entries));
        sections.push(sources(&recorded));
    }
    sections.push(how(&entries));
    let when = report.doc.begun.strftime("%Y-%m-%d %H:%M:%S UTC");
    Page {
        title: format!("Configurations of {} compared", report.doc.node),
        subtitle: format!("A study of configurations \u{b7} {when}"),
        sections,
        foot: Vec::new(),
    }
}

fn headline(report: &StudyReport<'_>, entries: &[StudyEntry<'_>]) -> Section {
    let mut blocks = Vec::new();
    let answer = answer(report);
    if let Some(answer) = &answer {
        let (tone, text, basis) = (Grade::Plain, sentence(answer), String::new());
        blocks.push(Block::OnPage(vec![Block::Verdict { tone, text, basis }]));
    }
    blocks.push(Block::facts(heading(report)));
    let why = entries.iter().filter_map(|entry| missing(report, entry.doc, entry.studied));
    blocks.extend(why.map(Block::warning));
    if most_ranks(report).is_none() {
        blocks.push(Block::warning("nothing was recorded, so there is nothing to compare"));
    }
    blocks.push(Block::OnTerminal(vec![Block::facts(answer.map(|answer| ("answer", answer)))]));
    Section::new("headline", "Summary", "Which configuration is quietest?", blocks)
}

fn configurations(entries: &[StudyEntry<'_>], ranks: Count) -> Section {
    let title = format!("Configurations; slowdown, and change of the time lost, at {ranks} ranks");
    let recorded = || entries.iter().filter(|entry| entry.studied.is_some());
    let fields: Vec<&Field<StudyFigures>> = FIGURES.iter().collect();
    let mut table = Table::filled(&fields, recorded().map(|entry| &entry.figures)).captioned(&title);
    round(&mut table, fields.len() - 2);
    let mut blocks = vec![Block::Table(table)];
    blocks.extend(recorded().map(|entry| Block::Remark(entry.doc.name.clone(), entry.doc.what.clone())));
    Section::new("configurations", "Configurations", "Configurations", blocks).opened(Opening::Title(title))
}

/// The configurations that differ from the baseline; `None` if none was compared.
fn against_baseline(entries: &[StudyEntry<'_>]) -> Option<Section> {
    let rows = against::rows(entries);
    let mut blocks = Vec::new();
    let mut opening = Opening::None;
    if !rows.is_empty() {
        let title = "Noise compared with the baseline";
        let named = rows.iter().map(|row| (row.name.clone(), &row.noise));
        let chart = forest_chart("against", "Change of the noise from the baseline", named);
        blocks.extend(chart.map(|chart| Block::Charts(vec![chart])));
        let fields: Vec<&Field<AgainstRow>> = AGAINST.iter().collect();
        blocks.push(Block::Table(Table::filled(&fields, &rows).captioned(title)));
        opening = Opening::Title(title.to_owned());
    }
    blocks.extend(Block::texts(against::remarks(entries)));
    blocks.extend(against::single_turn_remark(entries).map(Block::warning));
    if !rows.is_empty() {
        blocks.push(Block::Note(against::legend(&rows)));
    }
    let section = Section::new("against", "Compared", "Is the change significant?", blocks).explained(
        "The noise of each configuration divided by that of the baseline. A point is the measured ratio, and its bar is the 95 % CI. A \
         bar left of the line means less noise, right of it more. A bar across the line shows no difference.",
    );
    (!section.blocks.is_empty()).then(|| section.opened(opening))
}

/// The numbers of ranks, which all configurations share.
fn ranks(report: &StudyReport<'_>, recorded: &[Recorded<'_>]) -> Vec<u64> {
    let rows = recorded.first().map_or(&[][..], |first| &first.studied.rows);
    rows.iter().take(rows.len() / grains(report).len()).map(|row| row.ranks).collect()
}

/// The parameters of the job, with the configurations.
fn axes(report: &StudyReport<'_>, recorded: &[Recorded<'_>], ranks: &[u64]) -> Axes {
    let grains = grains(report);
    let names = recorded.iter().map(|recorded| printable(recorded.name).into_owned()).collect();
    let (time, count) = (|grain: Nanos| grain.get() as f64, |ranks| ranks as f64);
    Axes::new(vec![
        Axis::named("configuration", names),
        Axis::numbered("grain", &grains, AxisUnit::Time, Nanos::to_string, time),
        Axis::numbered("ranks", ranks, AxisUnit::Ranks, |ranks| grouped(*ranks), count),
    ])
}

fn slowdowns(report: &StudyReport<'_>, recorded: &[Recorded<'_>]) -> Section {
    let ranks = ranks(report, recorded);
    let axes = axes(report, recorded, &ranks);
    let slowdowns = recorded.iter().flat_map(|recorded| &recorded.studied.rows).map(mean_slowdown).collect();
    let figure = SweepFigure::new(&axes, "slowdown", AxisUnit::Factor, Value::Factor, slowdowns);
    let mut fields = vec![&row::RANKS];
    if grains(report).len() > 1 {
        fields.push(&row::GRAIN_NS);
    }
    let slowdown = fields.len() + 1;
    fields.extend([&row::SLOWDOWN_RATIO, &columns::INTERVAL, &row::EXPECTED_RATIO]);
    let table = |fields: &[&'static Field<PredictedRow>]| {
        let mut table = Table::named("configuration", fields).captioned("Predicted slowdown");
        for Recorded { name, studied } in recorded {
            table.rule();
            lines(studied, &report.question).for_each(|line| table.named_row((*name).to_owned(), fields, &line));
        }
        round(&mut table, slowdown);
        round(&mut table, slowdown + 2);
        Block::Table(table)
    };
    let mut blocks = figure.charts("slowdown-");
    blocks.push(Block::OnTerminal(vec![table(&fields)]));
    fields.push(&row::WORST_PHASE_NS);
    blocks.push(Block::OnPage(vec![table(&fields)]));
    blocks.push(Block::OnTerminal(figure.shades("Surface: the slowdowns as shades")));
    blocks.extend(figure.surface("surface"));
    let mut rows = recorded.iter().map(|recorded| &recorded.studied.rows);
    blocks.extend(rows.find_map(|rows| intervals::meaning(rows, report.question.replicas)).map(Block::Note));
    for Recorded { name, studied } in recorded {
        let texts = intervals::open(&studied.rows).chain(intervals::together(&studied.rows));
        blocks.extend(texts.map(|text| Block::Note(format!("{name}, {text}"))));
    }
    for Recorded { name, studied } in recorded {
        blocks.extend(studied.warnings.iter().map(|warning| Block::Warning {
            text: format!("{name}: {}", warning.message),
            advice: warning.advice.clone(),
        }));
    }
    blocks.push(figure.plot(&ranks));
    blocks.push(Block::OnPage(vec![Block::Note(job(&report.question))]));
    Section::new("scale", "At scale", "Cost at scale", blocks)
        .opened(Opening::Title("Slowdown: mean phase / phase without noise".to_owned()))
        .explained(&format!(
            "The slowdown of a job with ranks (processes) that synchronize after every {} of work. Each rank has the noise of one of the \
             measured CPUs.",
            grains_in_words(report)
        ))
}

fn sources(recorded: &[Recorded<'_>]) -> Section {
    let blocks = recorded.iter().flat_map(sources_of).collect();
    Section::new("sources", "Sources", "Sources", blocks)
        .explained("The sources that took the time under each configuration.")
}

fn sources_of(Recorded { name, studied }: &Recorded<'_>) -> [Block; 2] {
    let sources = &studied.pooled.sources;
    let mut fields = vec![
        &source::SOURCE,
        &source::KIND,
        &source::MIN_NS,
        &source::MAX_NS,
        &source::COUNT,
        &source::MEAN_NS,
        &source::STDDEV_NS,
        &source::TOTAL_NS,
        &source::SHARE_RATIO,
    ];
    let table = |fields: &[_], most| Block::Table(Table::filled(fields, sources.iter().take(most)).captioned(name));
    let most = match sources.len().saturating_sub(SHOWN) {
        0 => String::new(),
        more => format!(", the top {SHOWN} of {}", grouped((more + SHOWN) as u64)),
    };
    let on_terminal = match sources.is_empty() {
        true => vec![Block::Lines(vec![String::new(), format!("{name}: no source was seen")])],
        false => vec![Block::Heading(format!("Sources under {name}{most}")), table(&fields, SHOWN)],
    };
    fields.push(&source::TIME_RATIO);
    [Block::OnTerminal(on_terminal), Block::OnPage(vec![table(&fields, ROWS)])]
}

fn how(entries: &[StudyEntry<'_>]) -> Section {
    let facts = entries.iter().map(|entry| (entry.doc.name.clone(), entry.doc.command.join(" ")));
    let blocks = vec![Block::OnPage(vec![Block::Facts(facts.collect())])];
    Section::new("how", "Method", "How it was measured", blocks)
}
