//! The lines of a text with their numbers, for errors and for who watches how far the reading is.

use super::ReadError;

/// After so many bytes progress is told.
const STEP: usize = 1 << 16;

/// Is told of every 64 KiB that were read, and of what is left at the end.
pub type Progress<'a> = &'a mut dyn FnMut(u64);

/// The lines of a text without white space around them; empty ones are left out.
pub(super) struct Lines<'a, 'p> {
    rest: &'a str,
    line: usize,
    /// Bytes that were read and not told yet.
    untold: usize,
    progress: Progress<'p>,
}

impl<'a, 'p> Lines<'a, 'p> {
    pub fn new(text: &'a str, progress: Progress<'p>) -> Self {
        Self { rest: text, line: 0, untold: 0, progress }
    }

    /// An error of the line that was given last, or of the end after it.
    pub fn error(&self, why: impl Into<String>) -> ReadError {
        ReadError::line(self.line.max(1), why)
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
            let content = line.trim();
            if !content.is_empty() {
                return Some(content);
            }
        }
        (self.progress)(self.untold as u64);
        self.untold = 0;
        None
    }
}

/// The text that bytes hold.
pub(super) fn text(bytes: &[u8]) -> Result<&str, ReadError> {
    std::str::from_utf8(bytes).map_err(|error| ReadError::byte(error.valid_up_to(), "it is no text in UTF-8"))
}
