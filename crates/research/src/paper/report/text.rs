//! A paper for a terminal.

use std::io::{self, Write};

use becalm_report::form::paragraph::paragraph;
use becalm_report::form::sheet::Sheet;
use becalm_report::form::table::Table;

use super::{PaperReport, SHORT_VERDICT, row};
use crate::paper::PublishedTable;

pub(super) fn render(report: &PaperReport, out: &mut Sheet<'_>) -> io::Result<()> {
    paragraph(out, "  ", &report.paper.citation)?;
    paragraph(out, "  then  ", &report.paper.machine)?;
    paragraph(out, "  here  ", &report.here)?;
    for item in &report.items {
        writeln!(out)?;
        paragraph(out, "", &format!("{}: {}", item.name(), item.title))?;
        let rows = report.rows(item);
        if let Some(PublishedTable { names, values, rows }) = item.published() {
            let mut table = Table::texts(names, values);
            rows.into_iter().for_each(|row| table.cells(row));
            table.print(out)?;
        }
        if !rows.is_empty() {
            let fields = [&row::PUBLISHED, &row::HERE, &row::DIFFERENCE, &SHORT_VERDICT];
            let mut table = Table::named("what", &fields);
            table.keep_names_long();
            rows.iter().for_each(|found| table.named_row(found.figure.what.clone(), &fields, found));
            table.print(out)?;
        }
        for reason in report.reasons(item) {
            paragraph(out, "  ! ", &format!("not here: {reason}"))?;
        }
        if !item.lacking.is_empty() {
            paragraph(out, "  ! ", &item.lacking)?;
        }
    }
    writeln!(out)?;
    for (name, outcome) in report.outcomes() {
        paragraph(out, &format!("  {name}  "), &outcome)?;
    }
    paragraph(out, "  ", &report.summary())
}
