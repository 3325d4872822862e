//! Defaults that users and sites set for options of commands: in files, and in environment variables.
//!
//! Options that stay the same for all calls can have a default, under their long names and in the section of the command; [`keys`] lists
//! them. It becomes the default value of the command line's parser, so units, ranges and errors are the same ([`mod@line`]). Precedence:
//! command line, variables, the user's file, the system's file, built-in value.

mod example;
mod keys;
mod line;
mod places;

pub use example::EXAMPLE;
pub use keys::{all_keys, built_in, is_plain};
pub use line::{Asked, ask, check, command_shape, with_opposites};
pub use places::{Place, PlaceKind, PlaceState, are_off, places, user_folder};

use std::env;
use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;

use becalm_command::child::SWITCH;
use becalm_linux::trusted;
use becalm_units::{SettingLine, printable};
use clap::Command;

use keys::{Key, variable};

/// The maximum size of a file of settings, in bytes.
const LARGEST: u64 = 64 << 10;

/// The origin of a default; later ones take precedence.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Origin {
    /// A file and line, counted from 1.
    File(PlaceKind, PathBuf, usize),
    Variable(String),
}

impl fmt::Display for Origin {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(_, path, line) => write!(to, "{}:{line}", printable(&path.to_string_lossy())),
            Self::Variable(name) => write!(to, "{name}"),
        }
    }
}

/// A default for an option.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Setting {
    /// The words of the command, like `tune plan`; empty for what all commands have.
    pub command: String,
    /// The option's long name, without the leading `--`.
    pub option: String,
    /// Its value in the parser's form.
    pub value: OsString,
    /// Whether its option takes no value.
    is_switch: bool,
    /// Its origin.
    pub origin: Origin,
}

impl Setting {
    fn new(command: &str, option: &str, key: &Key<'_>, value: OsString, origin: Origin) -> Self {
        Self { command: command.to_owned(), option: option.to_owned(), value, is_switch: key.is_switch(), origin }
    }

    /// The state of a switch; `None` if the option takes values.
    pub fn switch(&self) -> Option<bool> {
        self.is_switch.then(|| self.value == "true")
    }
}

/// A message about unreadable or invalid defaults.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{0}")]
pub struct SettingsError(String);

impl SettingsError {
    fn unread(place: &Place, why: impl fmt::Display) -> Self {
        Self(format!("cannot read the settings in {}: {why}", place.shown()))
    }

    fn at(origin: &Origin, why: impl fmt::Display) -> Self {
        Self(format!("{origin}: {why}"))
    }
}

/// All defaults that are set, and files that were not read.
#[derive(Clone, Default, Debug)]
pub struct Settings {
    /// The effective default of each option, in the order found.
    pub settings: Vec<Setting>,
    /// The places searched for files.
    pub places: Vec<Place>,
}

impl Settings {
    /// Reads files and variables. `command` defines the options. Fails if a named file cannot be read, an option does not exist or may have
    /// no default, or is set twice in a file. Skips other files that cannot be read or that root must not trust; their [`Place`] tells why.
    pub fn read(command: &Command) -> Result<Self, SettingsError> {
        let mut read = Self { places: places(), ..Self::default() };
        let mut found = Vec::new();
        for place in &mut read.places {
            match trusted::read(&place.path, LARGEST) {
                Ok(None) if place.kind == PlaceKind::Named => {
                    let why = format!("there is no such file; {SWITCH} names it");
                    return Err(SettingsError::unread(place, why));
                }
                Ok(None) => {}
                Ok(Some(text)) => {
                    place.state = PlaceState::Read;
                    found.extend(parse_text(command, place, &text)?);
                }
                Err(error) if place.kind == PlaceKind::Named => {
                    return Err(SettingsError::unread(place, error));
                }
                Err(error) => place.state = PlaceState::Refused(error.to_string()),
            }
        }
        found.extend(from_environment(command, env::vars_os())?);
        for setting in found {
            read.add(setting);
        }
        Ok(read)
    }

    fn add(&mut self, setting: Setting) {
        let is_of_same = |other: &Setting| (&other.command, &other.option) == (&setting.command, &setting.option);
        self.settings.retain(|other| !is_of_same(other));
        self.settings.push(setting);
    }

    /// The value of an option that all commands have.
    pub fn common(&self, option: &str) -> Option<String> {
        let setting = self.settings.iter().find(|setting| setting.command.is_empty() && setting.option == option)?;
        setting.value.to_str().map(str::to_owned)
    }

    /// The defaults of a command, and those of all commands.
    pub fn for_command(&self, command: &str) -> impl Iterator<Item = &Setting> {
        self.settings.iter().filter(move |setting| setting.command.is_empty() || setting.command == command)
    }
}

/// The places of files, and whether each could be read, regardless of contents.
pub fn looked_at() -> Vec<Place> {
    let mut places = places();
    for place in &mut places {
        place.state = match trusted::read(&place.path, LARGEST) {
            Ok(None) => PlaceState::Absent,
            Ok(Some(_)) => PlaceState::Read,
            Err(error) => PlaceState::Refused(error.to_string()),
        };
    }
    places
}

fn parse_text(command: &Command, place: &Place, text: &str) -> Result<Vec<Setting>, SettingsError> {
    let mut settings: Vec<Setting> = Vec::new();
    let mut section = String::new();
    for (at, line) in text.lines().enumerate() {
        let origin = Origin::File(place.kind, place.path.clone(), at + 1);
        let wrong = |why: String| SettingsError::at(&origin, why);
        let (name, value) = match SettingLine::parse(line).map_err(wrong)? {
            SettingLine::Nothing => continue,
            SettingLine::Section(name) => {
                keys::section(command, name).map_err(wrong)?;
                name.clone_into(&mut section);
                continue;
            }
            SettingLine::Setting { key, value } => (key, value),
        };
        let key = Key::find(command, &section, name).map_err(wrong)?;
        let value = key.value(value).map_err(wrong)?;
        match settings.iter_mut().find(|setting| setting.command == section && setting.option == name) {
            Some(setting) => {
                return Err(wrong(format!("{name} is set twice, first at {}; remove one", setting.origin)));
            }
            None => settings.push(Setting::new(&section, name, &key, value, origin)),
        }
    }
    Ok(settings)
}

/// The settings of the environment: `BECALM_RECORD_DURATION` is `duration` in the section `[record]`.
fn from_environment(
    command: &Command,
    variables: impl Iterator<Item = (OsString, OsString)>,
) -> Result<Vec<Setting>, SettingsError> {
    let variables: Vec<(String, OsString)> = variables
        .filter_map(|(name, value)| Some((name.into_string().ok().filter(|name| name.starts_with("BECALM_"))?, value)))
        .collect();
    // Build the list of keys only if there is such a variable.
    if variables.iter().all(|(name, _)| name == SWITCH) {
        return Ok(Vec::new());
    }
    let mut settings = Vec::new();
    for (section, name) in all_keys(command) {
        let sought = variable(&section, &name);
        let Some((_, value)) = variables.iter().find(|(name, _)| *name == sought) else { continue };
        let origin = Origin::Variable(sought);
        let wrong = |why: String| SettingsError::at(&origin, why);
        let value = value.to_str().ok_or_else(|| wrong("its value is no text in UTF-8".to_owned()))?;
        let key = Key::find(command, &section, &name).map_err(wrong)?;
        settings.push(Setting::new(&section, &name, &key, key.value(value).map_err(wrong)?, origin));
    }
    Ok(settings)
}

#[cfg(test)]
mod tests;
