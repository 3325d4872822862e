//! Comma-separated values by RFC 4180, but with line feeds alone: a line with the column names, then a line for each row.

use std::io::{self, Write};

use csv::{Terminator, Writer, WriterBuilder};
use serde::Serialize;

/// A table being written.
pub struct CsvTable<W: Write>(Writer<W>);

impl<W: Write> CsvTable<W> {
    /// Starts a table with these columns.
    pub fn begin(out: W, names: &[&str]) -> io::Result<Self> {
        let builder = &mut WriterBuilder::new();
        let mut out = builder.has_headers(false).terminator(Terminator::Any(b'\n')).from_writer(out);
        out.write_record(names).map_err(io::Error::from)?;
        Ok(Self(out))
    }

    /// Adds a row, its values in column order.
    pub fn row(&mut self, values: impl Serialize) -> io::Result<()> {
        self.0.serialize(values).map_err(io::Error::from)
    }

    pub fn end(mut self) -> io::Result<()> {
        self.0.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use becalm_units::printable;

    const NAMES: [&str; 4] = ["cpu", "start_ns", "incomplete", "source"];

    fn written(texts: &[&str]) -> String {
        let mut out = Vec::new();
        let mut table = CsvTable::begin(&mut out, &NAMES).unwrap();
        for text in texts {
            table.row((3, -5, true, printable(text))).unwrap();
        }
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
