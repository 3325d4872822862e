//! Why a file is not in its format.

use std::fmt;

/// What is wrong with a file, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadError {
    /// Where that is.
    pub place: Place,
    /// What is wrong there.
    pub why: String,
}

becalm_units::fault::faultless!(ReadError);

/// A place in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// The file as a whole.
    All,
    /// A line of it, counted from 1.
    Line(usize),
    /// A byte of it, counted from 0.
    Byte(usize),
}

impl ReadError {
    /// Of the file as a whole.
    pub fn new(why: impl Into<String>) -> Self {
        Self { place: Place::All, why: why.into() }
    }

    /// Of a line, counted from 1.
    pub fn line(line: usize, why: impl Into<String>) -> Self {
        Self { place: Place::Line(line), why: why.into() }
    }

    /// The error for the line that starts a second report: becalm would drop one of the two, or mix them.
    pub fn second_report(line: usize) -> Self {
        Self::line(
            line,
            "a second report starts here: save each report to its own file, and import each one as its own run (--output) or node (--node)",
        )
    }

    /// Of a byte, counted from 0.
    pub fn byte(offset: usize, why: impl Into<String>) -> Self {
        Self { place: Place::Byte(offset), why: why.into() }
    }
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.place {
            Place::All => f.write_str(&self.why),
            Place::Line(line) => write!(f, "line {line}: {}", self.why),
            Place::Byte(offset) => write!(f, "byte {offset}: {}", self.why),
        }
    }
}

impl std::error::Error for ReadError {}
