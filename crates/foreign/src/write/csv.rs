//! Comma-separated values, RFC 4180 but for line feeds alone: a line with the names of the columns, then a line for each row.

use std::io::{self, Write};

use becalm_units::printable;
use csv::{Terminator, Writer, WriterBuilder};

use super::table::Column;

/// A table that is being written.
pub struct CsvTable<W: Write> {
    out: Writer<W>,
}

impl<W: Write> CsvTable<W> {
    /// Begins a table with these columns.
    ///
    /// # Errors
    /// If `out` cannot be written.
    pub fn begin(out: W, names: &[&str]) -> io::Result<Self> {
        let mut out = WriterBuilder::new().terminator(Terminator::Any(b'\n')).from_writer(out);
        out.write_record(names).map_err(io::Error::from)?;
        Ok(Self { out })
    }

    /// Adds rows: their columns in the order of the names. In texts, control characters are replaced.
    ///
    /// # Errors
    /// If `out` cannot be written.
    pub fn rows(&mut self, columns: &[Column<'_>]) -> io::Result<()> {
        let rows = columns.first().map_or(0, Column::len);
        let mut number = String::new();
        for row in 0..rows {
            for column in columns {
                use std::fmt::Write as _;
                number.clear();
                let wrote = match column {
                    Column::Int32(values) => write!(number, "{}", values[row]),
                    Column::Int64(values) => write!(number, "{}", values[row]),
                    Column::Flag(values) => write!(number, "{}", values[row]),
                    Column::Text(values) => {
                        self.out.write_field(printable(values[row]).as_bytes()).map_err(io::Error::from)?;
                        continue;
                    }
                };
                debug_assert!(wrote.is_ok(), "a string takes everything");
                self.out.write_field(&number).map_err(io::Error::from)?;
            }
            self.out.write_record(None::<&[u8]>).map_err(io::Error::from)?;
        }
        Ok(())
    }

    /// Ends the table.
    ///
    /// # Errors
    /// If `out` cannot be written.
    pub fn end(mut self) -> io::Result<()> {
        self.out.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAMES: [&str; 4] = ["cpu", "start_ns", "incomplete", "source"];

    fn written(texts: &[&str]) -> String {
        let mut out = Vec::new();
        let mut table = CsvTable::begin(&mut out, &NAMES).unwrap();
        let rows = texts.len();
        let columns = [
            Column::Int32(vec![3; rows]),
            Column::Int64(vec![-5; rows]),
            Column::Flag(vec![true; rows]),
            Column::Text(texts.to_vec()),
        ];
        table.rows(&columns).unwrap();
        table.end().unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn rows_are_lines() {
        assert_eq!(written(&[]), "cpu,start_ns,incomplete,source\n");
        assert_eq!(written(&["timer", ""]), "cpu,start_ns,incomplete,source\n3,-5,true,timer\n3,-5,true,\n");
    }

    #[test]
    fn what_would_break_a_line_is_quoted_or_replaced() {
        let lines = written(&["a,b", "say \"x\"", "\u{1b}[2J\r\nq", "=1+1"]);
        let expected = ["\"a,b\"", "\"say \"\"x\"\"\"", "\u{fffd}[2J\u{fffd}\u{fffd}q", "=1+1"];
        for (line, text) in lines.lines().skip(1).zip(expected) {
            assert_eq!(line, format!("3,-5,true,{text}"));
        }
        assert_eq!(lines.lines().count(), 5);
    }
}
