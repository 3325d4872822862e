//! The `becalm` binary: arguments in, calls out.

#![forbid(unsafe_code)]
// Without a command, some of what commands share is not used.
#![cfg_attr(not(feature = "full"), allow(dead_code, unused_imports))]

mod arguments;
mod child;
mod color;
mod commands;
mod discretion;
mod exit;
mod hints;
mod last_error;
mod looks;
mod measuring;
mod messages;
mod noise;
mod output;
mod pager;
mod progress;
mod reader;
mod recording;
mod rights;
mod settings;
mod usage;
mod voice;

use std::env;
use std::ffi::OsString;
use std::panic;
use std::process::ExitCode;

use becalm_linux::{janitor, limits};
use clap::error::ErrorKind;
use clap::{CommandFactory, FromArgMatches, Parser};

use commands::{Command, Task, audit};
use exit::Exit;
use pager::Shown;
use settings::{Asked, PlaceState, Settings};

/// Finds, explains and predicts the noise that an operating system makes: the time that a thread loses although it owns
/// its CPU.
///
/// Without a command, says what can be seen on this machine and what to run first.
#[derive(Parser, Debug)]
#[command(version, max_term_width = 100)]
struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,

    /// Print the audit as one JSON document on standard output
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    looks: looks::LooksArgs,
}

fn main() -> ExitCode {
    // What needs much of the stack is in functions of its own, so that a small one is said before it is used.
    match limits::check_stack() {
        Ok(()) => run(),
        Err(error) => {
            messages::say(format_args!("{error}"));
            Exit::Failed.into()
        }
    }
}

/// The command line as the parser knows it.
fn command_line() -> clap::Command {
    settings::with_opposites(Arguments::command())
}

#[inline(never)]
fn run() -> ExitCode {
    let arguments = match understand(&env::args_os().collect::<Vec<_>>()) {
        Ok(arguments) => arguments,
        Err(exit) => return exit,
    };
    looks::choose(&arguments.looks);
    limits::report_file_size();
    report_panics();
    let task: Box<dyn Task> =
        arguments.command.map_or_else(|| Box::new(audit::Audit { json: arguments.json }) as _, Command::task);
    let mut out = Shown::new(task.paging());
    // A service whose messages nothing reads must end all the same. At a terminal, errors wait until it goes on.
    let say_error = if task.is_service() {
        voice::say_last_error
    } else {
        |text: &str| messages::say_error(format_args!("{text}"))
    };
    let result = task.rights().keep().map_err(anyhow::Error::from).and_then(|()| task.run(&mut out));
    // What is left in the buffer belongs to the output: a full disk must not pass for success.
    let result = result.and_then(|exit| Ok(out.finish().map(|()| exit)?));
    let stuck = janitor::unfinished();
    for janitor in &stuck {
        say_error(&format!("becalm's trace in the kernel may still be there, since it is removed by {janitor}"));
    }
    match result {
        Ok(Exit::Done) if !stuck.is_empty() => Exit::Failed.into(),
        Ok(exit) => exit.into(),
        Err(error) => {
            let (text, exit) = (messages::of_error(&error), exit::of_error(&error));
            say_error(&text);
            if exit == Exit::Failed {
                last_error::keep(&text);
            }
            exit.into()
        }
    }
}

/// Has a panic reported, and kept as an error that becalm ended with.
fn report_panics() {
    let report = panic::take_hook();
    panic::set_hook(Box::new(move |panic| {
        // That is said as an error of the file.
        if !becalm_bundle::is_decoding() {
            report(panic);
            last_error::keep(&panic.to_string());
        }
    }));
}

/// What a command line asks for, with the defaults below it. What cannot be understood is said here.
fn understand(words: &[OsString]) -> Result<Arguments, ExitCode> {
    let root = command_line();
    let is_off = || words.iter().take_while(|word| *word != "--").any(|word| word == "--no-config");
    let settings = if settings::are_off() || is_off() { Ok(Settings::default()) } else { Settings::read(&root) };
    looks::choose_early(words, |option| settings.as_ref().ok()?.of_all(option));
    let matches = settings.map_err(Asked::Settings).and_then(|settings| {
        for place in &settings.places {
            if let PlaceState::Refused(why) = &place.state {
                messages::say(format_args!("the settings in {} are not read: {why}", place.shown()));
            }
        }
        settings::ask(&root, &settings, words)
    });
    let matches = matches.or_else(|error| match error {
        Asked::Line(error) => Err(usage::explain(error)),
        // Help, and what says what is wrong with the defaults, come without them.
        Asked::Settings(error) => match root.try_get_matches_from(words) {
            Ok(matches) if matches!(matches.subcommand_name(), Some("config" | "doctor")) => Ok(matches),
            Err(line) if !line.use_stderr() => Err(usage::explain(line)),
            _ => {
                messages::say_error(format_args!("{error}"));
                Err(Exit::Usage.into())
            }
        },
    })?;
    if let Some(name) = matches.subcommand_name().filter(|_| matches.get_flag("json")) {
        let text = format!("the subcommand '{name}' cannot be used with '--json' before it");
        return Err(usage::explain(Arguments::command().error(ErrorKind::ArgumentConflict, text)));
    }
    Arguments::from_arg_matches(&matches).map_err(usage::explain)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    /// Every page of the book, and the README.
    fn pages() -> Vec<std::path::PathBuf> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let mut pages = vec![root.join("README.md"), root.join("bench/README.md")];
        let mut folders = vec![root.join("docs/src")];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(&folder).expect("the book is there") {
                let path = entry.expect("the book is there").path();
                if path.is_dir() {
                    folders.push(path);
                } else if path.extension().is_some_and(|extension| extension == "md") {
                    pages.push(path);
                }
            }
        }
        pages
    }

    #[test]
    fn every_command_that_the_book_shows_is_one() {
        let mut shown = 0;
        for page in pages() {
            let text = std::fs::read_to_string(&page).expect("the page is text");
            let of_becalm = |line: &&str| line.is_empty() || line.starts_with(' ');
            for line in text.lines().filter_map(|line| line.strip_prefix("$ becalm")).filter(of_becalm) {
                // What follows a # is the book's remark.
                let line = line.split(" #").next().unwrap_or_default();
                let words = std::iter::once("becalm").chain(line.split_whitespace());
                let parsed = Arguments::try_parse_from(words);
                assert!(parsed.is_ok(), "{}: becalm{line}: {}", page.display(), parsed.unwrap_err());
                shown += 1;
            }
        }
        assert!(shown >= 8, "only {shown} commands were found");
    }

    /// All options of a command and of what stands below it.
    fn options(command: &clap::Command, into: &mut std::collections::BTreeSet<String>) {
        into.extend(command.get_arguments().filter_map(|argument| argument.get_long()).map(|name| format!("--{name}")));
        command.get_subcommands().for_each(|below| options(below, into));
    }

    /// The libraries whose words tell a user what to do next.
    const ADVISERS: [&str; 5] = ["answer", "model", "tune", "live", "report"];

    /// Options of other programs that they start or write into files.
    const OTHERS: [&str; 7] = ["--ns", "--property", "--root", "--runtime", "--scope", "--slice", "--value"];

    #[test]
    fn every_option_that_a_library_advises_is_one() {
        let mut command = Arguments::command();
        command.build();
        let mut known: std::collections::BTreeSet<String> = OTHERS.map(str::to_owned).into();
        options(&command, &mut known);
        let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let mut folders: Vec<_> = ADVISERS.iter().map(|name| crates.join(name).join("src")).collect();
        let mut named = 0;
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(&folder).expect("the sources are there") {
                let path = entry.expect("the sources are there").path();
                if path.is_dir() {
                    folders.push(path);
                    continue;
                }
                let text = std::fs::read_to_string(&path).expect("sources are text");
                let code = text.split("#[cfg(test)]").next().unwrap_or_default();
                let lines = code.lines().filter(|line| !line.trim_start().starts_with("//"));
                for (at, line) in lines.flat_map(|line| line.match_indices("--").map(move |(at, _)| (at, line))) {
                    let letters = |letter: char| letter.is_ascii_lowercase() || letter == '-';
                    let option: String = line[at..].chars().take_while(|letter| letters(*letter)).collect();
                    if option.trim_matches('-').is_empty() || line[..at].ends_with('-') {
                        continue;
                    }
                    named += 1;
                    assert!(known.contains(&option), "{}: no command has {option}: {line}", path.display());
                }
            }
        }
        assert!(named > 20, "only {named} were found");
    }
}
