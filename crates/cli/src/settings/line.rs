//! The command line with the defaults below it.
//!
//! With defaults, it is parsed twice: first to find the command and its explicit options, then with the remaining defaults as the parser's
//! default values. For the parser, default values neither conflict with options nor require others.

use std::any::TypeId;
use std::error::Error;
use std::ffi::OsString;

use becalm_linux::sched::Policy;
use becalm_measure::Threshold;
use becalm_units::{ByteCount, Count, CpuId, CpuList, Nanos, Share, printable};
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Command};

use super::keys::all_keys;
use super::{Setting, Settings, SettingsError};

/// The prefix of the parser's ids for opposites of options.
const OPPOSITE: &str = "opposite of ";

/// Why a command line is not executed.
#[derive(Debug)]
pub enum Asked {
    /// It is wrong, or asks for help or the version.
    Line(clap::Error),
    /// The defaults are wrong.
    Settings(SettingsError),
}

impl From<clap::Error> for Asked {
    fn from(error: clap::Error) -> Self {
        Self::Line(error)
    }
}

impl From<SettingsError> for Asked {
    fn from(error: SettingsError) -> Self {
        Self::Settings(error)
    }
}

/// The long name of the option that switches another one off: `no-json` for `json`, `sources` for `no-sources`.
pub fn opposite(long: &str) -> String {
    long.strip_prefix("no-").map_or_else(|| format!("no-{long}"), str::to_owned)
}

/// Adds a hidden opposite for each option that a default could switch on.
pub fn with_opposites(root: Command) -> Command {
    let mut root = root;
    for (section, name) in all_keys(&root) {
        root = within(root, &section, &mut |command| add_opposite(command, &name));
    }
    root
}

fn add_opposite(command: Command, name: &str) -> Command {
    let (long, taken) = (opposite(name), |argument: &Arg, long: &str| argument.get_long() == Some(long));
    let Some(argument) = command.get_arguments().find(|argument| taken(argument, name)) else { return command };
    let is_free = !command.get_arguments().any(|argument| taken(argument, &long));
    if !matches!(argument.get_action(), ArgAction::SetTrue) || !is_free {
        return command;
    }
    let opposite =
        Arg::new(format!("{OPPOSITE}{}", argument.get_id())).long(long).action(ArgAction::SetTrue).hide(true);
    let opposite = opposite.global(argument.is_global_set()).overrides_with(argument.get_id());
    command.arg(opposite)
}

fn within(command: Command, words: &str, change: &mut dyn FnMut(Command) -> Command) -> Command {
    match words.split_once(' ').unwrap_or((words, "")) {
        ("", _) => change(command),
        (word, rest) => command.mut_subcommand(word, |below| within(below, rest, change)),
    }
}

/// Parses a command line with the defaults below it. Fails if either is invalid.
pub fn ask(root: &Command, settings: &Settings, words: &[OsString]) -> Result<ArgMatches, Asked> {
    let plain = || root.clone().try_get_matches_from(words);
    if settings.settings.is_empty() {
        return Ok(plain()?);
    }
    // Errors are reported below; and defaults do not change help.
    let Ok(said) = root.clone().ignore_errors(true).try_get_matches_from(words) else { return Ok(plain()?) };
    let (section, line) = deepest(&said);
    let due = due(root, line, settings.for_command(&section));
    let mut command = root.clone();
    for setting in &due {
        command = within(command, &setting.command, &mut |command| with_default(command, setting));
    }
    command.try_get_matches_from(words).map_err(|error| explained(error, &due))
}

/// Checks the values of all defaults.
pub fn check(root: &Command, settings: &Settings) -> Result<(), SettingsError> {
    for setting in &settings.settings {
        let command = within(root.clone(), &setting.command, &mut |command| with_default(command, setting));
        let words = std::iter::once("becalm").chain(setting.command.split(' ').filter(|word| !word.is_empty()));
        // Missing arguments do not matter here.
        if let Err(error) = command.try_get_matches_from(words)
            && let Asked::Settings(error) = explained(error, &[setting])
        {
            return Err(error);
        }
    }
    Ok(())
}

/// The words of the selected command, and its arguments.
fn deepest(said: &ArgMatches) -> (String, &ArgMatches) {
    let (mut words, mut at) = (Vec::new(), said);
    while let Some((word, below)) = at.subcommand() {
        words.push(word);
        at = below;
    }
    (words.join(" "), at)
}

/// The defaults that apply: those that the command line neither sets nor contradicts.
fn due<'a>(root: &Command, line: &ArgMatches, all: impl Iterator<Item = &'a Setting>) -> Vec<&'a Setting> {
    let is_said =
        |id: &str| line.ids().any(|known| known == id) && line.value_source(id) == Some(ValueSource::CommandLine);
    let is_due = |setting: &&Setting| {
        let Some((command, argument)) = find(root, setting) else { return false };
        let id = argument.get_id().as_str();
        let conflicts = |one: &Arg, two: &Arg| {
            command.get_arg_conflicts_with(one).iter().any(|argument| argument.get_id() == two.get_id())
        };
        let against = |other: &Arg| {
            other.get_id() != argument.get_id() && (conflicts(argument, other) || conflicts(other, argument))
        };
        let is_contradicted =
            || command.get_arguments().any(|other| is_said(other.get_id().as_str()) && against(other));
        let is_overridden = is_said(id) || is_said(&format!("{OPPOSITE}{id}"));
        setting.switch() != Some(false) && !is_overridden && !is_contradicted()
    };
    all.filter(is_due).collect()
}

/// The option of a default, and its command.
fn find<'a>(root: &'a Command, setting: &Setting) -> Option<(&'a Command, &'a Arg)> {
    let mut command = root;
    for word in setting.command.split(' ').filter(|word| !word.is_empty()) {
        command = command.find_subcommand(word)?;
    }
    command
        .get_arguments()
        .find(|argument| argument.get_long() == Some(&setting.option))
        .map(|argument| (command, argument))
}

fn with_default(command: Command, setting: &Setting) -> Command {
    let id = command.get_arguments().find(|argument| argument.get_long() == Some(&setting.option));
    let Some(id) = id.map(|argument| argument.get_id().to_string()) else { return command };
    // An option with a default is no longer required.
    command.mut_arg(id, |argument| argument.required(false).default_value(setting.value.clone()))
}

/// Converts an error of the parser to one about a default, if it is about one.
fn explained(error: clap::Error, due: &[&Setting]) -> Asked {
    if !matches!(error.kind(), ErrorKind::InvalidValue | ErrorKind::ValueValidation) {
        return Asked::Line(error);
    }
    let text = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.as_str()),
        _ => None,
    };
    let (option, value) =
        (text(ContextKind::InvalidArg).unwrap_or_default(), text(ContextKind::InvalidValue).unwrap_or_default());
    let long = option.trim_start_matches('-').split([' ', '=', '[']).next().unwrap_or_default();
    let Some(setting) = due.iter().find(|setting| setting.option == long) else { return Asked::Line(error) };
    let why = match (error.source(), error.get(ContextKind::ValidValue)) {
        (Some(cause), _) => cause.to_string(),
        (None, Some(ContextValue::Strings(known))) if !known.is_empty() => format!("it is one of {}", known.join(", ")),
        _ => "a value is missing".to_owned(),
    };
    let why = format!("{long} = {}: {}", printable(value), printable(&why));
    Asked::Settings(SettingsError::at(&setting.origin, why))
}

/// A command line with private data separated: the command, its options and the values that are numbers, times and choices; and all other
/// values.
pub fn command_shape(root: &Command, words: &[OsString]) -> (String, Vec<String>) {
    let Ok(said) = root.clone().ignore_errors(true).try_get_matches_from(words) else {
        return ("becalm".to_owned(), words.iter().skip(1).map(|word| word.to_string_lossy().into_owned()).collect());
    };
    let (mut shape, mut hidden) = ("becalm".to_owned(), Vec::new());
    let (mut command, mut at) = (root, &said);
    loop {
        for argument in command.get_arguments() {
            let id = argument.get_id().as_str();
            if !at.ids().any(|known| known == id) || at.value_source(id) != Some(ValueSource::CommandLine) {
                continue;
            }
            let values: Vec<String> =
                at.get_raw(id).into_iter().flatten().map(|value| value.to_string_lossy().into_owned()).collect();
            let name = argument.get_long().map_or_else(String::new, |long| format!(" --{long}"));
            let takes = !matches!(argument.get_action(), ArgAction::SetTrue);
            let value_name =
                argument.get_value_names().and_then(|names| names.first()).map_or("VALUE", |name| name.as_str());
            shape += &name;
            if takes && is_plain(argument) {
                shape += &format!(" {}", values.join(","));
            } else if takes {
                shape += &format!(" {value_name}");
                hidden.extend(values);
            }
        }
        match at.subcommand() {
            Some((word, below)) => {
                shape += &format!(" {word}");
                let Some(next) = command.find_subcommand(word) else { break };
                (command, at) = (next, below);
            }
            None => break,
        }
    }
    (shape, hidden)
}

/// Whether the values of an option are numbers, times, lists of CPUs or choices, which are not private.
pub fn is_plain(argument: &Arg) -> bool {
    let parser = argument.get_value_parser();
    let id = parser.type_id();
    let numbers = [
        TypeId::of::<u16>(),
        TypeId::of::<u32>(),
        TypeId::of::<u64>(),
        TypeId::of::<usize>(),
        TypeId::of::<f64>(),
        TypeId::of::<bool>(),
        TypeId::of::<Nanos>(),
        TypeId::of::<CpuId>(),
        TypeId::of::<CpuList>(),
        TypeId::of::<Share>(),
        TypeId::of::<Count>(),
        TypeId::of::<ByteCount>(),
        TypeId::of::<Policy>(),
        TypeId::of::<Threshold>(),
    ];
    numbers.iter().any(|number| id == *number) || parser.possible_values().is_some()
}
