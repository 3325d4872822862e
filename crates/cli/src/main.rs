//! The `becalm` binary: parses arguments and calls commands.

#![forbid(unsafe_code)]
// Without a command, some shared parts are unused.
#![cfg_attr(not(feature = "full"), allow(dead_code, unused_imports))]

mod commands;
mod discretion;
mod last_error;
mod settings;
mod usage;

use std::env;
use std::ffi::OsString;
use std::panic;
use std::process::ExitCode;

use becalm_command::arguments::FormArgs;
use becalm_command::pager::Shown;
use becalm_command::{Exit, Task, exit, looks, messages, voice};
use becalm_linux::{janitor, limits};
use becalm_units::fault;
use clap::error::ErrorKind;
use clap::parser::ValueSource;
use clap::{CommandFactory, FromArgMatches, Parser};

use commands::{Command, welcome};
use settings::{Asked, PlaceState, Settings};

/// Find out what takes CPU time from your threads on Linux, and get it back
#[derive(Parser, Debug)]
#[command(version, max_term_width = 100, override_usage = USAGE, help_template = "{about}\n\n{usage-heading} {usage}{after-help}")]
struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,

    #[command(flatten)]
    form: FormArgs,

    #[command(flatten)]
    looks: looks::LooksArgs,
}

fn main() -> ExitCode {
    // Code that needs a large stack is in separate functions, so a small stack is reported before it is used.
    match limits::check_stack() {
        Ok(()) => run(),
        Err(error) => {
            messages::say(format_args!("{error}"));
            Exit::Failed.into()
        }
    }
}

/// The usage of the program without a command.
const USAGE: &str = "becalm <COMMAND> [OPTIONS]";

/// The last lines of the list of commands.
const START: &str = "Start with sudo becalm record, or with becalm alone to see what this machine allows.\n\
    becalm help COMMAND explains a command, becalm help options the options of all.";

fn command_line() -> clap::Command {
    let root = settings::with_opposites(Arguments::command());
    let list = commands::list(&root);
    root.after_help(format!("{list}\n{START}"))
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
        arguments.command.map_or_else(|| Box::new(welcome::Welcome { form: arguments.form }) as _, Command::task);
    let mut out = Shown::new(task.paging());
    // A service must end even if no one reads its messages. At a terminal, errors wait until it resumes.
    let say_error = if task.is_service() {
        voice::say_last_error
    } else {
        |text: &str| messages::say_error(format_args!("{text}"))
    };
    let result = task.rights().keep().map_err(fault::Error::from).and_then(|()| task.run(&mut out));
    // Buffered output must be written: a full disk is not success.
    let result = result.and_then(|exit| Ok(out.finish().map(|()| exit)?));
    let stuck = janitor::unfinished();
    for janitor in &stuck {
        say_error(&format!("becalm's trace in the kernel may still be there, since it is removed by {janitor}"));
    }
    match result {
        Ok(Exit::Done) if !stuck.is_empty() => Exit::Failed.into(),
        Ok(exit) => exit.into(),
        Err(error) => {
            let (text, exit) = (messages::error_line(&error), exit::for_error(&error));
            say_error(&text);
            if exit == Exit::Failed {
                last_error::keep(&text);
            }
            exit.into()
        }
    }
}

/// Reports panics, and keeps them as the last error.
fn report_panics() {
    let report = panic::take_hook();
    panic::set_hook(Box::new(move |panic| {
        // Reported as an error of the file instead.
        if !becalm_bundle::is_decoding() {
            report(panic);
            last_error::keep(&panic.to_string());
        }
    }));
}

/// Parses the command line, with the defaults below it. Prints errors.
fn understand(words: &[OsString]) -> Result<Arguments, ExitCode> {
    let root = command_line();
    let is_off = || words.iter().take_while(|word| *word != "--").any(|word| word == "--no-config");
    let settings = if settings::are_off() || is_off() { Ok(Settings::default()) } else { Settings::read(&root) };
    looks::choose_early(words, |option| settings.as_ref().ok()?.common(option));
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
        // Help, and commands that show errors in the defaults, ignore the defaults.
        Asked::Settings(error) => match root.try_get_matches_from(words) {
            Ok(matches) if matches!(matches.subcommand_name(), Some("config" | "doctor")) => Ok(matches),
            Err(line) if !line.use_stderr() => Err(usage::explain(line)),
            _ => {
                messages::say_error(format_args!("{error}"));
                Err(Exit::Usage.into())
            }
        },
    })?;
    let form = ["json", "markdown", "html", "open"]
        .into_iter()
        .find(|form| matches.value_source(form) == Some(ValueSource::CommandLine));
    if let (Some(name), Some(form)) = (matches.subcommand_name(), form) {
        let text = format!("the subcommand '{name}' cannot be used with '--{form}' before it");
        return Err(usage::explain(Arguments::command().error(ErrorKind::ArgumentConflict, text)));
    }
    Arguments::from_arg_matches(&matches).map_err(usage::explain)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::{Path, PathBuf};

    use becalm_units::fault::{Param, Setting};

    use super::*;

    /// Every page of the book, and the README.
    fn pages() -> Vec<PathBuf> {
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
    fn options(command: &clap::Command, into: &mut BTreeSet<String>) {
        into.extend(command.get_arguments().filter_map(|argument| argument.get_long()).map(|name| format!("--{name}")));
        command.get_subcommands().for_each(|below| options(below, into));
    }

    /// The libraries whose reports and warnings tell a user what to do next; `model` has those that are stored with a run.
    const ADVISERS: [&str; 12] = [
        "cost", "explain", "fleet", "inject", "live", "observe", "model", "report", "research", "tune", "watch", "why",
    ];

    /// The crates that have options of their own, and those for tests.
    const NO_LIBRARIES: [&str; 5] = ["cli", "command", "fixtures", "mpi", "testing"];

    /// Options of other programs that libraries start, name or write into files.
    const OTHERS: [&str; 20] = [
        "--allocations",
        "--collect",
        "--compression none",
        "--deltatime",
        "--file-version",
        "--format=JobID",
        "--gid",
        "--json=FILE",
        "--no-header",
        "--no-index",
        "--ns",
        "--parsable2",
        "--pid=host",
        "--property",
        "--root=/",
        "--runtime",
        "--scope",
        "--slice",
        "--uid",
        "--value",
    ];

    /// The product code of a crate, file by file, without comments.
    fn product_code(name: &str) -> Vec<(PathBuf, String)> {
        let mut folders = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(name).join("src")];
        let mut files = Vec::new();
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(&folder).expect("the sources are there") {
                let path = entry.expect("the sources are there").path();
                if path.file_stem().is_some_and(|stem| stem == "tests") {
                    continue;
                }
                if path.is_dir() {
                    folders.push(path);
                    continue;
                }
                let text = std::fs::read_to_string(&path).expect("sources are text");
                let code = text.split("#[cfg(test)]").next().unwrap_or_default();
                let lines = code.lines().filter(|line| !line.trim_start().starts_with("//"));
                files.push((path, lines.map(|line| format!("{line}\n")).collect()));
            }
        }
        files
    }

    /// Each `--word` of a text that is no other program's, with what stands before it.
    fn named_options(text: &str) -> Vec<(&str, String)> {
        let named = text.match_indices("--").filter_map(|(at, _)| {
            let letters = |letter: &char| letter.is_ascii_lowercase() || *letter == '-';
            let option: String = text[at..].chars().take_while(letters).collect();
            let is_other = OTHERS.iter().any(|other| text[at..].starts_with(other));
            let is_word = !option.trim_matches('-').is_empty() && !text[..at].ends_with('-');
            (is_word && !is_other).then(|| (&text[..at], option))
        });
        named.collect()
    }

    /// All options of this command line.
    fn known_options() -> BTreeSet<String> {
        let mut command = Arguments::command();
        command.build();
        let mut known = BTreeSet::new();
        options(&command, &mut known);
        known
    }

    #[test]
    fn every_option_that_a_library_advises_is_one() {
        let known = known_options();
        let mut count = 0;
        for (path, code) in ADVISERS.iter().flat_map(|name| product_code(name)) {
            for (_, option) in named_options(&code) {
                count += 1;
                assert!(known.contains(&option), "{}: no command has {option}", path.display());
            }
        }
        assert!(count > 20, "only {count} were found");
    }

    /// The code from each of these marks to the end of its statement or attribute.
    fn statements<'a>(code: &'a str, marks: &[&str]) -> Vec<&'a str> {
        let starts = marks.iter().flat_map(|mark| code.match_indices(mark).map(|(at, _)| &code[at..]));
        let end = |rest: &str| [")]\n", ";\n"].iter().filter_map(|end| rest.find(end)).min().unwrap_or(rest.len());
        starts.map(|rest| &rest[..end(rest)]).collect()
    }

    /// Whether a file of a library is a command, which has options.
    fn is_command(path: &Path) -> bool {
        path.components().any(|part| part.as_os_str() == "command") || path.ends_with("command.rs")
    }

    #[test]
    fn errors_of_libraries_name_parameters_and_no_options() {
        let errors = ["#[error(", "Error::new(", "Wording::new(", "with_fix(", "bail!(", "ensure!("];
        let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").read_dir().expect("the crates are there");
        let names = crates.map(|entry| entry.expect("the crates are there").file_name().into_string().unwrap());
        let mut count = 0;
        for name in names.filter(|name| !NO_LIBRARIES.contains(&name.as_str())) {
            for (path, code) in product_code(&name).into_iter().filter(|(path, _)| !is_command(path)) {
                let texts =
                    if ADVISERS.contains(&name.as_str()) { statements(&code, &errors) } else { vec![&code[..]] };
                count += texts.len();
                for (before, option) in texts.iter().flat_map(|text| named_options(text)) {
                    // A next step may be a whole command.
                    let literal = before.rsplit('"').next().unwrap_or_default();
                    assert!(literal.contains("becalm "), "{}: an error names {option}: {literal}", path.display());
                }
            }
        }
        assert!(count > 100, "only {count} were found");
    }

    /// The parameters that a text of each of these marks names in braces.
    fn parameters<'a>(code: &'a str, marks: &[&str]) -> Vec<&'a str> {
        let behind = marks.iter().flat_map(|mark| code.match_indices(mark).map(|(at, _)| &code[at + mark.len()..]));
        let literals = behind.filter_map(|rest| rest.trim_start().strip_prefix('"')?.split('"').next());
        let braces = literals.flat_map(|literal| literal.split('{').skip(1));
        let names = braces.filter_map(|rest| Some(rest.split_once('}')?.0.trim_end_matches(['!', '='])));
        names.filter(|name| !name.is_empty()).collect()
    }

    #[test]
    fn every_parameter_that_an_error_names_is_an_option() {
        let known = known_options();
        let mut count = 0;
        for name in ["analyze", "answer", "bundle", "cost", "explain", "foreign", "inject", "measure", "tune", "why"] {
            for (path, code) in product_code(name) {
                for name in parameters(&code, &["Wording::new(", "with_fix(", "refused(", " => "]) {
                    count += 1;
                    let option = messages::option(Param { name, setting: Setting::Any });
                    assert!(known.contains(&option), "{}: no command has {option}", path.display());
                }
            }
        }
        assert!(count > 30, "only {count} were found");
    }
}
