//! Which options may have a default in a file: all that have a long name but those that are refused here, each with its reason.

use std::any::TypeId;
use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use becalm_units::printable;
use clap::builder::ValueParser;
use clap::{Arg, ArgAction, Command};

/// Names that are less like another one than this are not taken for a slip; from 0 to 1.
const ALIKE: f64 = 0.7;

const CHANGES: &str = "it decides what becalm changes on the machine, which is said on the command line alone";
const ONE_FILE: &str = "it names one file or folder, and one call after the other would take the same";
const ONE_CALL: &str = "it chooses what a single call does";
const NOISE: &str = "it says which noise is made, and a call is to show that";

/// Commands that take no default at all.
const COMMANDS: &[(&str, &str)] = &[
    (
        "watch",
        "becalm watch has a file of its own, which its option --config names: /etc/becalm/watch.conf where it is a service",
    ),
    ("tune watch", "becalm tune run starts it by itself"),
    ("completions", "it has no option"),
    ("man", ONE_CALL),
];

/// Options that are refused in some commands; no command stands for all that have the option.
const OPTIONS: &[(&[&str], &[&str], &str)] = &[
    (
        &["tune apply", "tune run", "tune restore", "run-quiet"],
        &[
            "cpus",
            "profile",
            "leave-idle",
            "only",
            "skip",
            "journal",
            "extend",
            "force",
            "keep",
            "left-by-run",
            "priority",
            "no-tune",
        ],
        CHANGES,
    ),
    (
        &["inject"],
        &[
            "interval",
            "rate",
            "ratio",
            "detour",
            "jitter",
            "burst",
            "replay",
            "source",
            "scale",
            "signal",
            "packets",
            "main-thread",
            "sync",
            "coalesce",
        ],
        NOISE,
    ),
    (
        &[
            "record",
            "check",
            "cost trap",
            "cost clock",
            "cost detours",
            "cost scheduler",
            "cost placement",
            "cost tick",
            "work",
        ],
        &["output"],
        "it \
        names one recording, and one call after the other would take the same; folder says in which folder recordings without a name lie",
    ),
    (&[], &["output", "html", "junit", "sarif", "export-json", "verify-output"], ONE_FILE),
    (&[], &["from", "resume", "direct", "handler", "run", "baseline", "phases-of", "sacct"], ONE_CALL),
    (&["sources"], &["detour", "longest", "phases", "within"], ONE_CALL),
    (&["record"], &["at"], ONE_CALL),
    (&["compare"], &["record", "duration"], ONE_CALL),
    (&["work"], &["at-once"], ONE_CALL),
    (&["top"], &["json", "iterations"], ONE_CALL),
    (&["paper"], &["figure", "table", "list"], ONE_CALL),
    (&["tune plan"], &["format"], ONE_CALL),
    (&[], &["as-root"], "it would have commands run as root"),
    (&[], &["no-config"], "no default is read where it is given"),
    (&[], &["no-pager"], "write pager = cat"),
];

/// An option that may have a default.
pub struct Key<'a> {
    argument: &'a Arg,
}

impl<'a> Key<'a> {
    /// The option of this name in a section.
    ///
    /// # Errors
    /// In words, if there is none or it is refused.
    pub fn find(root: &'a Command, section: &str, name: &str) -> Result<Self, String> {
        let command = self::section(root, section)?;
        let argument = candidates(command, section).find(|argument| argument.get_long() == Some(name));
        let Some(argument) = argument else { return Err(unknown(root, command, section, name)) };
        match refusal(section, name) {
            Some(why) => Err(format!("{name} can be no default: {why}")),
            None => Ok(Self { argument }),
        }
    }

    /// Whether it may be given several times.
    pub fn is_list(&self) -> bool {
        matches!(self.argument.get_action(), ArgAction::Append)
    }

    /// Whether it is on or off, and takes no value.
    pub fn is_switch(&self) -> bool {
        matches!(self.argument.get_action(), ArgAction::SetTrue)
    }

    /// A value as the parser of the command line takes it: yes and no of what is given or not, and a path below the home.
    ///
    /// # Errors
    /// In words, if it is neither yes nor no.
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

/// The command that a section is for; all commands where it has no name.
///
/// # Errors
/// In words, if there is none or it takes no defaults.
pub fn section<'a>(root: &'a Command, name: &str) -> Result<&'a Command, String> {
    let mut command = root;
    for word in name.split(' ').filter(|word| !word.is_empty()) {
        let found = command.get_subcommands().find(|below| below.get_name() == word);
        command = found.ok_or_else(|| {
            let names: Vec<String> = sections(root).into_iter().filter(|name| !name.is_empty()).collect();
            format!("there is no command '{}'{}", printable(name), hint(name, names.iter().map(String::as_str)))
        })?;
    }
    match COMMANDS.iter().find(|(refused, _)| *refused == name) {
        Some((_, why)) => Err(format!("[{name}] can have no defaults: {why}")),
        None => Ok(command),
    }
}

/// The options of a command that a key could name. Above all sections these are those which every command has.
fn candidates<'a>(command: &'a Command, section: &str) -> impl Iterator<Item = &'a Arg> {
    let is_root = section.is_empty();
    command.get_arguments().filter(move |argument| {
        let takes = matches!(argument.get_action(), ArgAction::Set | ArgAction::Append | ArgAction::SetTrue);
        // Hidden ones are for tests, and the opposites of those that may be switched off.
        argument.get_long().is_some() && takes && !argument.is_hide_set() && is_root == argument.is_global_set()
    })
}

/// Why an option may be no default.
fn refusal(section: &str, name: &str) -> Option<&'static str> {
    let is_for = |commands: &&[&str]| commands.is_empty() || commands.contains(&section);
    OPTIONS.iter().find(|(commands, names, _)| is_for(commands) && names.contains(&name)).map(|(_, _, why)| *why)
}

fn unknown(root: &Command, command: &Command, section: &str, name: &str) -> String {
    let place = if section.is_empty() {
        "no option that all commands have is".to_owned()
    } else {
        format!("[{section}] has no option")
    };
    let shown = printable(name);
    let is_of_all = candidates(root, "").any(|argument| argument.get_long() == Some(name));
    if is_of_all {
        return format!("{place} '{shown}'; all commands have it, so it stands above the first section");
    }
    let is_flag = |argument: &&Arg| matches!(argument.get_action(), ArgAction::SetTrue);
    if let Some(opposite) = candidates(command, section)
        .filter(is_flag)
        .filter_map(Arg::get_long)
        .find(|long| super::line::opposite(long) == name)
    {
        return format!("{place} '{shown}'; write {opposite} = no");
    }
    let names = candidates(command, section).filter_map(Arg::get_long).filter(|name| refusal(section, name).is_none());
    format!("{place} '{shown}'{}", hint(name, names))
}

/// What was meant, if one of the names is like it; else all of them.
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

/// All sections that there can be, as the words of their commands; first the one without a name.
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
        let names = names.filter(|name| refusal(&section, name).is_none());
        keys.extend(names.map(|name| (section.clone(), name.to_owned())));
    }
    keys
}

/// What becalm does by itself where an option has no default; `None` where that is no value, but depends.
pub fn built_in(root: &Command, section: &str, name: &str) -> Option<String> {
    let key = Key::find(root, section, name).ok()?;
    if key.is_switch() {
        return Some("no".to_owned());
    }
    let values: Vec<_> = key.argument.get_default_values().iter().map(|value| value.to_string_lossy()).collect();
    (!values.is_empty()).then(|| values.join(","))
}

/// Whether the values of an option give nobody away.
pub fn is_plain(root: &Command, section: &str, name: &str) -> bool {
    Key::find(root, section, name).is_ok_and(|key| super::line::is_plain(key.argument))
}

/// The variable of the environment that sets an option.
pub fn variable(section: &str, name: &str) -> String {
    let words = section.split(' ').chain([name]).filter(|word| !word.is_empty());
    let words: Vec<String> = words.map(|word| word.replace('-', "_").to_ascii_uppercase()).collect();
    format!("BECALM_{}", words.join("_"))
}
