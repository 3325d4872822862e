//! A setting of the kernel: a small text file in /proc or /sys that holds one value.
//!
//! For the many files that need no parser of their own. Nothing is written here.

use std::fs;
use std::path::Path;

use crate::procfs::{FileError, below, is_gone, optional, read};

/// The value of a setting, without the white space around it; nothing if this kernel or machine has no such file.
///
/// # Errors
/// If the file exists and cannot be read.
pub fn text(root: &Path, name: &str) -> Result<Option<String>, FileError> {
    // Some drivers have a file for what they cannot do, and answer a reading with an error that says so.
    let refused = |error: &FileError| {
        let FileError::Read { source, .. } = error else { return false };
        matches!(source.raw_os_error(), Some(libc::ENODEV | libc::EOPNOTSUPP | libc::EINVAL | libc::ENOENT))
    };
    match read(root, name, "a setting of the kernel") {
        Err(error) if refused(&error) => Ok(None),
        result => Ok(optional(result)?.map(|text| text.trim().to_owned())),
    }
}

/// The names in a folder, sorted; none if there is no such folder.
///
/// # Errors
/// If the folder exists and cannot be listed.
pub fn names(root: &Path, folder: &str) -> Result<Vec<String>, FileError> {
    let path = below(root, folder);
    let failed = |source| FileError::Read { what: "the names in a folder", path: path.clone(), source };
    let listing = match fs::read_dir(&path) {
        Ok(listing) => listing,
        Err(error) if is_gone(&error) => return Ok(Vec::new()),
        Err(error) => return Err(failed(error)),
    };
    let name = |entry: std::io::Result<fs::DirEntry>| Ok(entry?.file_name().to_string_lossy().into_owned());
    let mut names: Vec<String> = listing.map(name).collect::<Result<_, _>>().map_err(failed)?;
    names.sort_unstable();
    Ok(names)
}

/// The chosen one of a setting that offers several: `madvise` of `always [madvise] never`. A text without brackets is
/// the choice itself.
#[must_use]
pub fn chosen(text: &str) -> &str {
    let inside = text.split_once('[').and_then(|(_, rest)| rest.split_once(']'));
    inside.map_or(text, |(chosen, _)| chosen).trim()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::procfs::write_tree;

    #[test]
    fn values_and_choices() {
        let root = tempfile::tempdir().unwrap();
        write_tree(root.path(), &[("sys/x/a", " 7\n"), ("sys/x/b", "always [madvise] never\n")]);
        assert_eq!(text(root.path(), "/sys/x/a").unwrap().as_deref(), Some("7"));
        assert_eq!(chosen(&text(root.path(), "/sys/x/b").unwrap().unwrap()), "madvise");
        assert_eq!((chosen("performance"), chosen("a ] b [")), ("performance", "a ] b ["));
        assert_eq!(text(root.path(), "/sys/x/c").unwrap(), None);
        assert!(text(root.path(), "/sys/x").unwrap_err().to_string().contains("/sys/x"));
        assert_eq!(names(root.path(), "/sys/x").unwrap(), ["a", "b"]);
        assert!(names(root.path(), "/sys/none").unwrap().is_empty());
        assert!(names(root.path(), "/sys/x/a").unwrap().is_empty());
    }
}
