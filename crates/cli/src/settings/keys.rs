//! Options that may have a default: those that stay the same for all calls on a machine, of a site or of a user.

use std::any::TypeId;
use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use becalm_units::printable;
use clap::builder::ValueParser;
use clap::{Arg, ArgAction, Command};

/// Names with less similarity are not considered typos; from 0 to 1.
const ALIKE: f64 = 0.7;

/// The options that may have a default, in every command that has them.
pub const KEYS: [&str; 19] = [
    "buffer",
    "color",
    "cpus",
    "duration",
    "folder",
    "grain",
    "max-detour",
    "max-noise",
    "network",
    "no-argv",
    "no-last-error",
    "node",
    "pager",
    "profile",
    "ranks",
    "sched",
    "threshold",
    "trace-buffer",
    "width",
];

const CHANGES: &str = "the command line alone decides what becalm changes on the machine";

/// Commands that take no default.
const WITHOUT: [(&str, &str); 8] = [
    (
        "watch",
        "becalm watch has a file of its own, which its option --config names: /etc/becalm/watch.conf where it is a service",
    ),
    ("tune watch", "becalm tune run starts it by itself"),
    ("tune apply", CHANGES),
    ("tune run", CHANGES),
    ("tune restore", CHANGES),
    ("bench", CHANGES),
    ("inject", CHANGES),
    ("compare", "it compares what is there"),
];

/// An option that may have a default.
pub struct Key<'a> {
    argument: &'a Arg,
}

impl<'a> Key<'a> {
    /// The option of this name in a section. Fails if there is none, or it may have no default.
    pub fn find(root: &'a Command, section: &str, name: &str) -> Result<Self, String> {
        let command = self::section(root, section)?;
        let argument = candidates(command, section).find(|argument| argument.get_long() == Some(name));
        argument.map(|argument| Self { argument }).ok_or_else(|| unknown(root, command, section, name))
    }

    /// Whether it is a switch without a value.
    pub fn is_switch(&self) -> bool {
        matches!(self.argument.get_action(), ArgAction::SetTrue)
    }

    /// Converts a value for the command line's parser: yes and no for switches, and paths below the home. Fails if a switch has another
    /// value.
    pub fn value(&self, text: &str) -> Result<OsString, String> {
        if self.is_switch() {
            return match text {
                "yes" | "true" => Ok("true".into()),
                "no" | "false" => Ok("false".into()),
                _ => Err(format!("'{}' is neither yes nor no", printable(text))),
            };
        }
        match (text.strip_prefix("~/"), env::var_os("HOME")) {
            (Some(below), Some(home)) if is_path(self.argument.get_value_parser()) => {
                Ok(Path::new(&home).join(below).into_os_string())
            }
            _ => Ok(text.into()),
        }
    }
}

fn is_path(parser: &ValueParser) -> bool {
    parser.type_id() == TypeId::of::<PathBuf>()
}

/// The command of a section; all commands if it has no name. Fails if there is none or it takes no defaults.
pub fn section<'a>(root: &'a Command, name: &str) -> Result<&'a Command, String> {
    let mut command = root;
    for word in name.split(' ').filter(|word| !word.is_empty()) {
        let found = command.get_subcommands().find(|below| below.get_name() == word);
        command = found.ok_or_else(|| {
            let names: Vec<String> = sections(root).into_iter().filter(|name| !name.is_empty()).collect();
            format!("there is no command '{}'{}", printable(name), hint(name, names.iter().map(String::as_str)))
        })?;
    }
    match WITHOUT.iter().find(|(refused, _)| *refused == name) {
        Some((_, why)) => Err(format!("[{name}] can have no defaults: {why}")),
        None => Ok(command),
    }
}

/// The options of a command that may have a default. Before the first section, those of every command.
fn candidates<'a>(command: &'a Command, section: &str) -> impl Iterator<Item = &'a Arg> {
    let is_root = section.is_empty();
    command.get_arguments().filter(move |argument| {
        argument.get_long().is_some_and(|long| KEYS.contains(&long))
            && !argument.is_hide_set()
            && is_root == argument.is_global_set()
    })
}

fn unknown(root: &Command, command: &Command, section: &str, name: &str) -> String {
    let shown = printable(name);
    let is_shown = |argument: &Arg| !argument.is_hide_set() && !argument.is_global_set();
    if command.get_arguments().any(|argument| argument.get_long() == Some(name) && is_shown(argument)) {
        return format!(
            "{shown} can be no default{}",
            hint("", candidates(command, section).filter_map(Arg::get_long))
        );
    }
    let place = if section.is_empty() {
        "no option that all commands have is".to_owned()
    } else {
        format!("[{section}] has no option")
    };
    if candidates(root, "").any(|argument| argument.get_long() == Some(name)) {
        return format!("{place} '{shown}'; all commands have it, so it belongs above the first section");
    }
    format!("{place} '{shown}'{}", hint(name, candidates(command, section).filter_map(Arg::get_long)))
}

/// The similar name, if any; else all of them.
fn hint<'a>(name: &str, names: impl Iterator<Item = &'a str>) -> String {
    let names: Vec<&str> = names.collect();
    let likeness = |other: &str| strsim::jaro_winkler(name, other);
    let nearest = names.iter().max_by(|a, b| likeness(a).total_cmp(&likeness(b)));
    match nearest.filter(|nearest| likeness(nearest) > ALIKE) {
        Some(nearest) => format!("; did you mean {nearest}?"),
        None if names.is_empty() => String::new(),
        None => format!("; there are {}", names.join(", ")),
    }
}

/// The command words of all possible sections; first the section without a name.
fn sections(root: &Command) -> Vec<String> {
    fn below(command: &Command, words: &str, into: &mut Vec<String>) {
        into.push(words.to_owned());
        for next in command.get_subcommands().filter(|next| !next.is_hide_set() && next.get_name() != "help") {
            let name = next.get_name();
            below(next, &if words.is_empty() { name.to_owned() } else { format!("{words} {name}") }, into);
        }
    }
    let mut sections = Vec::new();
    below(root, "", &mut sections);
    sections
}

/// All options that may have a default, each with its section.
pub fn all_keys(root: &Command) -> Vec<(String, String)> {
    let mut keys = Vec::new();
    for section in sections(root) {
        let Ok(command) = self::section(root, &section) else { continue };
        let names = candidates(command, &section).filter_map(Arg::get_long);
        keys.extend(names.map(|name| (section.clone(), name.to_owned())));
    }
    keys
}

/// becalm's own value of an option without a default; `None` if it has no fixed one.
pub fn built_in(root: &Command, section: &str, name: &str) -> Option<String> {
    let key = Key::find(root, section, name).ok()?;
    if key.is_switch() {
        return Some("no".to_owned());
    }
    let values: Vec<_> = key.argument.get_default_values().iter().map(|value| value.to_string_lossy()).collect();
    (!values.is_empty()).then(|| values.join(","))
}

/// Whether the values of an option are not private.
pub fn is_plain(root: &Command, section: &str, name: &str) -> bool {
    Key::find(root, section, name).is_ok_and(|key| super::line::is_plain(key.argument))
}

/// The environment variable that sets an option.
pub fn variable(section: &str, name: &str) -> String {
    let words = section.split(' ').chain([name]).filter(|word| !word.is_empty());
    let words: Vec<String> = words.map(|word| word.replace('-', "_").to_ascii_uppercase()).collect();
    format!("BECALM_{}", words.join("_"))
}
