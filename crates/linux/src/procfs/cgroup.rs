//! /proc/self/cgroup: the control groups that this process belongs to.

use std::path::Path;

use crate::file::{self, FileError, FormatError, parse};

/// The control group of this process in one hierarchy: one line of the file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Membership {
    /// The v1 controllers of the hierarchy; empty for v2.
    pub controllers: Vec<String>,
    /// The group's path from the root of the hierarchy, as seen in the process's cgroup namespace.
    pub path: String,
}

/// Parses the file's text, `3:cpuset:/a/b` and `0::/c`.
///
/// Skips lines of another format. Fails if no line has the three fields.
fn parse_memberships(text: &str) -> Result<Vec<Membership>, FormatError> {
    let line = |line: &str| {
        let error = || FormatError::new("'NUMBER:CONTROLLERS:PATH' was expected", line);
        let (_, rest) = line.split_once(':').ok_or_else(error)?;
        let (controllers, path) = rest.split_once(':').ok_or_else(error)?;
        let controllers = controllers.split(',').filter(|name| !name.is_empty()).map(str::to_owned).collect();
        Ok(Membership { controllers, path: path.to_owned() })
    };
    Ok(file::lines(text.lines(), line)?.0)
}

/// Reads `proc/self/cgroup`.
pub fn memberships(root: &Path) -> Result<Vec<Membership>, FileError> {
    parse(root, "proc/self/cgroup", "the control groups of this process", parse_memberships)
}

/// The same for another process. Fails if it is gone, or the file cannot be read or parsed.
pub fn memberships_of(root: &Path, pid: i32) -> Result<Vec<Membership>, FileError> {
    parse(root, format!("proc/{pid}/cgroup"), "the control groups of a process", parse_memberships)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_both_versions() {
        let groups = parse_memberships("4:cpu,cpuacct:/a:b/c\n9:name=systemd:/\n0::/user.slice\n").unwrap();
        assert_eq!(groups[0], Membership { controllers: vec!["cpu".into(), "cpuacct".into()], path: "/a:b/c".into() });
        assert!(groups[2].controllers.is_empty() && groups[2].path == "/user.slice");
        assert!(parse_memberships("4:cpu").is_err());
    }
}
