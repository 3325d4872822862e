//! A study as a table and plots for a terminal.

use std::io::{self, Write};

use becalm_report::form::field::Field;
use becalm_report::form::paragraph::{line, paragraph};
use becalm_report::form::plot::{self, Curve};
use becalm_report::form::sheet::Sheet;
use becalm_report::form::table::Table;
use becalm_report::form::value::{factor, grouped};
use becalm_report::predict::{intervals, row};
use becalm_report::record::figures::source;
use becalm_report::sweep::{Axes, Axis};
use becalm_units::{Nanos, printable};

use super::against::{self, AGAINST, AgainstRow};
use super::{
    FIGURES, StudyEntry, StudyFigures, StudyReport, answer, curves, entries, grains, heading, lines, missing,
    most_ranks,
};
use crate::study::analysis::{Studied, mean_slowdown};

/// How many sources of each configuration are shown.
const SHOWN: usize = 5;

/// Prints the configurations beside each other, the slowdown by ranks, and the sources of each.
pub(super) fn render(report: &StudyReport<'_>, out: &mut Sheet<'_>) -> io::Result<()> {
    for (label, text) in heading(report) {
        line(out, label, &text)?;
    }
    let entries = entries(report);
    for entry in &entries {
        if let Some(text) = missing(report, entry.doc, entry.studied) {
            paragraph(out, "  ! ", &text)?;
        }
    }
    let recorded: Vec<&StudyEntry<'_>> = entries.iter().filter(|entry| entry.studied.is_some()).collect();
    let Some(ranks) = most_ranks(report) else {
        return paragraph(out, "  ! ", "nothing was recorded, so there is nothing to compare");
    };
    if let Some(answer) = answer(report) {
        line(out, "answer", &answer)?;
    }
    writeln!(out, "\nThe configurations; slowdown, and its change of the loss against the baseline, at {ranks} ranks")?;
    let fields: Vec<&Field<StudyFigures>> = FIGURES.iter().collect();
    let mut table = Table::new(&fields);
    recorded.iter().for_each(|entry| table.row(&fields, &entry.figures));
    table.print(out)?;
    for row in &recorded {
        paragraph(out, "  ", &format!("{}: {}", row.doc.name, row.doc.what))?;
    }
    against_baseline(&entries, out)?;
    slowdowns(report, &recorded, out)?;
    for row in recorded {
        sources(row, out)?;
    }
    Ok(())
}

fn against_baseline(entries: &[StudyEntry<'_>], out: &mut Sheet<'_>) -> io::Result<()> {
    let rows = against::rows(entries);
    if !rows.is_empty() {
        writeln!(out, "\nNoise against the baseline")?;
        let fields: Vec<&Field<AgainstRow>> = AGAINST.iter().collect();
        let mut table = Table::new(&fields);
        rows.iter().for_each(|row| table.row(&fields, row));
        table.print(out)?;
    }
    for remark in against::remarks(entries) {
        paragraph(out, "  ", &remark)?;
    }
    if let Some(text) = against::single_turn_remark(entries) {
        paragraph(out, "  ! ", &text)?;
    }
    if rows.is_empty() { Ok(()) } else { paragraph(out, "  ", &against::legend(&rows)) }
}

fn slowdowns(report: &StudyReport<'_>, entries: &[&StudyEntry<'_>], out: &mut Sheet<'_>) -> io::Result<()> {
    writeln!(out, "\nSlowdown: mean phase / phase without noise")?;
    let mut fields = vec![&row::RANKS];
    if grains(report).len() > 1 {
        fields.push(&row::GRAIN_NS);
    }
    fields.extend([&row::SLOWDOWN_RATIO, &row::SLOWDOWN_LOW, &row::SLOWDOWN_HIGH, &row::EXPECTED_RATIO]);
    let mut table = Table::named("configuration", &fields);
    let mut drawn = Vec::new();
    for (at, row) in entries.iter().enumerate() {
        let Some(studied) = row.studied else { continue };
        if at > 0 {
            table.rule();
        }
        for line in lines(studied, &report.question) {
            table.named_row(row.doc.name.clone(), &fields, &line);
        }
        for (name, rows) in curves(&row.doc.name, studied) {
            let points = rows.iter().filter_map(|row| Some((row.ranks, mean_slowdown(row)?)));
            drawn.push(Curve { name, points: points.collect() });
        }
    }
    table.print(out)?;
    surface(report, entries, out)?;
    let replicas = report.question.replicas;
    let studied = || entries.iter().filter_map(|row| Some((row, row.studied?)));
    if let Some(text) = studied().find_map(|(_, studied)| intervals::meaning(&studied.rows, replicas)) {
        paragraph(out, "  ", &text)?;
    }
    for (row, studied) in studied() {
        for text in intervals::open(&studied.rows).chain(intervals::together(&studied.rows)) {
            paragraph(out, "  ", &format!("{}, {text}", row.doc.name))?;
        }
    }
    for row in entries {
        for warning in row.studied.iter().flat_map(|studied| &studied.warnings) {
            paragraph(out, "  ! ", &format!("{}: {}", row.doc.name, warning.message))?;
        }
    }
    plot::draw(&drawn, "Slowdown against ranks", out)
}

/// The slowdowns of all configurations as shades, by grain and ranks.
fn surface(report: &StudyReport<'_>, entries: &[&StudyEntry<'_>], out: &mut Sheet<'_>) -> io::Result<()> {
    let studied: Vec<_> = entries.iter().filter_map(|entry| Some((entry.doc.name.clone(), entry.studied?))).collect();
    let Some((_, first)) = studied.first() else { return Ok(()) };
    let asked = |studied: &Studied| studied.rows.iter().map(|row| (row.grain, row.ranks)).collect::<Vec<_>>();
    if studied.iter().any(|(_, other)| asked(other) != asked(first)) {
        return Ok(());
    }
    let grains: Vec<String> = grains(report).iter().map(Nanos::to_string).collect();
    let ranks: Vec<String> =
        first.rows.iter().take(first.rows.len() / grains.len().max(1)).map(|row| grouped(row.ranks)).collect();
    let names = studied.iter().map(|(name, _)| printable(name).into_owned()).collect();
    let axes =
        Axes::new(vec![Axis::named("configuration", names), Axis::named("grain", grains), Axis::named("ranks", ranks)]);
    let slowdowns: Vec<Option<f64>> =
        studied.iter().flat_map(|(_, studied)| &studied.rows).map(mean_slowdown).collect();
    axes.surface("Surface: the slowdowns as shades", &slowdowns, factor, out)
}

fn sources(row: &StudyEntry<'_>, out: &mut Sheet<'_>) -> io::Result<()> {
    let Some(studied) = row.studied else { return Ok(()) };
    let sources = &studied.pooled.sources;
    if sources.is_empty() {
        return writeln!(out, "\n{}: no source was seen", printable(&row.doc.name));
    }
    let more = match sources.len().saturating_sub(SHOWN) {
        0 => String::new(),
        more => format!(", the {SHOWN} that took most of {}", grouped((more + SHOWN) as u64)),
    };
    writeln!(out, "\nSources under {}{more}", printable(&row.doc.name))?;
    let fields = [
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
    let mut table = Table::new(&fields);
    sources.iter().take(SHOWN).for_each(|source| table.row(&fields, source));
    table.print(out)
}
