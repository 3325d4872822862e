//! Tables, for a terminal and for a page.
//!
//! On a terminal columns are aligned, as wide as their cells, and together no wider than the terminal. If it is too narrow, names are shortened, then
//! dispensable columns are dropped, and finally the table is split into parts below each other, each starting with the first column.

use std::borrow::Cow;
use std::io::{self, Write};
use std::ops::Range;

use becalm_model::Kind;
use becalm_units::printable;

use crate::Value;
use crate::form::field::{Field, Row as Fields};
use crate::form::paragraph::paragraph;
use crate::form::sheet::{Sheet, Style};

/// The number of spaces between two columns.
const GAP: usize = 2;

/// The smallest length of a shortened name.
const SHORTEST: usize = 14;

/// A table that is filled row by row, for a terminal and for a page.
#[derive(Clone, Default, Debug)]
pub struct Table {
    /// The contents of the table, for the caption on a page.
    pub caption: String,
    pub(crate) columns: Vec<Column>,
    pub(crate) rows: Vec<Row>,
    /// Whether a click on a column title sorts the rows, on a page.
    pub sorts: bool,
    /// A note below the table on a page, such as which rows it leaves out.
    pub note: String,
    /// Whether names have a common prefix and differ at their ends.
    long_names: bool,
    /// The number of rows on a terminal unless all are wanted, and the note about the others; `None` for all.
    most_important: Option<(usize, String)>,
    /// Whether a line is drawn before the next row.
    rule_is_next: bool,
    /// Whether no lines are drawn.
    has_no_rules: bool,
}

/// A column of a table.
#[derive(Clone, Default, Debug)]
pub(crate) struct Column {
    pub(crate) title: Cow<'static, str>,
    /// Whether it contains texts, which are left-aligned.
    pub(crate) is_text: bool,
    /// Whether it may be dropped if there is no room.
    is_dispensable: bool,
    /// Whether its texts are not names and must not be shortened.
    is_whole: bool,
    /// Whether it contains verdicts, which are highlighted.
    has_verdicts: bool,
    /// Whether a terminal leaves it out.
    is_for_page: bool,
}

impl Column {
    fn new(title: impl Into<Cow<'static, str>>, is_text: bool) -> Self {
        Self { title: title.into(), is_text, ..Self::default() }
    }

    /// Whether its texts may be shortened.
    const fn is_name(&self) -> bool {
        self.is_text && !self.is_dispensable && !self.is_whole
    }
}

/// A row of a table.
#[derive(Clone, Default, Debug)]
pub(crate) struct Row {
    pub(crate) cells: Vec<Cell>,
    /// Whether it is the sum of the other rows: it stays at the end.
    pub(crate) is_total: bool,
    /// Whether a terminal draws a line before it.
    has_rule: bool,
    /// The detour that it opens on a page, by its index in the chart of detours.
    pub(crate) opens: Option<u32>,
}

/// A cell: its text and its sort key.
#[derive(Clone, Debug)]
pub(crate) struct Cell {
    pub(crate) text: String,
    pub(crate) key: Option<f64>,
    /// The kind of source in the cell, for its color.
    pub(crate) kind: Option<&'static str>,
}

impl Cell {
    fn new(value: &Value, column: &str) -> Self {
        let kind = match value {
            Value::Text(text) if column == "kind" => Kind::ALL.iter().find(|kind| kind.name() == text),
            _ => None,
        };
        Self { text: value.cell(), key: value.key(), kind: kind.map(|kind| kind.name()) }
    }
}

impl Table {
    /// A table without rows.
    pub fn new<R>(fields: &[&Field<R>]) -> Self {
        let columns = fields.iter().map(|field| Column::new(field.title, false)).collect();
        Self { columns, sorts: true, ..Self::default() }
    }

    /// A table of `rows`.
    pub fn filled<'a, R: 'a>(fields: &[&Field<R>], rows: impl IntoIterator<Item = &'a R>) -> Self {
        let mut table = Self::new(fields);
        rows.into_iter().for_each(|row| table.row(fields, row));
        table
    }

    /// A table of `rows` with all of their fields.
    pub fn whole<'a, R: Fields + 'a>(rows: impl IntoIterator<Item = &'a R>) -> Self {
        Self::filled(&R::FIELDS.iter().collect::<Vec<_>>(), rows)
    }

    /// A table of named rows; the first column has this title. Other texts in it are words and not shortened.
    pub fn named<R>(first: &str, fields: &[&Field<R>]) -> Self {
        let mut table = Self::new(fields);
        table.columns.iter_mut().for_each(|column| column.is_whole = true);
        table.columns.insert(0, Column::new(first.to_owned(), true));
        table
    }

    /// A table with columns known only at run time: first left-aligned names, then values.
    pub fn matrix(names: &[&str], values: Vec<String>) -> Self {
        let names = names.iter().map(|name| Column::new((*name).to_owned(), true));
        let columns = names.chain(values.into_iter().map(|title| Column::new(title, false))).collect();
        Self { columns, sorts: true, long_names: true, ..Self::default() }
    }

    /// A table of verbatim texts: the titles of the left-aligned columns, and of the others.
    pub fn texts(names: Vec<String>, others: Vec<String>) -> Self {
        let count = names.len();
        let mut table = Self::matrix(&[], [names, others].concat());
        table.columns[..count].iter_mut().for_each(|column| column.is_text = true);
        table
    }

    /// Sets the caption.
    #[must_use]
    pub fn captioned(self, caption: &str) -> Self {
        Self { caption: caption.to_owned(), ..self }
    }

    /// Limits a terminal to the first rows unless all are wanted, with a note below the table, such as `the noisiest 20 of 64 CPUs`.
    #[must_use]
    pub fn with_most_important(self, rows: usize, remark: impl FnOnce(usize) -> String) -> Self {
        let count = self.rows.iter().filter(|row| !row.is_total).count();
        let remark = remark(count.saturating_sub(rows));
        Self { most_important: (count > rows).then_some((rows, remark)), ..self }
    }

    /// Hides the columns with these titles on a terminal.
    #[must_use]
    pub fn without_on_terminal(mut self, titles: &[&str]) -> Self {
        self.columns.iter_mut().for_each(|column| column.is_for_page = titles.contains(&&*column.title));
        self
    }

    /// The number of rows.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether it has no rows.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Draws no lines on a terminal.
    #[must_use]
    pub fn without_rules(self) -> Self {
        Self { has_no_rules: true, ..self }
    }

    /// Lets a column be dropped on a narrow terminal.
    pub fn may_leave_out(&mut self, column: usize) {
        self.columns[column].is_dispensable = true;
    }

    /// Lets names with a common prefix take most of a narrow terminal before they are shortened.
    pub fn keep_names_long(&mut self) {
        self.long_names = true;
    }

    /// Highlights the verdicts of a column, if there are colors.
    pub fn keep_verdicts(&mut self, column: usize) {
        self.columns[column].has_verdicts = true;
    }

    /// Keeps the texts of a column, which are not names, from being shortened.
    pub fn keep_whole(&mut self, column: usize) {
        self.columns[column].is_whole = true;
    }

    /// Gives a column another title.
    pub fn name_column(&mut self, column: usize, title: String) {
        self.columns[column].title = Cow::Owned(title);
    }

    /// Adds a row of verbatim texts.
    pub fn cells(&mut self, cells: impl IntoIterator<Item = String>) {
        let cells = cells.into_iter().map(|cell| Cell { text: printable(&cell).into_owned(), key: None, kind: None });
        self.push_cells(cells.collect());
    }

    /// Adds a row of names and values to a matrix.
    pub fn values(&mut self, names: &[String], values: impl Iterator<Item = Value>) {
        self.push(names.iter().cloned().map(Value::Text).chain(values));
    }

    /// Adds a named row.
    pub fn named_row<R>(&mut self, name: String, fields: &[&Field<R>], row: &R) {
        self.push(std::iter::once(Value::Text(name)).chain(fields.iter().map(|field| (field.get)(row))));
    }

    /// Adds a row with a cell for each field.
    pub fn row<R>(&mut self, fields: &[&Field<R>], row: &R) {
        self.push(fields.iter().map(|field| (field.get)(row)));
    }

    /// Adds a row that opens a detour on a page.
    pub fn opening_row<R>(&mut self, fields: &[&Field<R>], row: &R, detour: u32) {
        self.push(fields.iter().map(|field| (field.get)(row))).opens = Some(detour);
    }

    /// Adds a row of totals below a line, with its name in the first column.
    pub fn total<R>(&mut self, fields: &[&Field<R>], row: &R, name: &str) {
        self.rule();
        let row = self.push(fields.iter().map(|field| (field.get)(row)));
        row.is_total = true;
        if let Some(first) = row.cells.first_mut() {
            *first = Cell { text: name.to_owned(), key: None, kind: None };
        }
    }

    /// Draws a line before the next row on a terminal.
    pub fn rule(&mut self) {
        self.rule_is_next = true;
    }

    fn push(&mut self, values: impl Iterator<Item = Value>) -> &mut Row {
        let mut cells = Vec::with_capacity(self.columns.len());
        for (value, column) in values.zip(&mut self.columns) {
            column.is_text |= value.is_text();
            cells.push(Cell::new(&value, &column.title));
        }
        self.push_cells(cells)
    }

    fn push_cells(&mut self, cells: Vec<Cell>) -> &mut Row {
        let has_rule = std::mem::take(&mut self.rule_is_next) && !self.rows.is_empty();
        self.rows.push(Row { cells, has_rule, ..Row::default() });
        self.rows.last_mut().expect("a row was added")
    }

    /// Prints it, indented by two blanks. Fails if `out` cannot be written.
    pub fn print(&self, out: &mut Sheet<'_>) -> io::Result<()> {
        let shown = self.shown(out.all());
        self.print_within(out.width(), &shown, out)?;
        self.left_out(out.all()).map_or(Ok(()), |remark| paragraph(out, "  ", &remark))
    }

    /// The rows to show: all of them if `all`, else the most important ones.
    pub(crate) fn shown(&self, all: bool) -> Vec<&Row> {
        let most = self.most_important.as_ref().filter(|_| !all).map_or(usize::MAX, |(most, _)| *most);
        let rows = self.rows.iter().enumerate();
        rows.filter(|(at, row)| *at < most || row.is_total).map(|(_, row)| row).collect()
    }

    /// The note about omitted rows, if there are any.
    pub(crate) fn left_out(&self, all: bool) -> Option<String> {
        let (_, remark) = self.most_important.as_ref().filter(|_| !all)?;
        Some(format!("{remark}; --full shows all of them"))
    }

    fn print_within(&self, page: usize, rows: &[&Row], out: &mut Sheet<'_>) -> io::Result<()> {
        let width = |at: usize| {
            let cells = rows.iter().map(|row| row.cells[at].text.as_str());
            cells.chain([&*self.columns[at].title]).map(|cell| cell.chars().count()).max().unwrap_or(0)
        };
        let mut widths: Vec<usize> = (0..self.columns.len()).map(width).collect();
        let mut columns: Vec<usize> = (0..self.columns.len()).filter(|at| !self.columns[*at].is_for_page).collect();
        let natural = widths.clone();
        if !self.shorten(&columns, &mut widths, page) {
            columns.retain(|column| !self.columns[*column].is_dispensable);
            widths = natural;
            self.shorten(&columns, &mut widths, page);
        }
        for (at, part) in parts(&columns, &widths, page).into_iter().enumerate() {
            if at > 0 {
                writeln!(out)?;
            }
            let key = if at > 0 { columns.first().copied() } else { None };
            let shown: Vec<usize> = key.into_iter().chain(columns[part].iter().copied()).collect();
            self.print_columns(&shown, &widths, rows, out)?;
        }
        Ok(())
    }

    /// Shortens the names, longest first, until the table fits the page; returns whether it does. If not, all are as short as possible.
    fn shorten(&self, columns: &[usize], widths: &mut [usize], page: usize) -> bool {
        let shortest = if self.long_names { SHORTEST.max(page.saturating_mul(5) / 8) } else { SHORTEST };
        let needed = |widths: &[usize]| columns.iter().map(|column| widths[*column] + GAP).sum::<usize>();
        while needed(widths) > page {
            let names = columns.iter().filter(|column| self.columns[**column].is_name());
            match names.max_by_key(|column| widths[**column]) {
                Some(longest) if widths[*longest] > shortest => widths[*longest] -= 1,
                _ => return false,
            }
        }
        true
    }

    fn print_columns(&self, columns: &[usize], widths: &[usize], rows: &[&Row], out: &mut Sheet<'_>) -> io::Result<()> {
        let laid_out = |text: &dyn Fn(usize) -> String| {
            let mut laid_out: Vec<(usize, String)> = Vec::new();
            for column in columns {
                let cell = shortened(text(*column), widths[*column]);
                let pad = " ".repeat(widths[*column] - cell.chars().count());
                let (before, after) = if self.columns[*column].is_text { ("", &*pad) } else { (&*pad, "") };
                laid_out.push((*column, format!("{}{before}{cell}{after}", " ".repeat(GAP))));
            }
            // Drops trailing blanks and empty cells.
            while let Some((_, cell)) = laid_out.last_mut() {
                cell.truncate(cell.trim_end().len());
                if !cell.is_empty() {
                    break;
                }
                laid_out.pop();
            }
            laid_out
        };
        let titles: String =
            laid_out(&|column| self.columns[column].title.to_string()).into_iter().map(|(_, cell)| cell).collect();
        let (blank, titles) = titles.split_at(titles.len() - titles.trim_start().len());
        write!(out, "{blank}")?;
        out.paint(Some(Style::Heading), titles)?;
        writeln!(out)?;
        let whole: usize = columns.iter().map(|column| widths[*column] + GAP).sum();
        let rule = format!("  {}", "\u{2500}".repeat(whole.saturating_sub(GAP)));
        if !self.has_no_rules {
            writeln!(out, "{rule}")?;
        }
        for row in rows {
            if row.has_rule && !self.has_no_rules {
                writeln!(out, "{rule}")?;
            }
            for (column, cell) in laid_out(&|column| row.cells[column].text.clone()) {
                if self.columns[column].has_verdicts { out.mark(&cell)? } else { write!(out, "{cell}")? }
            }
            writeln!(out)?;
        }
        Ok(())
    }
}

/// Splits columns into parts that fit the page; all but the first part also have the first column. A column wider than the page is its own part.
fn parts(columns: &[usize], widths: &[usize], page: usize) -> Vec<Range<usize>> {
    let key = columns.first().map_or(0, |column| widths[*column] + GAP);
    let mut parts = Vec::new();
    let (mut begin, mut taken) = (0, 0);
    for (at, column) in columns.iter().enumerate() {
        let width = widths[*column] + GAP;
        let in_part = at - begin;
        if taken + width > page && in_part > usize::from(begin == 0) {
            parts.push(begin..at);
            (begin, taken) = (at, key);
        }
        taken += width;
    }
    parts.push(begin..columns.len());
    parts
}

fn shortened(text: String, width: usize) -> String {
    if text.chars().count() <= width {
        return text;
    }
    text.chars().take(width.saturating_sub(1)).chain(['\u{2026}']).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::form::field::field;
    use crate::form::figure::Time;
    use crate::form::sheet::Form;
    use proptest::prelude::*;

    const FIELDS: [&Field<[i64; 4]>; 6] = [
        &field!("source", "source", |_| "kworker:page_reporting_process"),
        &field!("bar", "", |_| "#".repeat(24)),
        &field!("a", "highest", |row| Time(row[0])),
        &field!("b", "mean", |row| Time(row[1])),
        &field!("c", "total", |row| Time(row[2])),
        &field!("d", "count", |row| row[3].unsigned_abs()),
    ];

    fn printed(page: usize, row: [i64; 4]) -> String {
        let mut table = Table::new(&FIELDS);
        table.may_leave_out(1);
        table.row(&FIELDS, &row);
        table.total(&FIELDS, &row, "all");
        let mut out = Vec::new();
        table
            .print_within(page, &table.rows.iter().collect::<Vec<_>>(), &mut Sheet::new(&mut out, Form::default()))
            .unwrap();
        String::from_utf8(out).unwrap()
    }

    const ROW: [i64; 4] = [1_230_000, 4_560, 7_890_000_000, 12_345];

    #[test]
    fn a_page_that_is_wide_enough_changes_nothing() {
        let wide = printed(usize::MAX, ROW);
        let width = wide.lines().map(|line| line.chars().count()).max().unwrap();
        assert_eq!(printed(width, ROW), wide);
        assert!(wide.contains("kworker:page_reporting_process  ####"));
    }

    #[test]
    fn names_are_shortened_then_what_can_be_spared_goes() {
        let shorter = printed(84, ROW);
        assert!(shorter.contains("####") && shorter.contains('\u{2026}'), "{shorter}");
        let without = printed(60, ROW);
        assert!(!without.contains('#') && without.contains("kworker:page_"), "{without}");
        assert_eq!(without.lines().count(), 5);
    }

    #[test]
    fn a_narrow_page_loses_no_figure() {
        let text = printed(40, ROW);
        for cell in ["1.23ms", "4.56us", "7.89s", "12,345"] {
            assert_eq!(text.matches(cell).count(), 2, "{cell} in\n{text}");
        }
        // Each part repeats the names.
        assert_eq!(text.matches("kworker:page_\u{2026}").count(), 2, "{text}");
        assert!(text.contains("\n\n"));
    }

    /// The same fields, with a name in front and a word at the end.
    fn printed_with_names(page: usize, row: [i64; 4]) -> String {
        let word = &field!("word", "difference", |_| "too little data");
        let fields: Vec<&Field<[i64; 4]>> = FIELDS[2..].iter().copied().chain([word]).collect();
        let mut table = Table::named("figure", &fields);
        table.named_row("the longest in 312ms".to_owned(), &fields, &row);
        let mut out = Vec::new();
        table
            .print_within(page, &table.rows.iter().collect::<Vec<_>>(), &mut Sheet::new(&mut out, Form::default()))
            .unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn of_rows_with_names_only_these_are_shortened() {
        let text = printed_with_names(60, ROW);
        assert!(text.contains("the longest i\u{2026}") && text.contains("too little data"), "{text}");
        assert!(printed_with_names(100, ROW).contains("the longest in 312ms"));
    }

    #[test]
    fn names_that_begin_alike_stay_apart() {
        let field = field!("n", "what", |row: &(&'static str, i64)| row.0);
        let time = field!("t", "time", |row: &(&'static str, i64)| Time(row.1));
        let fields = [&field, &time, &time, &time];
        let mut table = Table::new(&fields);
        table.keep_names_long();
        table.row(&fields, &("futex wake, other CPU: the call", 1_500));
        table.row(&fields, &("futex wake, other CPU: until it runs", 2_500));
        for (page, whole) in [(200, true), (60, true), (40, false)] {
            let mut out = Vec::new();
            table
                .print_within(page, &table.rows.iter().collect::<Vec<_>>(), &mut Sheet::new(&mut out, Form::default()))
                .unwrap();
            let text = String::from_utf8(out).unwrap();
            assert_eq!(text.contains("futex wake, other CPU: until it runs"), whole, "{text}");
            assert_eq!(text.matches("2.50us").count(), 3, "{text}");
            assert!(text.lines().all(|line| line.chars().count() <= page), "{text}");
        }
    }

    #[test]
    fn rows_that_are_left_out_are_counted_and_their_sum_stays() {
        let time = field!("t", "time", |row: &i64| Time(*row));
        let fields = [&time];
        let mut table = Table::filled(&fields, &[7, 8, 9]);
        table.total(&fields, &24, "all");
        let table = table.with_most_important(1, |more| format!("and {more} more"));
        let shown = |all: bool| {
            let mut out = Vec::new();
            table.print(&mut Sheet::new(&mut out, Form::default().with_all(all))).unwrap();
            String::from_utf8(out).unwrap()
        };
        let has_sum = |text: &str| text.lines().any(|line| line.trim() == "all");
        let (few, whole) = (shown(false), shown(true));
        assert!(few.contains("7ns") && has_sum(&few) && !few.contains("8ns"), "{few}");
        assert!(few.ends_with("and 2 more; --full shows all of them\n"), "{few}");
        assert!(whole.contains("9ns") && has_sum(&whole) && !whole.contains("more"), "{whole}");
    }

    proptest! {
        #[test]
        fn nothing_is_wider_than_the_page(page in 40_usize..140, row: [i32; 4]) {
            for print in [printed, printed_with_names] {
                for line in print(page, row.map(i64::from)).lines() {
                    prop_assert!(line.chars().count() <= page, "{} in {}", line, page);
                }
            }
        }
    }
}
