//! Comma-separated values by RFC 4180, but with line feeds alone: a line with the column names, then a line for each row.

use std::io::{self, Write};

use becalm_units::printable;
use csv::{Terminator, Writer, WriterBuilder};

/// A value in a row.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Cell<'a> {
    /// A number.
    Number(i64),
    /// Yes or no.
    Flag(bool),
    /// A text.
    Text(&'a str),
}

/// A table being written.
pub struct CsvTable<W: Write> {
    out: Writer<W>,
}

impl<W: Write> CsvTable<W> {
    /// Starts a table with these columns.
    pub fn begin(out: W, names: &[&str]) -> io::Result<Self> {
        let mut out = WriterBuilder::new().terminator(Terminator::Any(b'\n')).from_writer(out);
        out.write_record(names).map_err(io::Error::from)?;
        Ok(Self { out })
    }

    /// Adds a row, its values in column order. Control characters in texts are replaced.
    pub fn row<'a>(&mut self, cells: impl IntoIterator<Item = Cell<'a>>) -> io::Result<()> {
        for cell in cells {
            let wrote = match cell {
                Cell::Number(number) => self.out.write_field(number.to_string()),
                Cell::Flag(flag) => self.out.write_field(flag.to_string()),
                Cell::Text(text) => self.out.write_field(printable(text).as_bytes()),
            };
            wrote.map_err(io::Error::from)?;
        }
        self.out.write_record(None::<&[u8]>).map_err(io::Error::from)
    }

    /// Ends the table.
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
        for text in texts {
            table.row([Cell::Number(3), Cell::Number(-5), Cell::Flag(true), Cell::Text(text)]).unwrap();
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
