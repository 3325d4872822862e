//! Why a file is not in its format.

use std::fmt;

use becalm_units::fault::{Fault, Wording};

/// An error in a file, with its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadError {
    /// The place.
    pub place: Place,
    /// The reason.
    pub why: String,
    /// The fix, if a parameter helps.
    pub fix: Option<Wording>,
}

impl Fault for ReadError {
    fn hint(&self) -> Option<Wording> {
        self.fix.clone()
    }
}

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
    /// An error of the file as a whole.
    pub fn new(why: impl Into<String>) -> Self {
        Self { place: Place::All, why: why.into(), fix: None }
    }

    /// An error of a line, counted from 1.
    pub fn line(line: usize, why: impl Into<String>) -> Self {
        Self { place: Place::Line(line), ..Self::new(why) }
    }

    /// The error for the line that starts a second report: becalm would drop one of the two, or mix them.
    pub fn second_report(line: usize) -> Self {
        Self::line(line, "a second report starts here").with_fix(
            ": save each report to its own file, and import each one as its own run ({output}) or node ({node})",
        )
    }

    /// The same with a parameter that helps: the template of a [`Wording`].
    #[must_use]
    pub fn with_fix(self, template: &'static str) -> Self {
        Self { fix: Some(Wording::new(template)), ..self }
    }

    /// An error at a byte, counted from 0.
    pub fn byte(offset: usize, why: impl Into<String>) -> Self {
        Self { place: Place::Byte(offset), ..Self::new(why) }
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
