//! The pager, for texts longer than the terminal: becalm's own setting, else `PAGER`, else `less`.
//!
//! A text is buffered until its command has ended, so the pager does not disturb a measurement. Without a terminal nothing is buffered.

use std::env;
use std::io::{self, IsTerminal, StdoutLock, Write};
use std::process::{Command, ExitStatus, Stdio};

use becalm_linux::placed::{ProgramStart, begin_in};
use becalm_linux::rights::Caller;
use becalm_linux::signals::KeysIgnored;
use becalm_linux::terminal::{self, TerminalSize};
use becalm_units::printable;

use crate::looks::{self, PagerChoice};
use crate::messages::{page_width, say, terminal_is_dumb};
use crate::output::UntilClosed;

/// Characters that require a shell, as in git.
const FOR_A_SHELL: &str = "|&;<>()$`\\\"'*?[#~=%";

/// Exit codes of a shell that could not start a program.
const NOT_STARTED: [i32; 2] = [126, 127];

/// When a command's text may go through a pager.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Paging {
    /// If it is long: the command only reads.
    Long,
    /// On request: the command measures or changes something, and prints one text at the end.
    Asked,
    /// Never: it prints continuously, or passes its output to another program.
    Never,
}

/// Standard output, with a buffer for the pager.
pub struct Shown<'a> {
    to: UntilClosed<StdoutLock<'a>>,
    held: Option<Vec<u8>>,
    choice: PagerChoice,
}

impl Shown<'_> {
    /// The output of a command whose text may go through a pager.
    pub fn new(paging: Paging) -> Self {
        let choice = looks::pager();
        let may = match paging {
            Paging::Long => choice.wanted != Some(false),
            Paging::Asked => choice.wanted == Some(true),
            Paging::Never => false,
        };
        let holds = may && io::stdout().is_terminal() && (choice.wanted == Some(true) || !terminal_is_dumb());
        Self { to: UntilClosed::new(io::stdout().lock()), held: holds.then(Vec::new), choice }
    }

    /// Shows the buffered text, and waits for the pager to end.
    pub fn finish(&mut self) -> io::Result<()> {
        let text = self.held.take().unwrap_or_default();
        if text.is_empty() || !self.page(&text) {
            self.to.write_all(&text)?;
        }
        self.to.flush()
    }

    /// Shows a text by the pager; returns whether that worked.
    fn page(&self, text: &[u8]) -> bool {
        if self.choice.wanted != Some(true) && fits(text, page_width(), terminal::size(io::stdout())) {
            return false;
        }
        let shared = env::var("PAGER").ok();
        let Some(program) = program(self.choice.program, shared.as_deref()) else { return false };
        let caller = Caller::for_this_process();
        if caller == Caller::Unknown {
            return false;
        }
        match run(program, text, &caller) {
            Ok(status) => !status.code().is_some_and(|code| NOT_STARTED.contains(&code)),
            Err(error) => {
                // `less` may be missing, but a named pager must work.
                if program != DEFAULT {
                    say(format_args!("cannot start the pager {}: {error}; the text follows", printable(program)));
                }
                false
            }
        }
    }
}

impl Write for Shown<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.held {
            Some(held) => held.write(bytes),
            None => self.to.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.held.is_some() { Ok(()) } else { self.to.flush() }
    }
}

/// Shows one text, such as a page of help.
pub fn show(text: &str) -> io::Result<()> {
    let mut shown = Shown::new(Paging::Long);
    shown.write_all(text.as_bytes())?;
    shown.finish()
}

/// The default pager.
const DEFAULT: &str = "less";

/// The named program, by becalm's own setting or the variable of all programs; `None` for no pager.
fn program<'a>(own: Option<&'a str>, shared: Option<&'a str>) -> Option<&'a str> {
    let named = own.or(shared).map_or(DEFAULT, str::trim);
    (!named.is_empty() && named != "cat").then_some(named)
}

/// Whether a text fits standard output without scrolling; always if that is no terminal.
pub fn fits_terminal(text: &str) -> bool {
    fits(text.as_bytes(), page_width(), terminal::size(io::stdout()))
}

fn fits(text: &[u8], width: Option<usize>, size: TerminalSize) -> bool {
    // Without a known height, page.
    let Some(rows) = size.rows else { return true };
    let columns = usize::from(size.columns.unwrap_or(80));
    let text = String::from_utf8_lossy(text);
    // Lines of the layout fit the width, and colors take no space; other lines wrap.
    let rows_of = |line: &str| {
        let seen = if line.contains('\u{1b}') {
            line.chars().count().min(width.unwrap_or(usize::MAX))
        } else {
            line.chars().count()
        };
        seen.div_ceil(columns).max(1)
    };
    text.lines().map(rows_of).sum::<usize>() < usize::from(rows)
}

/// Runs the pager as its caller, with this text as its input, until it ends. Meanwhile the pager handles the keys that end programs.
fn run(program: &str, text: &[u8], caller: &Caller) -> io::Result<ExitStatus> {
    let mut command = if program.contains(|c| FOR_A_SHELL.contains(c)) {
        let mut command = Command::new("sh");
        command.args(["-c", program]);
        command
    } else {
        let mut words = program.split_whitespace();
        let mut command = Command::new(words.next().unwrap_or(DEFAULT));
        command.args(words);
        command
    };
    // As in git: quit if all fits, show colors, leave the screen unchanged.
    for (variable, value) in [("LESS", "FRX"), ("LV", "-c")] {
        if env::var_os(variable).is_none() {
            command.env(variable, value);
        }
    }
    if let Caller::User(user) = caller {
        begin_in(&mut command, ProgramStart { user: Some(user), ..ProgramStart::default() }, None)?;
    }
    command.stdin(Stdio::piped());
    let (child, _keys) = KeysIgnored::begin(|| command.spawn());
    let mut child = child?;
    if let Some(mut pipe) = child.stdin.take() {
        // The user may quit early.
        let _ = pipe.write_all(text);
    }
    child.wait()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_own_setting_is_over_that_of_all_programs() {
        assert_eq!(program(Some("most"), Some("more")), Some("most"));
        assert_eq!(program(None, Some("more -s")), Some("more -s"));
        assert_eq!(program(None, None), Some("less"));
        for none in ["", " ", "cat"] {
            assert_eq!(program(Some(none), Some("more")), None);
            assert_eq!(program(None, Some(none)), None);
        }
    }

    #[test]
    fn what_fits_needs_no_pager() {
        let lines = |count: usize| "a line\n".repeat(count);
        let size = TerminalSize { columns: Some(80), rows: Some(24) };
        assert!(fits(lines(23).as_bytes(), Some(80), size));
        assert!(!fits(lines(24).as_bytes(), Some(80), size));
        assert!(!fits("x".repeat(80 * 24).as_bytes(), None, size), "one line that wraps");
        let colored = "\u{1b}[1mabcdef\u{1b}[0m\n".repeat(20);
        assert!(fits(colored.as_bytes(), Some(8), TerminalSize { columns: Some(8), ..size }));
        assert!(fits(lines(99).as_bytes(), Some(80), TerminalSize::default()));
        assert!(!fits(lines(24).as_bytes(), None, TerminalSize { columns: None, ..size }));
    }

    #[test]
    fn a_text_reaches_a_pager_that_may_leave_early() {
        let place = tempfile::tempdir().unwrap();
        let file = place.path().join("seen");
        let status = run(&format!("cat > '{}'", file.display()), b"text", &Caller::Itself).unwrap();
        assert!(status.success());
        assert_eq!(std::fs::read(&file).unwrap(), b"text");
        // Much more than a pipe holds.
        assert!(run("true", &vec![b'x'; 1 << 20], &Caller::Itself).unwrap().success());
        assert_eq!(run("no-such-pager | cat && exit 127", b"text", &Caller::Itself).unwrap().code(), Some(127));
        assert_eq!(run("no-such-pager -x", b"text", &Caller::Itself).unwrap_err().kind(), io::ErrorKind::NotFound);
    }
}
