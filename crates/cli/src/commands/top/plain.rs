//! The view as text, update after update, for logs and pipes; or as one JSON document, `becalm.top/1`.

use std::fs::File;
use std::io::{self, Write};

use becalm_report::grid::Grid;
use serde::Serialize;

use super::columns::fit;
use super::live::Live;
use super::page::shortened;
use super::screen;
use super::tables::{Table, tables};
use super::view::View;

/// As wide as the tables become.
const WIDTH: usize = 110;

/// How many rows of a table are shown.
const ROWS: usize = 20;

#[derive(Serialize)]
struct Document {
    schema: &'static str,
    updates: Vec<Update>,
}

#[derive(Serialize)]
struct Update {
    observed_ns: i64,
    own_ratio: Option<f64>,
    cpus: Grid,
    sources: Grid,
    detours: Grid,
}

/// Where updates go.
pub struct Plain {
    out: File,
    document: Option<Document>,
}

impl Plain {
    /// To standard output.
    ///
    /// # Errors
    /// If there is none.
    pub fn new(json: bool) -> io::Result<Self> {
        let document = json.then(|| Document { schema: "becalm.top/1", updates: Vec::new() });
        Ok(Self { out: screen::output()?, document })
    }

    /// One more update.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn show(&mut self, live: &Live) -> io::Result<()> {
        let tables = tables(live, &View::default());
        let observed_ns = live.elapsed().get();
        if let Some(document) = &mut self.document {
            let [cpus, sources, detours] = tables.map(|table| table.grid);
            document.updates.push(Update { observed_ns, own_ratio: live.own_ratio(), cpus, sources, detours });
            return Ok(());
        }
        let mut text = format!("becalm top: observed {}", becalm_report::Value::Time(observed_ns).cell());
        if let Some(own) = live.own_ratio() {
            text.push_str(&format!(", {} of the time becalm's own", becalm_report::Value::Ratio(own).cell()));
        }
        text.push('\n');
        for table in &tables {
            print(&mut text, table);
        }
        text.push('\n');
        self.out.write_all(text.as_bytes())
    }

    /// There are no more.
    ///
    /// # Errors
    /// If the document cannot be written.
    pub fn end(mut self) -> io::Result<()> {
        if let Some(document) = &self.document {
            let mut text = serde_json::to_string_pretty(document)?;
            text.push('\n');
            self.out.write_all(text.as_bytes())?;
        }
        Ok(())
    }
}

fn print(text: &mut String, table: &Table) {
    text.push_str(&format!("\n{}\n", table.title));
    if table.rows.is_empty() {
        text.push_str(&format!("  {}\n", table.empty));
        return;
    }
    let fitted = fit(&table.grid, None, WIDTH, table.panel);
    let titles = fitted.iter().map(|fitted| table.grid.columns[fitted.column].title.to_owned()).collect();
    let rows = table.grid.rows.iter().take(ROWS);
    let rows = rows.map(|row| fitted.iter().map(|fitted| row[fitted.column].cell()).collect());
    for cells in std::iter::once::<Vec<String>>(titles).chain(rows) {
        let mut line = String::new();
        for (fitted, cell) in fitted.iter().zip(cells) {
            let (cell, width) = (shortened(&cell, fitted.width), fitted.width);
            let left = table.grid.columns[fitted.column].is_text;
            line.push_str(&if left { format!("  {cell:<width$}") } else { format!("  {cell:>width$}") });
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
}
