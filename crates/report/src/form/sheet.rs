//! What a text is written on: where it goes, how wide it may become, and how much of it is asked for.

use std::io::{self, Write};

use becalm_units::printable_lines;

/// Texts are laid out no narrower than this, in characters; a narrower terminal cuts or wraps them.
const NARROWEST: usize = 40;

/// How a text is laid out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Form {
    width: usize,
    all: bool,
}

impl Default for Form {
    /// As wide as its author made it, with the most important rows.
    fn default() -> Self {
        Self { width: usize::MAX, all: false }
    }
}

impl Form {
    /// No wider than a terminal of `columns` characters, or than 40 where it has fewer; as wide as its author made it
    /// where there is no terminal.
    #[must_use]
    pub fn within(columns: Option<usize>) -> Self {
        Self { width: columns.map_or(usize::MAX, |columns| columns.max(NARROWEST)), ..Self::default() }
    }

    /// The same, with all rows instead of the most important ones if `all`.
    #[must_use]
    pub const fn with_all(self, all: bool) -> Self {
        Self { all, ..self }
    }
}

/// What a text is written on.
pub struct Sheet<'a> {
    to: &'a mut dyn Write,
    form: Form,
}

impl<'a> Sheet<'a> {
    /// A sheet whose text goes to `to`.
    pub fn new(to: &'a mut dyn Write, form: Form) -> Self {
        Self { to, form }
    }

    /// How many characters a line may have.
    pub(crate) const fn width(&self) -> usize {
        self.form.width
    }

    /// Whether all rows are asked for, not only the most important ones.
    pub(crate) const fn all(&self) -> bool {
        self.form.all
    }
}

impl Write for Sheet<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // Whoever puts a name of another's making into a line has made it printable, line feeds included. This is for what was
        // forgotten.
        self.to.write_all(printable_lines(&String::from_utf8_lossy(bytes)).as_bytes())?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
}
