//! A paper for a terminal.

use std::io::{self, Write};

use super::{PaperReport, row};
use crate::form::paragraph::paragraph;
use crate::form::sheet::Sheet;
use crate::form::table::Table;

pub(super) fn render(report: &PaperReport, out: &mut Sheet<'_>) -> io::Result<()> {
    paragraph(out, "  ", &report.paper.citation)?;
    paragraph(out, "  then  ", &report.paper.machine)?;
    paragraph(out, "  here  ", &report.here)?;
    for item in &report.items {
        writeln!(out)?;
        paragraph(out, "", &format!("{}: {}", item.name(), item.title))?;
        let rows = report.rows(item);
        if !rows.is_empty() {
            let mut table = Table::named("what", &[&row::PUBLISHED, &row::HERE, &row::DIFFERENCE, &row::VERDICT]);
            table.keep_names_long();
            for found in &rows {
                table.named_row(
                    found.figure.what.clone(),
                    &[&row::PUBLISHED, &row::HERE, &row::DIFFERENCE, &row::VERDICT],
                    found,
                );
            }
            table.print(out)?;
        }
        if !item.lacking.is_empty() {
            paragraph(out, "  ! ", &item.lacking)?;
        }
    }
    writeln!(out)?;
    paragraph(out, "  ", &report.summary())
}
