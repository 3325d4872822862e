//! Help for invalid command lines beyond the parser's errors: options of other programs, and the syntax of numbers.

use std::io::{self, Write};
use std::process::ExitCode;

use becalm_command::Exit;
use becalm_command::messages::{say, say_error};
use becalm_command::{color, pager};
use becalm_units::plain_number;
use clap::error::{ContextKind, ContextValue, ErrorKind};

use crate::{USAGE, command_line, commands};

/// Commands and options of other programs with the equivalents here: names, a colon, and the hint.
const HINTS: &str = include_str!("usage/hints.txt");

/// Prints the error of the command line; exit code 2. Prints help or version if requested, with exit code 0.
pub fn explain(mut error: clap::Error) -> ExitCode {
    // Ignore write errors: the exit code is still right.
    if !error.use_stderr() {
        let _ = pager::show(&color::styled(&error.render(), &io::stdout()));
        return Exit::Done.into();
    }
    if let Some(lacks) = subcommand(&error).and_then(commands::not_built_in) {
        say_error(format_args!("{lacks}"));
        return Exit::Usage.into();
    }
    let tip = tip(&error);
    let is_unknown = error.kind() == ErrorKind::InvalidSubcommand && is_about_the_program(&error);
    if tip.is_some() {
        guess_nothing(&mut error);
    }
    let _ = error.print();
    match tip {
        Some(tip) => say(format_args!("{tip}")),
        None if is_unknown => {
            let list = color::styled(&commands::list(&command_line()).into(), &io::stderr());
            let _ = write!(io::stderr(), "\n{list}");
        }
        None => {}
    }
    Exit::Usage.into()
}

/// Whether an error is about the command itself rather than its subcommand.
fn is_about_the_program(error: &clap::Error) -> bool {
    matches!(error.get(ContextKind::Usage), Some(ContextValue::StyledStr(usage)) if usage.to_string().contains(USAGE))
}

/// Removes the parser's guesses by similarity, such as `import` for `timerlat`, because the meaning is known.
fn guess_nothing(error: &mut clap::Error) {
    for guess in [ContextKind::SuggestedSubcommand, ContextKind::SuggestedArg, ContextKind::Suggested] {
        error.remove(guess);
    }
}

/// The word that was taken for a command, but is none.
fn subcommand(error: &clap::Error) -> Option<&str> {
    match error.get(ContextKind::InvalidSubcommand) {
        Some(ContextValue::String(name)) => Some(name),
        _ => None,
    }
}

/// An additional hint.
fn tip(error: &clap::Error) -> Option<String> {
    let said = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.as_str()),
        _ => None,
    };
    match error.kind() {
        ErrorKind::InvalidSubcommand => {
            hint(&said(ContextKind::InvalidSubcommand)?.to_ascii_lowercase()).map(str::to_owned)
        }
        ErrorKind::UnknownArgument => hint(said(ContextKind::InvalidArg)?.split('=').next()?).map(str::to_owned),
        ErrorKind::InvalidValue | ErrorKind::ValueValidation => value_hint(said(ContextKind::InvalidValue)?),
        _ => None,
    }
}

/// The names of each hint, and the hint.
fn hints() -> impl Iterator<Item = (&'static str, &'static str)> {
    HINTS.lines().filter_map(|line| line.split_once(": "))
}

fn hint(name: &str) -> Option<&'static str> {
    hints().find(|(names, _)| names.split(' ').any(|other| other == name)).map(|(_, hint)| hint)
}

fn value_hint(value: &str) -> Option<String> {
    let plain = plain_number(value)?;
    Some(format!(
        "numbers have a point before their fraction and nothing between thousands, and no blank before their unit: write {plain}"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Arguments;
    use clap::{CommandFactory, Parser};

    fn tip_of(line: &str) -> Option<String> {
        tip(&Arguments::try_parse_from(line.split(' ')).unwrap_err())
    }

    #[test]
    fn what_others_have_is_answered() {
        for name in ["osnoise", "timerlat", "hwnoise", "cyclictest", "oslat", "perf", "Cyclictest"] {
            let tip = tip_of(&format!("becalm {name}")).unwrap();
            assert!(tip.contains("becalm record"), "{tip}");
        }
        assert_eq!(tip_of("becalm recrod"), None, "the parser knows better");
        assert!(tip_of("becalm record --period 1000").unwrap().contains("never sleep"));
        assert!(tip_of("becalm record -D 10").unwrap().contains("--duration 10s"));
        assert!(tip_of("becalm record -a 1").unwrap().contains("--cpus"));
        assert!(tip_of("becalm record --prio=80").unwrap().contains("--sched fifo:80"));
    }

    #[test]
    fn where_it_is_known_what_was_meant_nothing_is_guessed() {
        for (line, guess) in [("becalm timerlat", "import"), ("becalm record -a 1", "'-- -a'")] {
            let mut error = Arguments::try_parse_from(line.split(' ')).unwrap_err();
            assert!(error.render().to_string().contains(guess), "the parser has learned something: {}", error.render());
            guess_nothing(&mut error);
            let text = error.render().to_string();
            assert!(!text.contains("tip:") && text.contains("unexpected") | text.contains("unrecognized"), "{text}");
        }
    }

    #[test]
    fn numbers_of_others_are_written_anew() {
        for (line, plain) in [
            ("becalm record --duration 1,5s", "write 1.5s"),
            ("becalm record --max-noise 0,1%", "write 0.1%"),
            ("becalm record --detours 10,000", "write 10000"),
            ("becalm record --buffer \u{ff11}\u{ff10}", "write 10"),
            ("becalm work --samples 10'000", "write 10000"),
        ] {
            let tip = tip_of(line).unwrap();
            assert!(tip.ends_with(plain), "{line}: {tip}");
        }
        assert_eq!(tip_of("becalm record --duration fast"), None);
        assert!(Arguments::try_parse_from(["becalm", "predict", "x", "--ranks", "10,000"]).is_err());
    }

    /// Whatever is advised can be typed.
    #[test]
    fn what_is_advised_is_there() {
        let command = Arguments::command();
        let names: Vec<&str> = command.get_subcommands().map(clap::Command::get_name).collect();
        for (of_others, here) in hints() {
            assert!(!of_others.split(' ').any(|name| names.contains(&name)), "{of_others}: one is a command");
            for (_, rest) in here.match_indices("becalm ").map(|(at, word)| (at, &here[at + word.len()..])) {
                let word: String = rest.chars().take_while(|c| c.is_ascii_lowercase() || *c == '-').collect();
                let is_said = ["has", "measures", "keeps", "never"].contains(&word.as_str());
                assert!(is_said || word.starts_with("--") || names.contains(&word.as_str()), "becalm {word}");
            }
        }
    }
}
