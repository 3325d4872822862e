//! /proc/self/mountinfo: what is mounted where.

use std::path::{Path, PathBuf};

use crate::file::{self, FileError, FormatError, parse};

/// One file system that is mounted somewhere.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Mount {
    /// The directory of the file system that is mounted here, `/` except for bind mounts and namespaces.
    pub root: String,
    /// The directory that it is mounted on, as seen by this process.
    pub point: PathBuf,
    /// Whether it is mounted read-only.
    pub read_only: bool,
    /// The kind of the file system: `tracefs`, `cgroup2`.
    pub kind: String,
    /// The file system's own options, which name the controllers of a cgroup v1 hierarchy: `rw,cpuset`.
    pub options: String,
}

impl Mount {
    /// Whether one of the file system's options has this name.
    pub fn has_option(&self, name: &str) -> bool {
        self.options.split(',').any(|option| option == name)
    }
}

/// Parses the file's text. Mounts are in the order of their creation: of two at one place, the later one is visible. Skips lines of another format.
/// Fails if no line has the fields documented in proc(5).
fn parse_mounts(text: &str) -> Result<Vec<Mount>, FormatError> {
    Ok(file::lines(text.lines(), parse_line)?.0)
}

/// Reads `proc/self/mountinfo`.
pub fn mounts(root: &Path) -> Result<Vec<Mount>, FileError> {
    parse(root, "proc/self/mountinfo", "the mounts", parse_mounts)
}

/// `42 23 0:13 / /sys/kernel/tracing rw,relatime shared:7 - tracefs nodev rw`.
fn parse_line(line: &str) -> Result<Mount, FormatError> {
    let error = || FormatError::new("a mount was expected", line);
    let (mount, system) = line.split_once(" - ").ok_or_else(error)?;
    let mut mount = mount.split(' ').skip(3);
    let mut next = || mount.next().ok_or_else(error);
    let (root, point, flags) = (next()?, next()?, next()?);
    let mut system = system.split(' ');
    let kind = system.next().filter(|kind| !kind.is_empty()).ok_or_else(error)?;
    Ok(Mount {
        root: unescape(root),
        point: unescape(point).into(),
        read_only: flags.split(',').any(|flag| flag == "ro"),
        kind: kind.to_owned(),
        options: system.nth(1).unwrap_or_default().to_owned(),
    })
}

/// The kernel writes space, tab, newline and backslash as three octal digits.
fn unescape(text: &str) -> String {
    let mut parts = text.split('\\');
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let code = part.get(..3).and_then(|digits| u8::from_str_radix(digits, 8).ok()).filter(u8::is_ascii);
        match code {
            Some(code) => {
                out.push(char::from(code));
                out += &part[3..];
            }
            None => {
                out.push('\\');
                out += part;
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn reads_mounts() {
        let text = "34 31 0:30 / /sys/fs/cgroup/cpuset rw,relatime shared:3 master:1 - cgroup cgroup rw,cpuset\n\
                    9 1 0:3 /a\\040b /mnt/x\\134y ro - ext4 /dev/vda rw\n";
        let mounts = parse_mounts(text).unwrap();
        assert!(mounts[0].kind == "cgroup" && mounts[0].has_option("cpuset") && !mounts[0].has_option("cpu"));
        assert_eq!((mounts[1].root.as_str(), mounts[1].point.as_path()), ("/a b", Path::new("/mnt/x\\y")));
        assert!(mounts[1].read_only && !mounts[0].read_only);
        assert!(parse_mounts("34 31 0:30 / /sys").is_err());
        assert_eq!(parse_mounts(&format!("34 31 0:30 / /sys\n{text}")).unwrap(), mounts);
        assert!(!super::mounts(Path::new("/")).unwrap().is_empty());
    }

    proptest! {
        #[test]
        fn never_panics(text in "[a-z0-7\\\\ é/-]{0,60}") {
            let _ = parse_mounts(&text);
        }
    }
}
