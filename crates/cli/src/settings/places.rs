//! Where files of settings lie.

use std::env;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use becalm_command::child::SWITCH;
use becalm_units::printable;

const SYSTEM: &str = "/etc/becalm/config";

/// Whose file it is; the later over the earlier.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum PlaceKind {
    /// That of the machine.
    System,
    User,
    /// The one that `BECALM_CONFIG` names.
    Named,
}

/// What became of a file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum PlaceState {
    /// There is none.
    Absent,
    Read,
    /// It is there, and was not read: why.
    Refused(String),
}

/// Where a file is looked for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Place {
    /// Whose it is.
    pub kind: PlaceKind,
    pub path: PathBuf,
    /// Whether it is there.
    pub state: PlaceState,
}

impl Place {
    fn new(kind: PlaceKind, path: impl Into<PathBuf>) -> Self {
        Self { kind, path: path.into(), state: PlaceState::Absent }
    }

    /// Its path for a terminal.
    pub fn shown(&self) -> String {
        printable(&self.path.to_string_lossy()).into_owned()
    }
}

/// Whether no defaults are read at all.
pub fn are_off() -> bool {
    env::var_os(SWITCH).is_some_and(|named| named.is_empty())
}

/// The files that are looked for, the one that is over the others last.
pub fn places() -> Vec<Place> {
    let variable = |name| env::var_os(name);
    chosen(variable(SWITCH).as_deref(), variable("XDG_CONFIG_HOME").as_deref(), variable("HOME").as_deref())
}

fn chosen(named: Option<&OsStr>, config_home: Option<&OsStr>, home: Option<&OsStr>) -> Vec<Place> {
    match named {
        Some(named) if named.is_empty() => Vec::new(),
        Some(named) => vec![Place::new(PlaceKind::Named, named)],
        None => {
            let user = user_folder(config_home, home, ".config").map(|folder| folder.join("config"));
            let user = user.map(|path| Place::new(PlaceKind::User, path));
            std::iter::once(Place::new(PlaceKind::System, SYSTEM)).chain(user).collect()
        }
    }
}

/// becalm's folder below one of the user's base folders, as the XDG specification has them: below `named` where that is a whole path,
/// else below `usual` in the home.
pub fn user_folder(named: Option<&OsStr>, home: Option<&OsStr>, usual: &str) -> Option<PathBuf> {
    let whole = |path: &&OsStr| Path::new(path).is_absolute();
    let named = named.filter(whole).map(PathBuf::from);
    named.or_else(|| home.filter(whole).map(|home| Path::new(home).join(usual))).map(|base| base.join("becalm"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_lie_where_the_specification_has_them() {
        let paths = |named: Option<&str>, config: Option<&str>, home: Option<&str>| -> Vec<String> {
            let places = chosen(named.map(OsStr::new), config.map(OsStr::new), home.map(OsStr::new));
            places.iter().map(Place::shown).collect()
        };
        assert_eq!(paths(None, None, Some("/home/a")), [SYSTEM, "/home/a/.config/becalm/config"]);
        assert_eq!(paths(None, Some("/c"), Some("/home/a")), [SYSTEM, "/c/becalm/config"]);
        assert_eq!(paths(None, Some("here"), Some("/home/a")), [SYSTEM, "/home/a/.config/becalm/config"], "not whole");
        assert_eq!(paths(None, None, None), [SYSTEM]);
        assert_eq!(paths(Some("my.conf"), Some("/c"), Some("/home/a")), ["my.conf"]);
        assert!(paths(Some(""), Some("/c"), Some("/home/a")).is_empty());
    }
}
