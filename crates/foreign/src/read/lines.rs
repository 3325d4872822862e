//! The lines of a text with their numbers for errors, progress while they are read, and warnings about how the text ended.

use becalm_model::node::Warning;
use becalm_model::warning;

use super::ReadError;
use super::recognize::format_from_line;

/// Bytes between two reports of progress.
const STEP: usize = 1 << 16;

/// Gets the number of bytes read, every 64 KiB and at the end.
pub type Progress<'a> = &'a mut dyn FnMut(u64);

/// The lines of a text without surrounding white space; empty ones are left out.
pub(super) struct Lines<'a, 'p> {
    rest: &'a str,
    line: usize,
    /// The last line that was returned.
    content: &'a str,
    /// Bytes that were read and not reported yet.
    untold: usize,
    progress: Progress<'p>,
    /// Whether the last line has a line end, as every program writes.
    is_terminated: bool,
    /// Lines that were left out because the format has none like them.
    left_out: Option<SkippedLines>,
}

#[derive(Clone, Copy)]
struct SkippedLines {
    count: u64,
    first: usize,
}

/// How the end of a file shows that it is complete.
pub(super) enum End {
    /// By the last output of its program.
    Marked,
    /// That output is missing, so this is unknown.
    Missing(String),
    /// Not at all.
    Unmarked,
}

impl<'a, 'p> Lines<'a, 'p> {
    pub fn new(text: &'a str, progress: Progress<'p>) -> Self {
        let is_terminated = text.is_empty() || text.ends_with('\n');
        Self { rest: text, line: 0, content: "", untold: 0, progress, is_terminated, left_out: None }
    }

    /// An error of the last line that was returned, or of the end after it.
    pub fn error(&self, why: impl Into<String>) -> ReadError {
        ReadError::line(self.line.max(1), why)
    }

    /// Refuses the last line that was returned, because it starts a second report. One of the two would be dropped, or both mixed.
    pub fn second_report(&self) -> ReadError {
        ReadError::second_report(self.line)
    }

    /// Leaves out the last line that was returned. Fails if it starts a report of another program.
    pub fn leave_out(&mut self) -> Result<(), ReadError> {
        if format_from_line(self.content).is_some() {
            return Err(self.second_report());
        }
        self.left_out.get_or_insert(SkippedLines { count: 0, first: self.line }).count += 1;
        Ok(())
    }

    /// Warnings about the lines, once all of them were read.
    pub fn warnings(&self, end: End) -> Vec<Warning> {
        let end = match end {
            End::Missing(what) => Some(warning::imported_cut(&what)),
            _ if !self.is_terminated => Some(warning::imported_cut("its last line has no end")),
            End::Unmarked => Some(warning::imported_end_unknown()),
            End::Marked => None,
        };
        end.into_iter()
            .chain(self.left_out.map(|skipped| warning::imported_lines_left_out(skipped.count, skipped.first)))
            .collect()
    }
}

impl<'a> Iterator for Lines<'a, '_> {
    type Item = &'a str;

    fn next(&mut self) -> Option<&'a str> {
        while !self.rest.is_empty() {
            let (line, rest) = self.rest.split_once('\n').unwrap_or((self.rest, ""));
            self.untold += self.rest.len() - rest.len();
            self.rest = rest;
            self.line += 1;
            if self.untold >= STEP {
                (self.progress)(self.untold as u64);
                self.untold = 0;
            }
            self.content = line.trim();
            if !self.content.is_empty() {
                return Some(self.content);
            }
        }
        (self.progress)(self.untold as u64);
        self.untold = 0;
        None
    }
}

pub(super) fn text(bytes: &[u8]) -> Result<&str, ReadError> {
    std::str::from_utf8(bytes).map_err(|error| ReadError::byte(error.valid_up_to(), "it is no text in UTF-8"))
}

/// True if a line starts with a number, like a row of a table.
pub(super) fn is_row(line: &str) -> bool {
    line.starts_with(|sign: char| sign.is_ascii_digit())
}
