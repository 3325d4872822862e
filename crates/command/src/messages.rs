//! Messages to the user on standard error, and the width of them and of results.

use std::env;
use std::ffi::OsStr;
use std::fmt;
use std::io::{self, Write};

use becalm_linux::terminal;
use becalm_units::fault::{self, Param};
use becalm_units::printable;

use crate::{color, looks};

/// Prints a message. Ignores write errors (standard error closed, disk full): the exit code is still right.
pub fn say(message: fmt::Arguments<'_>) {
    write(message, BOLD);
}

/// Prints an error in the same way.
pub fn say_error(message: fmt::Arguments<'_>) {
    write(message, RED);
}

/// The style of the name before a message, with colors.
const BOLD: &str = "1";
const RED: &str = "1;31";

fn write(message: fmt::Arguments<'_>, style: &str) {
    let mut stream = io::stderr();
    let style = color::has_color(&stream).then_some(style);
    let _ = writeln!(stream, "{}", line_of(message, style));
}

/// A message as one line with control characters removed, except for the style of the name: it may contain foreign names.
fn line_of(message: fmt::Arguments<'_>, style: Option<&str>) -> String {
    let name = style.map_or_else(|| "becalm:".to_owned(), |style| format!("\u{1b}[{style}mbecalm:\u{1b}[0m"));
    format!("{name} {}", printable(&message.to_string()))
}

/// The width of results: the requested one, else `COLUMNS`, else that of the terminal; `None` without a terminal.
pub fn page_width() -> Option<usize> {
    if let Some(width) = looks::width() {
        return Some(width);
    }
    let said = env::var("COLUMNS").ok().and_then(|columns| columns.trim().parse().ok()).filter(|columns| *columns > 0);
    said.or_else(|| terminal::size(io::stdout()).columns.map(usize::from))
}

/// Whether the terminal cannot place its cursor, so nothing can be drawn.
pub fn terminal_is_dumb() -> bool {
    is_dumb(env::var_os("TERM").as_deref())
}

fn is_dumb(term: Option<&OsStr>) -> bool {
    term.is_none_or(|term| term.is_empty() || term == "dumb")
}

/// An error as one line: context first, hint last. The text of an error includes its cause, which therefore is not its `source`.
pub fn error_line(error: &fault::Error) -> String {
    error.message(option)
}

/// A parameter as an option. Parameters with another name in libraries are listed.
pub fn option(param: Param<'_>) -> String {
    let name = match param.name {
        "cpus_before" => "cpus_a",
        "cpus_after" => "cpus_b",
        "node_before" => "node_a",
        "node_after" => "node_b",
        "job" => "phases",
        name => name,
    };
    fault::option(Param { name, ..param })
}

#[cfg(test)]
mod tests {
    use becalm_analyze::compare::CompareError;
    use becalm_analyze::noise::NoiseError;
    use becalm_analyze::summary::SummaryError;
    use becalm_bundle::{BundleError, Contents};
    use becalm_inject::InjectError;
    use becalm_inject::program::ProgramError;
    use becalm_linux::file::FileError;
    use becalm_measure::{CpuError, RecordError};
    use becalm_tune::PlanError;

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
            fault::Error::from(io::Error::other("it\nbecalm: FAKE")).context("cannot read node=e\u{1b}[2J.json");
        let line = line_of(format_args!("{}", error_line(&error)), None);
        let text = "cannot read node=e\u{fffd}[2J.json: it\u{fffd}becalm: FAKE";
        assert_eq!(line, format!("becalm: {text}"));
        let line = line_of(format_args!("{}", error_line(&error)), Some(RED));
        assert_eq!(line, format!("\u{1b}[1;31mbecalm:\u{1b}[0m {text}"));
    }

    #[test]
    fn a_cause_is_said_once() {
        let gone = || io::Error::other("it is gone");
        let error = FileError::Read { what: "the count", path: "x".into(), source: gone() };
        let error = fault::Error::from(error).context("nothing was done");
        assert_eq!(error_line(&error), "nothing was done: cannot read the count from x: it is gone");
        let plain = fault::Error::from(gone()).context("cannot read x");
        assert_eq!(error_line(&plain), "cannot read x: it is gone");
    }

    /// What follows the text of an error.
    fn hint(error: impl Into<fault::Error>) -> String {
        let error = error.into();
        let (text, message) = (error.text(option), error_line(&error));
        message.strip_prefix(&text).expect("the text comes first").to_owned()
    }

    #[test]
    fn an_option_is_named_once_also_where_the_error_is_within_another() {
        let several = || BundleError::SeveralNodes { bundle: "x".into(), nodes: "a, b".into() };
        let errors: [fault::Error; 5] = [
            several().into(),
            fault::Error::from(SummaryError::Bundle(several())).context("x"),
            CompareError::Run { path: "x".into(), cause: SummaryError::Bundle(several()) }.into(),
            NoiseError::Selection(several().into()).into(),
            RecordError::Sink(several()).into(),
        ];
        for error in errors {
            assert!(error_line(&error).ends_with("x holds the nodes a, b; choose one with --node"), "{error}");
        }
        assert_eq!(hint(CpuError::Empty), ", like --cpus 1");
        assert_eq!(hint(RecordError::<BundleError>::from(CpuError::Empty)), ", like --cpus 1");
        assert_eq!(hint(fault::Error::new("something else")), "");
    }

    #[test]
    fn hints_name_the_options_of_the_command_line() {
        let contents = |found| BundleError::Contents { bundle: "x".into(), found, wanted: Contents::Recording };
        assert_eq!(hint(contents(Contents::Summary)), "; record without --summary for this command");
        assert_eq!(hint(contents(Contents::Costs)), "; see it with becalm report");
        assert_eq!(hint(SummaryError::OwnTime { path: "x".into() }), "; leave --with-self out");
        let common =
            CompareError::NoCommonNode { a: "a".into(), nodes_a: "x".into(), b: "b".into(), nodes_b: "y".into() };
        assert_eq!(hint(common), " (--node-a, --node-b)");
        let linked = || ProgramError::Static { path: "/bin/x".into() };
        for error in [linked().into(), fault::Error::from(InjectError::Program(linked()))] {
            assert!(error.is_usage(), "{error}");
            assert_eq!(hint(error), "; noise by pre-emption, without --signal, reaches every program");
        }
        let none_left = |siblings: &str| PlanError::NoHousekeeping {
            online: "0-3".parse().unwrap(),
            cpus: "0-3".parse().unwrap(),
            siblings: siblings.parse().unwrap(),
        };
        assert_eq!(hint(none_left("2-3")), "; --skip smt leaves those online");
        assert_eq!(hint(none_left("")), "");
    }
}
