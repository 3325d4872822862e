//! The places of settings files.

use std::env;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use becalm_command::child::SWITCH;
use becalm_units::printable;

const SYSTEM: &str = "/etc/becalm/config";

/// The owner of the file; later ones take precedence.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum PlaceKind {
    /// The machine's.
    System,
    User,
    /// The file named by `BECALM_CONFIG`.
    Named,
}

/// The result of reading a file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum PlaceState {
    /// There is none.
    Absent,
    Read,
    /// It exists but was not read, for this reason.
    Refused(String),
}

/// A place of a settings file.
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

    /// Its path in printable form.
    pub fn shown(&self) -> String {
        printable(&self.path.to_string_lossy()).into_owned()
    }
}

/// Whether defaults are disabled.
pub fn are_off() -> bool {
    env::var_os(SWITCH).is_some_and(|named| named.is_empty())
}

/// The possible files, in ascending precedence.
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

/// becalm's directory in one of the user's base directories of the XDG specification: in `named` if that is an absolute path, else in
/// `usual` in the home.
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
