//! A sheet to write on: its destination, its width, and how much of the text is wanted.

use std::io::{self, Write};

use becalm_units::printable_lines;

/// The smallest width of a layout, in characters; a narrower terminal cuts or wraps it.
const NARROWEST: usize = 40;

/// The layout of a text.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Form {
    width: usize,
    all: bool,
    color: bool,
}

impl Default for Form {
    /// Natural width, the most important rows, no colors.
    fn default() -> Self {
        Self { width: usize::MAX, all: false, color: false }
    }
}

impl Form {
    /// At most as wide as a terminal of `columns` characters, but at least 40; natural width without a terminal.
    pub fn within(columns: Option<usize>) -> Self {
        Self { width: columns.map_or(usize::MAX, |columns| columns.max(NARROWEST)), ..Self::default() }
    }

    /// The largest length of a line, in characters.
    #[must_use]
    pub const fn width(self) -> usize {
        self.width
    }

    /// Whether all rows are wanted, not only the most important ones.
    #[must_use]
    pub const fn all(self) -> bool {
        self.all
    }

    /// Includes all rows if `all`.
    #[must_use]
    pub const fn with_all(self, all: bool) -> Self {
        Self { all, ..self }
    }

    /// Enables colors if `color`.
    #[must_use]
    pub const fn with_color(self, color: bool) -> Self {
        Self { color, ..self }
    }
}

/// A highlight, shown with colors.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Style {
    /// The title of a part or of a column.
    Heading,
    /// All is well.
    Good,
    /// Needs attention.
    Doubtful,
    /// Something is wrong.
    Bad,
}

impl Style {
    /// The style of a mark or a verdict.
    pub fn for_word(word: &str) -> Option<Self> {
        Some(match word {
            "yes" | "ok" | "fine" | "holds" | "QUIET" => Self::Good,
            "!" | "UNKNOWN" | "in part" | "look" | "warning" | "not enough data" => Self::Doubtful,
            "no" | "not ok" | "error" | "exceeded" | "NOISY" => Self::Bad,
            _ => return None,
        })
    }

    const fn code(self) -> &'static str {
        match self {
            Self::Heading => "1",
            Self::Good => "32",
            Self::Doubtful => "33",
            Self::Bad => "1;31",
        }
    }
}

/// A destination of text with its layout.
pub struct Sheet<'a> {
    to: &'a mut dyn Write,
    form: Form,
}

impl<'a> Sheet<'a> {
    /// A sheet that writes to `to`.
    pub fn new(to: &'a mut dyn Write, form: Form) -> Self {
        Self { to, form }
    }

    /// Its layout.
    pub const fn form(&self) -> Form {
        self.form
    }

    /// The largest length of a line, in characters.
    pub const fn width(&self) -> usize {
        self.form.width
    }

    /// Writes a word in a style, if there are colors.
    pub fn paint(&mut self, style: Option<Style>, text: &str) -> io::Result<()> {
        let Some(style) = style.filter(|_| self.form.color) else { return self.write_all(text.as_bytes()) };
        write!(self.to, "\u{1b}[{}m", style.code())?;
        self.write_all(text.as_bytes())?;
        self.to.write_all(b"\x1b[0m")
    }

    /// Writes the mark or verdict in `text`, which may have blanks around it, in its style.
    pub fn mark(&mut self, text: &str) -> io::Result<()> {
        let word = text.trim();
        let (before, rest) = text.split_at(text.len() - text.trim_start().len());
        write!(self, "{before}")?;
        self.paint(Style::for_word(word), word)?;
        write!(self, "{}", &rest[word.len()..])
    }

    /// Whether all rows are wanted, not only the most important ones.
    pub const fn all(&self) -> bool {
        self.form.all
    }
}

impl Write for Sheet<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // Callers make foreign names printable, line feeds included. This catches omissions.
        self.to.write_all(printable_lines(&String::from_utf8_lossy(bytes)).as_bytes())?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(color: bool, write: impl Fn(&mut Sheet<'_>) -> io::Result<()>) -> String {
        let mut out = Vec::new();
        write(&mut Sheet::new(&mut out, Form::default().with_color(color))).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn colors_add_nothing_but_themselves() {
        let marks =
            |out: &mut Sheet<'_>| ["  ! ", "exceeded  ", "  yes", "other"].iter().try_for_each(|text| out.mark(text));
        assert_eq!(written(false, marks), "  ! exceeded    yesother");
        assert_eq!(
            written(true, marks),
            "  \u{1b}[33m!\u{1b}[0m \u{1b}[1;31mexceeded\u{1b}[0m    \u{1b}[32myes\u{1b}[0mother"
        );
    }

    #[test]
    fn names_bring_no_colors_of_their_own() {
        let hostile = |out: &mut Sheet<'_>| out.paint(Some(Style::Heading), "a\u{1b}[31mb");
        assert_eq!(written(true, hostile), "\u{1b}[1ma\u{fffd}[31mb\u{1b}[0m");
    }
}
