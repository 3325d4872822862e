//! Destinations of results: standard output as text or JSON, or a file as a page.

use std::io::{self, BufWriter, IntoInnerError, Write};
use std::os::unix::process::CommandExt;
use std::path::{self, Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use becalm_analyze::summary::Detail;
use becalm_bundle::Draft;
use becalm_linux::placed::{ProgramStart, begin_in};
use becalm_linux::rights::Caller;
use becalm_report::{Form, Report};
use becalm_units::fault::{self, Context};

use crate::color;
use crate::messages::{page_width, say};
use crate::pager;

/// The program and version in pages and other files.
pub const PROGRAM: &str = concat!("becalm ", env!("CARGO_PKG_VERSION"));

/// Opens a file in the user's preferred program.
const OPENER: &str = "xdg-open";
/// How often, and after which time each, becalm looks whether the opener failed.
const LOOKS: u32 = 20;
const BETWEEN_LOOKS: Duration = Duration::from_millis(50);

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
        /// Who opens it in a browser, as known before becalm gave up rights; `None` if it is only written.
        opens: Option<Caller>,
    },
}

impl Output {
    /// The same with all rows instead of the most important ones, if `all`.
    #[must_use]
    pub fn with_all(self, all: bool) -> Self {
        match self {
            Self::Text { .. } => Self::Text { all },
            Self::Markdown { .. } => Self::Markdown { all },
            other => other,
        }
    }

    /// A page in `file`. Creates the file early, before anything is read or measured. Fails if it cannot be created.
    pub fn page(file: &Path) -> fault::Result<Self> {
        Ok(Self::Page { draft: Draft::replace(file)?, file: file.to_owned(), opens: None })
    }

    /// The same, and a page is opened in the user's browser once it is written.
    #[must_use]
    pub fn opened(mut self) -> Self {
        if let Self::Page { opens, .. } = &mut self {
            *opens = Some(Caller::for_this_process());
        }
        self
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
        Output::Text { all } => {
            let text = becalm_report::text(report, form(all));
            out.write_all(text.as_bytes())?;
            // The first lines have scrolled off.
            if let Some(answer) = report.answer().filter(|_| !pager::fits_terminal(&text)) {
                writeln!(out, "\n{answer}")?;
            }
            Ok(())
        }
        Output::Markdown { all } => {
            let text = becalm_report::markdown(report, all);
            let text = text.ok_or_else(|| fault::Error::new("this report cannot be Markdown"))?;
            Ok(out.write_all(text.as_bytes())?)
        }
        Output::Page { draft, file, opens } => {
            let page =
                report.page(PROGRAM).ok_or_else(|| fault::Error::new("this report has no page for a browser"))?;
            let failed = || format!("cannot write {}", file.display());
            let mut out = BufWriter::new(draft);
            page.write(&mut out).with_context(failed)?;
            out.into_inner().map_err(IntoInnerError::into_error).with_context(failed)?.finish()?;
            say(format_args!("the page is {}", file.display()));
            if let Some(Err(error)) = opens.map(|caller| open(&file, &caller)) {
                say(format_args!("the page was not opened: {error}. Open {} in a browser.", file.display()));
            }
            Ok(())
        }
    }
}

/// Opens a page in the browser of this caller, and does not wait for it to end.
fn open(file: &Path, caller: &Caller) -> io::Result<()> {
    let mut command = Command::new(OPENER);
    command.arg(path::absolute(file)?).process_group(0);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    match (Caller::for_this_process(), caller) {
        (Caller::Unknown, _) => return Err(io::Error::other("becalm cannot become the user who called it")),
        (Caller::User(user), _) => {
            begin_in(&mut command, ProgramStart { user: Some(&user), ..ProgramStart::default() }, None)?;
        }
        // It has become that user meanwhile.
        (Caller::Itself, Caller::User(user)) => user.equip(&mut command),
        (Caller::Itself, _) => {}
    }
    let mut child = command.spawn().map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => io::Error::other(format!("{OPENER} is not installed")),
        _ => error,
    })?;
    // Some browsers keep it running; failures come at once.
    for _ in 0..LOOKS {
        match child.try_wait()? {
            Some(status) if status.success() => return Ok(()),
            Some(status) => return Err(io::Error::other(format!("{OPENER} failed ({status})"))),
            None => thread::sleep(BETWEEN_LOOKS),
        }
    }
    Ok(())
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
