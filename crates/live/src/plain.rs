//! The view as text, update by update, for logs and pipes; or as one JSON document, `becalm.top/1`.

use std::fs::File;
use std::io::{self, Write};

use becalm_report::{Form, Report, Sheet, Value};
use serde::Serialize;

use crate::columns::{FittedColumn, fit};
use crate::grid::Grid;
use crate::grids::{TopDocument, TopUpdate};
use crate::live::Live;
use crate::page::shortened;
use crate::screen;
use crate::table::PanelTable;
use crate::tables::tables;
use crate::view::View;

/// The width of a line, as needed by the tables.
pub const WIDTH: usize = 110;

/// The number of rows shown of a table.
const ROWS: usize = 20;

/// The data at one moment.
struct Update {
    observed_ns: i64,
    own_ratio: Option<f64>,
    tables: [PanelTable; 3],
}

/// Updates in chronological order.
#[derive(Default)]
struct Updates(Vec<Update>);

impl Report for Updates {
    fn schema(&self) -> &'static str {
        "becalm.top/1"
    }

    fn document(&self) -> impl Serialize {
        let updates = self.0.iter().map(|update| {
            let [cpus, sources, detours] = update.tables.each_ref().map(|table| &table.grid);
            TopUpdate { observed_ns: update.observed_ns, own_ratio: update.own_ratio, cpus, sources, detours }
        });
        TopDocument { updates: updates.collect() }
    }

    fn text(&self, out: &mut Sheet<'_>) -> io::Result<()> {
        for update in &self.0 {
            write!(out, "becalm top: observed {}", Value::Time(update.observed_ns).cell())?;
            if let Some(own) = update.own_ratio {
                write!(out, ", becalm itself {} (not counted)", Value::Ratio(own).cell())?;
            }
            writeln!(out)?;
            for table in &update.tables {
                print(out, table)?;
            }
            writeln!(out)?;
        }
        Ok(())
    }
}

/// Prints updates to standard output, as text or as one JSON document.
pub struct Plain {
    out: File,
    /// All updates so far, for the document at the end; `None` if each is printed as text.
    document: Option<Updates>,
}

impl Plain {
    /// Prints text to standard output, or one document if `json`. Fails if there is no standard output.
    pub fn new(json: bool) -> io::Result<Self> {
        Ok(Self { out: screen::output()?, document: json.then(Updates::default) })
    }

    /// Prints or stores an update.
    pub fn show(&mut self, live: &Live) -> io::Result<()> {
        let tables = tables(live, &View::default());
        let update = Update { observed_ns: live.elapsed().get(), own_ratio: live.own_ratio(), tables };
        match &mut self.document {
            Some(updates) => updates.0.push(update),
            None => becalm_report::print(&Updates(vec![update]), false, Form::default(), &mut self.out)?,
        }
        Ok(())
    }

    /// Prints the document, if there is one.
    pub fn end(mut self) -> io::Result<()> {
        match &self.document {
            Some(updates) => becalm_report::print(updates, true, Form::default(), &mut self.out),
            None => Ok(()),
        }
    }
}

fn print(out: &mut Sheet<'_>, table: &PanelTable) -> io::Result<()> {
    writeln!(out, "\n{}", table.title)?;
    if table.rows.is_empty() {
        return writeln!(out, "  {}", table.empty);
    }
    write_rows(out, &table.grid, &fit(&table.grid, None, WIDTH, table.panel))
}

/// Prints the titles and the first rows of a table.
pub fn write_rows(out: &mut impl Write, grid: &Grid, fitted: &[FittedColumn]) -> io::Result<()> {
    let titles = fitted.iter().map(|fitted| grid.columns[fitted.column].title.to_owned()).collect();
    let rows = grid.rows.iter().take(ROWS);
    let rows = rows.map(|row| fitted.iter().map(|fitted| row[fitted.column].cell()).collect());
    for cells in std::iter::once::<Vec<String>>(titles).chain(rows) {
        let mut line = String::new();
        for (fitted, cell) in fitted.iter().zip(cells) {
            let (cell, width) = (shortened(&cell, fitted.width), fitted.width);
            let left = grid.columns[fitted.column].is_text;
            line.push_str(&if left { format!("  {cell:<width$}") } else { format!("  {cell:>width$}") });
        }
        writeln!(out, "{}", line.trim_end())?;
    }
    Ok(())
}
