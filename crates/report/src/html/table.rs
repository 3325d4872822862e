//! Tables of a page: the same fields as those of the terminal, with the plain values beside them to sort by.

use crate::Value;
use crate::form::field::Field;

/// A table on a page.
#[derive(Clone, Debug)]
pub struct HtmlTable {
    /// What the table holds; it stands above it.
    pub caption: String,
    /// Titles of columns, and whether texts stand in them.
    pub(super) columns: Vec<(String, bool)>,
    pub(super) rows: Vec<TableRow>,
    /// Whether its columns sort when their titles are clicked.
    pub sorts: bool,
    /// What is to be known about it: which rows it leaves out.
    pub note: String,
}

/// A row of a table on a page.
#[derive(Clone, Debug)]
pub(super) struct TableRow {
    pub(super) cells: Vec<TableCell>,
    /// The row that the others add up to: it stays at the end.
    pub(super) total: bool,
    /// The detour that it opens, by its number in the chart of detours.
    pub(super) opens: Option<u32>,
}

/// A cell: how it is written, and what it is sorted by.
#[derive(Clone, Debug)]
pub(super) struct TableCell {
    pub(super) text: String,
    pub(super) key: Option<f64>,
    /// The kind of source that it names, for its color.
    pub(super) kind: Option<&'static str>,
}

impl HtmlTable {
    /// A table of no rows yet.
    pub fn new<R>(caption: &str, fields: &[&Field<R>]) -> Self {
        let columns = fields.iter().map(|field| (field.title.to_owned(), false)).collect();
        Self { caption: caption.to_owned(), columns, rows: Vec::new(), sorts: true, note: String::new() }
    }

    /// A table whose rows have names, in a first column with this title.
    pub fn named<R>(caption: &str, first: &str, fields: &[&Field<R>]) -> Self {
        let mut table = Self::new(caption, fields);
        table.columns.insert(0, (first.to_owned(), true));
        table
    }

    /// A table of values whose rows are told apart by several names, and whose columns have titles that are found as it is made.
    pub fn matrix(caption: &str, names: &[&str], values: &[String]) -> Self {
        let mut table = Self::new::<()>(caption, &[]);
        table.columns.extend(names.iter().map(|name| ((*name).to_owned(), true)));
        table.columns.extend(values.iter().map(|title| (title.clone(), false)));
        table
    }

    /// Adds a row to such a table.
    pub fn values(&mut self, names: &[String], values: impl Iterator<Item = Value>) {
        self.push(names.iter().cloned().map(Value::Text).chain(values), None);
    }

    /// Adds a row to a table whose rows have names.
    pub fn named_row<R>(&mut self, name: String, fields: &[&Field<R>], row: &R) {
        let name = std::iter::once(Value::Text(name));
        self.push(name.chain(fields.iter().map(|field| (field.get)(row))), None);
    }

    /// Adds a row with a cell for each field, and returns the table.
    pub fn row<R>(&mut self, fields: &[&Field<R>], row: &R) -> &mut Self {
        self.push(fields.iter().map(|field| (field.get)(row)), None);
        self
    }

    /// Adds a row that opens a detour.
    pub fn opening_row<R>(&mut self, fields: &[&Field<R>], row: &R, detour: u32) {
        self.push(fields.iter().map(|field| (field.get)(row)), Some(detour));
    }

    /// Adds the row of what the others add up to, named in the first column.
    pub fn total<R>(&mut self, fields: &[&Field<R>], row: &R, name: &str) {
        self.row(fields, row);
        if let Some(last) = self.rows.last_mut() {
            last.total = true;
            if let Some(first) = last.cells.first_mut() {
                name.clone_into(&mut first.text);
                first.key = None;
            }
        }
    }

    /// How many rows it has.
    #[must_use]
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether it has none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    fn push(&mut self, values: impl Iterator<Item = Value>, opens: Option<u32>) {
        let mut cells = Vec::with_capacity(self.columns.len());
        for (value, column) in values.zip(&mut self.columns) {
            column.1 |= value.is_text();
            let kind = match (&value, column.0.as_str()) {
                (Value::Text(text), "kind") => becalm_model::Kind::ALL.iter().find(|kind| kind.name() == text),
                _ => None,
            };
            cells.push(TableCell { text: value.cell(), key: key(&value), kind: kind.map(|kind| kind.name()) });
        }
        self.rows.push(TableRow { cells, total: false, opens });
    }
}

/// What a figure is sorted by; texts by themselves.
fn key(value: &Value) -> Option<f64> {
    match value {
        Value::Missing | Value::Text(_) => None,
        Value::Count(number) | Value::Number(number) => Some(*number as f64),
        Value::Time(number) | Value::Fine(number) | Value::Picos(number) => Some(*number as f64),
        Value::Rate(number)
        | Value::Ratio(number)
        | Value::Share(number)
        | Value::Points(number)
        | Value::Factor(number)
        | Value::Change(number)
        | Value::Real(number)
        | Value::Often(number) => Some(*number).filter(|number| number.is_finite()),
        Value::Flag(flag) => Some(f64::from(u8::from(*flag))),
    }
}
