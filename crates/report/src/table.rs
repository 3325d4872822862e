//! Tables for a terminal: columns aligned, as wide as what stands in them.

use std::io::{self, Write};

use crate::Value;
use crate::field::Field;

/// Between two columns.
const GAP: usize = 2;

/// A table that is filled row by row.
pub(crate) struct Table {
    titles: Vec<&'static str>,
    left: Vec<bool>,
    rows: Vec<Vec<String>>,
    /// Before which rows a line is drawn.
    rules: Vec<usize>,
}

impl Table {
    pub(crate) fn new<R>(fields: &[&Field<R>]) -> Self {
        let titles = fields.iter().map(|field| field.title).collect();
        Self { titles, left: vec![false; fields.len()], rows: Vec::new(), rules: Vec::new() }
    }

    /// A table whose rows have names, in a first column with this title.
    pub(crate) fn named<R>(first: &'static str, fields: &[&Field<R>]) -> Self {
        let mut table = Self::new(fields);
        table.titles.insert(0, first);
        table.left.insert(0, true);
        table
    }

    /// Adds a row to a table whose rows have names.
    pub(crate) fn named_row<R>(&mut self, name: String, fields: &[&Field<R>], row: &R) {
        let values: Vec<Value> = fields.iter().map(|field| (field.get)(row)).collect();
        for (left, value) in self.left[1..].iter_mut().zip(&values) {
            *left |= value.is_text();
        }
        self.rows.push(std::iter::once(name).chain(values.iter().map(Value::cell)).collect());
    }

    /// Adds a row.
    pub(crate) fn row<R>(&mut self, fields: &[&Field<R>], row: &R) {
        let values: Vec<Value> = fields.iter().map(|field| (field.get)(row)).collect();
        for (left, value) in self.left.iter_mut().zip(&values) {
            *left |= value.is_text();
        }
        self.rows.push(values.iter().map(Value::cell).collect());
    }

    /// Adds the row of what the others add up to, below a line. It is named in the first column.
    pub(crate) fn total<R>(&mut self, fields: &[&Field<R>], row: &R, name: &str) {
        self.rule();
        let mut cells: Vec<String> = fields.iter().map(|field| (field.get)(row).cell()).collect();
        if let Some(first) = cells.first_mut() {
            name.clone_into(first);
        }
        self.rows.push(cells);
    }

    /// Draws a line before the next row.
    pub(crate) fn rule(&mut self) {
        self.rules.push(self.rows.len());
    }

    /// Prints it, two blanks from the edge.
    pub(crate) fn print(&self, out: &mut dyn Write) -> io::Result<()> {
        let width = |at: usize| {
            let cells = self.rows.iter().map(|row| row[at].as_str());
            cells.chain([self.titles[at]]).map(|cell| cell.chars().count()).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..self.titles.len()).map(width).collect();
        let line = |cells: &mut dyn Iterator<Item = &str>| {
            let mut text = String::new();
            for (at, cell) in cells.enumerate() {
                text.push_str(&" ".repeat(GAP));
                let pad = " ".repeat(widths[at] - cell.chars().count());
                text.push_str(&if self.left[at] { format!("{cell}{pad}") } else { format!("{pad}{cell}") });
            }
            text.trim_end().to_owned()
        };
        writeln!(out, "{}", line(&mut self.titles.iter().copied()))?;
        let whole: usize = widths.iter().map(|width| width + GAP).sum();
        let rule = format!("  {}", "\u{2500}".repeat(whole.saturating_sub(GAP)));
        writeln!(out, "{rule}")?;
        for (at, row) in self.rows.iter().enumerate() {
            if self.rules.contains(&at) && at > 0 {
                writeln!(out, "{rule}")?;
            }
            writeln!(out, "{}", line(&mut row.iter().map(String::as_str)))?;
        }
        Ok(())
    }
}
