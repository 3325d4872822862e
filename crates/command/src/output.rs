//! Destinations of results: standard output as text or JSON, or a file as a page.

use std::io::{self, BufWriter, IntoInnerError, Write};
use std::path::{Path, PathBuf};

use becalm_analyze::summary::Detail;
use becalm_bundle::Draft;
use becalm_report::{Form, Report};
use becalm_units::fault::{self, Context};

use crate::color;
use crate::messages::{page_width, say};

/// The program and version in pages and other files.
pub const PROGRAM: &str = concat!("becalm ", env!("CARGO_PKG_VERSION"));

/// An output that may lose its reader (`becalm report RUN | head`): later output is dropped, and the command continues, so its exit code is
/// right.
#[derive(Debug)]
pub struct UntilClosed<W> {
    to: W,
    is_closed: bool,
}

impl<W: Write> UntilClosed<W> {
    /// Writes to `to` until it is closed.
    pub const fn new(to: W) -> Self {
        Self { to, is_closed: false }
    }

    /// Uses the output if it still has a reader; returns `dropped` otherwise.
    fn attempt<T>(&mut self, dropped: T, act: impl FnOnce(&mut W) -> io::Result<T>) -> io::Result<T> {
        if self.is_closed {
            return Ok(dropped);
        }
        match act(&mut self.to) {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {
                self.is_closed = true;
                Ok(dropped)
            }
            done => done,
        }
    }
}

impl<W: Write> Write for UntilClosed<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.attempt(bytes.len(), |to| to.write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.attempt((), Write::flush)
    }
}

/// The destination and format of a result.
pub enum Output {
    /// One JSON document on standard output, with everything.
    Json,
    /// A text on standard output.
    Text {
        /// Whether it shows all rows instead of the most important ones.
        all: bool,
    },
    /// Markdown on standard output.
    Markdown {
        /// Whether it shows all rows instead of the most important ones.
        all: bool,
    },
    /// A page in a file.
    Page {
        /// The file being written.
        draft: Draft,
        /// The name given by the user.
        file: PathBuf,
    },
}

impl Output {
    /// A page in `file`. Creates the file early, before anything is read or measured. Fails if it cannot be created.
    pub fn page(file: &Path) -> fault::Result<Self> {
        Ok(Self::Page { draft: Draft::replace(file)?, file: file.to_owned() })
    }

    /// The detail of a recording to show.
    #[must_use]
    pub const fn detail(&self) -> Detail {
        match self {
            Self::Text { all: false } | Self::Markdown { all: false } => Detail::Figures,
            _ => Detail::Everything,
        }
    }
}

/// Writes a result; texts are as wide as the terminal. Fails if `out` or the file cannot be written.
pub fn emit(report: &impl Report, output: Output, out: &mut dyn Write) -> fault::Result<()> {
    let form = |all| Form::within(page_width()).with_all(all).with_color(color::has_color(&io::stdout()));
    match output {
        Output::Json => Ok(becalm_report::print(report, true, form(true), out)?),
        Output::Text { all } => Ok(becalm_report::print(report, false, form(all), out)?),
        Output::Markdown { all } => {
            let text = becalm_report::markdown(report, all);
            let text = text.ok_or_else(|| fault::Error::new("this report cannot be Markdown"))?;
            Ok(out.write_all(text.as_bytes())?)
        }
        Output::Page { draft, file } => {
            let page =
                report.page(PROGRAM).ok_or_else(|| fault::Error::new("this report has no page for a browser"))?;
            let failed = || format!("cannot write {}", file.display());
            let mut out = BufWriter::new(draft);
            page.write(&mut out).with_context(failed)?;
            out.into_inner().map_err(IntoInnerError::into_error).with_context(failed)?.finish()?;
            say(format_args!("the page is {}", file.display()));
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_reader_that_left_is_no_error() {
        struct Failing(io::ErrorKind);
        impl Write for Failing {
            fn write(&mut self, _: &[u8]) -> io::Result<usize> {
                Err(self.0.into())
            }
            fn flush(&mut self) -> io::Result<()> {
                Err(self.0.into())
            }
        }
        let mut left = UntilClosed::new(Failing(io::ErrorKind::BrokenPipe));
        left.flush().unwrap();
        left.write_all(b"text").unwrap();
        assert!(left.is_closed);
        let mut full = UntilClosed::new(Failing(io::ErrorKind::StorageFull));
        assert!(full.write_all(b"text").is_err() && full.flush().is_err());
        let mut whole = UntilClosed::new(Vec::new());
        whole.write_all(b"text").unwrap();
        assert_eq!(whole.to, b"text");
    }
}
