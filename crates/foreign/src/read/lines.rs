//! The lines of a text with their numbers, for errors and for who watches how far the reading is; and what must be known of how a text ended.

use becalm_model::node::Warning;
use becalm_model::warning;

use super::ReadError;
use super::recognize::format_from_line;

/// After so many bytes progress is told.
const STEP: usize = 1 << 16;

/// Is told of every 64 KiB that were read, and of what is left at the end.
pub type Progress<'a> = &'a mut dyn FnMut(u64);

/// The lines of a text without white space around them; empty ones are left out.
pub(super) struct Lines<'a, 'p> {
    rest: &'a str,
    line: usize,
    /// The line that was given last.
    content: &'a str,
    /// Bytes that were read and not told yet.
    untold: usize,
    progress: Progress<'p>,
    /// Whether the last line has a line end, as that of every program has.
    is_terminated: bool,
    /// Lines that were left out because they are none of the format's.
    left_out: Option<SkippedLines>,
}

#[derive(Clone, Copy)]
struct SkippedLines {
    count: u64,
    /// The number of the first one.
    first: usize,
}

/// How it shows that all of a file is there.
pub(super) enum End {
    /// By what its program writes last.
    Marked,
    /// That is missing: this is not known.
    Missing(String),
    /// By nothing.
    Unmarked,
}

impl<'a, 'p> Lines<'a, 'p> {
    pub fn new(text: &'a str, progress: Progress<'p>) -> Self {
        let is_terminated = text.is_empty() || text.ends_with('\n');
        Self { rest: text, line: 0, content: "", untold: 0, progress, is_terminated, left_out: None }
    }

    /// An error of the line that was given last, or of the end after it.
    pub fn error(&self, why: impl Into<String>) -> ReadError {
        ReadError::line(self.line.max(1), why)
    }

    /// Refuses the line that was given last, with which a second report starts. One of the two would be dropped, or both mixed.
    pub fn second_report(&self) -> ReadError {
        ReadError::second_report(self.line)
    }

    /// Leaves out the line that was given last. Fails if a report of another program starts with it.
    pub fn leave_out(&mut self) -> Result<(), ReadError> {
        if format_from_line(self.content).is_some() {
            return Err(self.second_report());
        }
        self.left_out.get_or_insert(SkippedLines { count: 0, first: self.line }).count += 1;
        Ok(())
    }

    /// What must be known of the lines, after all of them.
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

/// Whether a line begins as a row of a table does: with a number.
pub(super) fn is_row(line: &str) -> bool {
    line.starts_with(|sign: char| sign.is_ascii_digit())
}
