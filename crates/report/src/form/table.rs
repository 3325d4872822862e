//! Tables for a terminal: columns aligned, as wide as what stands in them, and no wider than the page.
//!
//! Where the page is too narrow, names are shortened; if that is not enough, the columns that may be left out are; and then
//! the table is laid out in several parts below each other, each with the first column again, so that no figure is lost.

use std::borrow::Cow;
use std::io::{self, Write};
use std::ops::Range;

use becalm_units::printable;

use crate::Value;
use crate::form::field::Field;
use crate::form::sheet::{Sheet, Style};

/// The number of spaces between two columns.
const GAP: usize = 2;

/// Names are not made shorter than this.
const SHORTEST: usize = 14;

/// A table that is filled row by row.
pub struct Table {
    titles: Vec<Cow<'static, str>>,
    left: Vec<bool>,
    /// Columns that are left out where they do not fit.
    dispensable: Vec<bool>,
    /// Columns of texts that are no names, and are not shortened.
    whole: Vec<bool>,
    rows: Vec<Vec<String>>,
    /// Before which rows a line is drawn.
    rules: Vec<usize>,
    /// Whether names that begin alike are told apart by their ends.
    long_names: bool,
    /// Columns of verdicts, which stand out.
    verdicts: Vec<usize>,
}

impl Table {
    /// A table without rows.
    #[must_use]
    pub fn new<R>(fields: &[&Field<R>]) -> Self {
        let titles = fields.iter().map(|field| Cow::Borrowed(field.title)).collect();
        let no = vec![false; fields.len()];
        let (left, dispensable) = (no.clone(), no.clone());
        Self {
            titles,
            left,
            dispensable,
            whole: no,
            rows: Vec::new(),
            rules: Vec::new(),
            long_names: false,
            verdicts: Vec::new(),
        }
    }

    /// Says that a column may be left out where the page is narrow.
    pub fn may_leave_out(&mut self, column: usize) {
        self.dispensable[column] = true;
    }

    /// Says that names begin alike, so that they may take most of a narrow page before they are shortened.
    pub fn keep_names_long(&mut self) {
        self.long_names = true;
    }

    /// A table whose rows have names, in a first column with this title. Other texts in it are words, which stay whole.
    pub fn named<R>(first: &'static str, fields: &[&Field<R>]) -> Self {
        let mut table = Self::new(fields);
        table.titles.insert(0, Cow::Borrowed(first));
        table.left.insert(0, true);
        table.dispensable.insert(0, false);
        table.whole = std::iter::once(false).chain(fields.iter().map(|_| true)).collect();
        table
    }

    /// A table whose columns are known only when it is made: first those of names, which stand to the left, and then those of values.
    pub fn matrix(names: &[&'static str], values: Vec<String>) -> Self {
        let titles: Vec<Cow<'static, str>> =
            names.iter().map(|name| Cow::Borrowed(*name)).chain(values.into_iter().map(Cow::Owned)).collect();
        let left = (0..titles.len()).map(|at| at < names.len()).collect();
        let no = vec![false; titles.len()];
        Self {
            titles,
            left,
            dispensable: no.clone(),
            whole: no,
            rows: Vec::new(),
            rules: Vec::new(),
            long_names: true,
            verdicts: Vec::new(),
        }
    }

    /// A table of texts as they are: the titles of columns of names, which stand to the left, and those of the others.
    pub fn texts(names: Vec<String>, others: Vec<String>) -> Self {
        let mut table = Self::matrix(&[], [names.clone(), others].concat());
        table.left[..names.len()].fill(true);
        table
    }

    /// Says that a column holds verdicts, which stand out where there are colors.
    pub fn keep_verdicts(&mut self, column: usize) {
        self.verdicts.push(column);
    }

    /// Says that the texts of a column are no names, and are not shortened.
    pub fn keep_whole(&mut self, column: usize) {
        self.whole[column] = true;
    }

    /// Gives a column another title.
    pub fn name_column(&mut self, column: usize, title: String) {
        self.titles[column] = Cow::Owned(title);
    }

    /// Adds a row of texts as they are.
    pub fn cells(&mut self, cells: impl IntoIterator<Item = String>) {
        self.rows.push(cells.into_iter().map(|cell| printable(&cell).into_owned()).collect());
    }

    /// Adds a row to a table whose rows have names.
    pub fn named_row<R>(&mut self, name: String, fields: &[&Field<R>], row: &R) {
        let values: Vec<Value> = fields.iter().map(|field| (field.get)(row)).collect();
        for (left, value) in self.left[1..].iter_mut().zip(&values) {
            *left |= value.is_text();
        }
        let name = printable(&name).into_owned();
        self.rows.push(std::iter::once(name).chain(values.iter().map(Value::cell)).collect());
    }

    /// Adds a row with a cell for each field.
    pub fn row<R>(&mut self, fields: &[&Field<R>], row: &R) {
        let values: Vec<Value> = fields.iter().map(|field| (field.get)(row)).collect();
        for (left, value) in self.left.iter_mut().zip(&values) {
            *left |= value.is_text();
        }
        self.rows.push(values.iter().map(Value::cell).collect());
    }

    /// Adds the row of what the others add up to, below a line. It is named in the first column.
    pub fn total<R>(&mut self, fields: &[&Field<R>], row: &R, name: &str) {
        self.rule();
        let mut cells: Vec<String> = fields.iter().map(|field| (field.get)(row).cell()).collect();
        if let Some(first) = cells.first_mut() {
            name.clone_into(first);
        }
        self.rows.push(cells);
    }

    /// Draws a line before the next row.
    pub fn rule(&mut self) {
        self.rules.push(self.rows.len());
    }

    /// Prints it, two blanks from the edge.
    pub fn print(&self, out: &mut Sheet<'_>) -> io::Result<()> {
        self.print_within(out.width(), out)
    }

    fn print_within(&self, page: usize, out: &mut Sheet<'_>) -> io::Result<()> {
        let width = |at: usize| {
            let cells = self.rows.iter().map(|row| row[at].as_str());
            cells.chain([&*self.titles[at]]).map(|cell| cell.chars().count()).max().unwrap_or(0)
        };
        let mut widths: Vec<usize> = (0..self.titles.len()).map(width).collect();
        let mut columns: Vec<usize> = (0..self.titles.len()).collect();
        if !self.shorten(&columns, &mut widths, page) {
            columns.retain(|column| !self.dispensable[*column]);
            self.shorten(&columns, &mut widths, page);
        }
        for (at, part) in parts(&columns, &widths, page).into_iter().enumerate() {
            if at > 0 {
                writeln!(out)?;
            }
            let key = if at > 0 { columns.first().copied() } else { None };
            let shown: Vec<usize> = key.into_iter().chain(columns[part].iter().copied()).collect();
            self.print_columns(&shown, &widths, out)?;
        }
        Ok(())
    }

    /// Takes from the names what a page lacks, the longest first; tells whether that was enough. If not, all are as short
    /// as they may become.
    fn shorten(&self, columns: &[usize], widths: &mut [usize], page: usize) -> bool {
        let shortest = if self.long_names { SHORTEST.max(page.saturating_mul(5) / 8) } else { SHORTEST };
        let needed = |widths: &[usize]| columns.iter().map(|column| widths[*column] + GAP).sum::<usize>();
        while needed(widths) > page {
            let is_name = |column: &&usize| self.left[**column] && !self.dispensable[**column] && !self.whole[**column];
            let names = columns.iter().filter(is_name);
            match names.max_by_key(|column| widths[**column]) {
                Some(longest) if widths[*longest] > shortest => widths[*longest] -= 1,
                _ => return false,
            }
        }
        true
    }

    fn print_columns(&self, columns: &[usize], widths: &[usize], out: &mut Sheet<'_>) -> io::Result<()> {
        let laid_out = |cells: &dyn Fn(usize) -> String| {
            let mut laid_out: Vec<(usize, String)> = Vec::new();
            for column in columns {
                let cell = shortened(cells(*column), widths[*column]);
                let pad = " ".repeat(widths[*column] - cell.chars().count());
                let (before, after) = if self.left[*column] { ("", &*pad) } else { (&*pad, "") };
                laid_out.push((*column, format!("{}{before}{cell}{after}", " ".repeat(GAP))));
            }
            // Nothing but what stands in the last cells ends a line.
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
            laid_out(&|column| self.titles[column].to_string()).into_iter().map(|(_, cell)| cell).collect();
        let (blank, titles) = titles.split_at(titles.len() - titles.trim_start().len());
        write!(out, "{blank}")?;
        out.paint(Some(Style::Heading), titles)?;
        writeln!(out)?;
        let whole: usize = columns.iter().map(|column| widths[*column] + GAP).sum();
        let rule = format!("  {}", "\u{2500}".repeat(whole.saturating_sub(GAP)));
        writeln!(out, "{rule}")?;
        for (at, row) in self.rows.iter().enumerate() {
            if self.rules.contains(&at) && at > 0 {
                writeln!(out, "{rule}")?;
            }
            for (column, cell) in laid_out(&|column| row[column].clone()) {
                if self.verdicts.contains(&column) { out.mark(&cell)? } else { write!(out, "{cell}")? }
            }
            writeln!(out)?;
        }
        Ok(())
    }
}

/// Cuts columns into parts that fit the page; from the second on there must be room for the first column as well. A column
/// that is wider than the page is a part of its own.
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
        table.print_within(page, &mut Sheet::new(&mut out, Form::default())).unwrap();
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
        // Each part says whose figures they are.
        assert_eq!(text.matches("kworker:page_\u{2026}").count(), 2, "{text}");
        assert!(text.contains("\n\n"));
    }

    /// Of the same fields, with a name in front and a word at the end.
    fn printed_with_names(page: usize, row: [i64; 4]) -> String {
        let word = &field!("word", "difference", |_| "too little data");
        let fields: Vec<&Field<[i64; 4]>> = FIELDS[2..].iter().copied().chain([word]).collect();
        let mut table = Table::named("figure", &fields);
        table.named_row("the longest in 312ms".to_owned(), &fields, &row);
        let mut out = Vec::new();
        table.print_within(page, &mut Sheet::new(&mut out, Form::default())).unwrap();
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
            table.print_within(page, &mut Sheet::new(&mut out, Form::default())).unwrap();
            let text = String::from_utf8(out).unwrap();
            assert_eq!(text.contains("futex wake, other CPU: until it runs"), whole, "{text}");
            assert_eq!(text.matches("2.50us").count(), 3, "{text}");
            assert!(text.lines().all(|line| line.chars().count() <= page), "{text}");
        }
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
