//! The comparison as tables.

use std::io::{self, Write};
use std::mem::{Discriminant, discriminant};

use becalm_analyze::compare::{ComparedFigure, Doubt, Metric};
use becalm_units::printable;

use super::{
    COLUMNS, CompareReport, check_text, cpus, headline, legend, most_changed_first, nodes, place, place_name, reason,
};
use super::{runs, shown_source, sources, title, totals};
use crate::form::paragraph::{line, paragraph};
use crate::form::sheet::Sheet;
use crate::form::table::Table;

/// How many sources, nodes and CPUs are shown unless all are asked for.
const SHOWN: usize = 12;

/// Longer names of sources lose their middle.
const NAME_WIDTH: usize = 20;

/// As tables, of every source and CPU where all are asked for, else of those that changed most.
pub(super) fn render(report: &CompareReport<'_>, out: &mut Sheet<'_>) -> io::Result<()> {
    let (comparison, all) = (report.comparison, out.all());
    paragraph(out, "  ", &headline(comparison))?;
    writeln!(out)?;
    for (name, text) in runs(comparison) {
        line(out, &name, &text)?;
    }
    for note in &comparison.notes {
        paragraph(out, "  ! ", &note.message)?;
        paragraph(out, "    \u{2192} ", &note.advice)?;
    }
    print_rows(out, &place(comparison), "figure", &totals(comparison), &|row| title(row), true)?;
    for (metric, title) in [(Metric::TimeRatio, "Sources, of all time"), (Metric::Rate, "Sources, how often")] {
        print_rows(out, title, "source", &sources(comparison, metric), &source_name, all)?;
    }
    let several = comparison.a.count_nodes() > 1;
    for (heading, first, mut rows) in
        [("Nodes, noise", "node", nodes(comparison)), ("CPUs, noise", "cpu", cpus(comparison))]
    {
        if !all && rows.len() > SHOWN {
            most_changed_first(&mut rows);
        }
        print_rows(out, heading, first, &rows, &|row| place_name(row, several), all)?;
    }
    writeln!(out)?;
    paragraph(out, "  ", &legend(comparison))?;
    print_checks(report, out)
}

fn print_rows(
    out: &mut Sheet<'_>,
    heading: &str,
    first: &'static str,
    rows: &[&ComparedFigure],
    name: &dyn Fn(&ComparedFigure) -> String,
    all: bool,
) -> io::Result<()> {
    if rows.is_empty() {
        return Ok(());
    }
    writeln!(out, "\n{}", printable(heading))?;
    let shown = if all { rows.len() } else { rows.len().min(SHOWN) };
    let mut table = Table::named(first, &COLUMNS);
    rows[..shown].iter().for_each(|row| table.named_row(name(row), &COLUMNS, *row));
    table.print(out)?;
    if shown < rows.len() {
        writeln!(out, "  the first {SHOWN} of {}; --all shows every one", rows.len())?;
    }
    let mut said: Vec<Discriminant<Doubt>> = Vec::new();
    for row in &rows[..shown] {
        let Some(doubt) = row.doubt else { continue };
        // Of sources, the same reason with another figure is not said again; nor is one that refers to another row.
        if (row.source.is_none() && doubt != Doubt::Drifting) || !said.contains(&discriminant(&doubt)) {
            paragraph(out, &format!("  {}: ", name(row)), &reason(doubt))?;
        }
        said.push(discriminant(&doubt));
    }
    Ok(())
}

fn source_name(row: &ComparedFigure) -> String {
    let name = &row.source.as_ref().map_or_else(String::new, |(kind, source)| shown_source(*kind, source));
    let length = name.chars().count();
    if length <= NAME_WIDTH {
        return name.to_owned();
    }
    let (head, tail) = (NAME_WIDTH / 2, NAME_WIDTH - NAME_WIDTH / 2 - 1);
    let head: String = name.chars().take(head).collect();
    let tail: String = name.chars().skip(length - tail).collect();
    format!("{head}\u{2026}{tail}")
}

fn print_checks(report: &CompareReport<'_>, out: &mut Sheet<'_>) -> io::Result<()> {
    if !report.checks.is_empty() {
        writeln!(out)?;
    }
    for check in report.checks {
        paragraph(out, "  ", &check_text(report.comparison, check))?;
    }
    Ok(())
}
