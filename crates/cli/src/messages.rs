//! Messages to the user, on standard error; and how wide they and the results may be.

use std::env;
use std::ffi::OsStr;
use std::fmt;
use std::io::{self, IsTerminal, Write};

use becalm_units::printable;
use ratatui::crossterm::terminal;

use crate::hints;

/// Says something. Where nobody can be told (standard error is closed, or on a full disk) the work goes on, and the exit
/// code says how it went.
pub fn say(message: fmt::Arguments<'_>) {
    let _ = writeln!(io::stderr(), "{}", line_of(message));
}

/// A message as one line in which nothing steers the terminal: it may hold names that others chose.
fn line_of(message: fmt::Arguments<'_>) -> String {
    format!("becalm: {}", printable(&message.to_string()))
}

/// How wide results may be: what `COLUMNS` says, else the terminal that they go to; `None` if they go elsewhere, where
/// nobody knows.
pub fn page_width() -> Option<usize> {
    let said = env::var("COLUMNS").ok().and_then(|columns| columns.trim().parse().ok()).filter(|columns| *columns > 0);
    let terminal = || io::stdout().is_terminal().then(|| terminal::size().ok()).flatten();
    said.or_else(|| terminal().map(|(columns, _)| usize::from(columns)).filter(|columns| *columns > 0))
}

/// Whether the terminal cannot place its cursor, so that nothing can be drawn on it.
pub fn terminal_is_dumb() -> bool {
    is_dumb(env::var_os("TERM").as_deref())
}

fn is_dumb(term: Option<&OsStr>) -> bool {
    term.is_none_or(|term| term.is_empty() || term == "dumb")
}

/// An error, with the context in which it happened before it and what to do about it behind it, as one line. The text of an error is whole: it names its cause
/// where there is one, which therefore is no `source` of it.
pub fn of_error(error: &anyhow::Error) -> String {
    format!("{error:#}{}", hints::after(error))
}

#[cfg(test)]
mod tests {
    use becalm_linux::file::FileError;
    use becalm_measure::cost::tick::TickError;

    use super::*;

    #[test]
    fn a_terminal_that_says_nothing_of_itself_is_dumb() {
        for (term, dumb) in [(None, true), (Some(""), true), (Some("dumb"), true), (Some("xterm"), false)] {
            assert_eq!(is_dumb(term.map(OsStr::new)), dumb, "{term:?}");
        }
    }

    #[test]
    fn an_error_is_one_line_without_what_steers_a_terminal() {
        let error =
            anyhow::Error::from(io::Error::other("it\nbecalm: FAKE")).context("cannot read node=e\u{1b}[2J.json");
        let line = line_of(format_args!("{}", of_error(&error)));
        assert_eq!(line, "becalm: cannot read node=e\u{fffd}[2J.json: it\u{fffd}becalm: FAKE");
    }

    #[test]
    fn a_cause_is_said_once() {
        let gone = || io::Error::other("it is gone");
        let error = FileError::Read { what: "the count", path: "x".into(), source: gone() };
        let error = anyhow::Error::from(TickError::File(error)).context("nothing was done");
        assert_eq!(of_error(&error), "nothing was done: cannot read the count from x: it is gone");
        let plain = anyhow::Error::from(gone()).context("cannot read x");
        assert_eq!(of_error(&plain), "cannot read x: it is gone");
    }
}
