//! /proc/self/limits: the resource limits for real-time scheduling and locked memory. Each is read separately.

use std::path::Path;

use crate::file::{FileError, FormatError, parse};

/// The highest real-time priority that this process may use without privileges, 0 for none; `None` means "unlimited".
pub fn rt_priority(root: &Path) -> Result<Option<u64>, FileError> {
    soft_limit(root, "Max realtime priority")
}

/// How many bytes this process may lock into memory without privileges; `None` means "unlimited".
pub fn locked_memory(root: &Path) -> Result<Option<u64>, FileError> {
    soft_limit(root, "Max locked memory")
}

fn soft_limit(root: &Path, name: &'static str) -> Result<Option<u64>, FileError> {
    parse(root, "proc/self/limits", "the resource limits", |text| parse_soft_limit(text, name))
}

fn parse_soft_limit(text: &str, name: &'static str) -> Result<Option<u64>, FormatError> {
    let value = text.lines().find_map(|line| line.strip_prefix(name)?.split_whitespace().next());
    match value {
        Some("unlimited") => Ok(None),
        Some(number) => number.parse().map(Some).map_err(|_| FormatError::new("a limit was expected", number)),
        None => Err(FormatError::new(name, "no such line")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file::write_tree;

    #[test]
    fn soft_limits_are_read() {
        let root = tempfile::tempdir().unwrap();
        let read = |text: &str| {
            write_tree(root.path(), &[("proc/self/limits", text)]);
            [rt_priority(root.path()), locked_memory(root.path())].map(|limit| limit.map_err(|error| error.to_string()))
        };
        let text = "Limit      Soft Limit  Hard Limit   Units\nMax locked memory     8388608   unlimited  bytes\n\
                    Max realtime priority     0      99   \nMax realtime timeout      unlimited  unlimited us\n";
        assert_eq!(read(text), [Ok(Some(0)), Ok(Some(8_388_608))]);
        assert_eq!(read(&text.replace("8388608", "unlimited"))[1], Ok(None));
        assert!(read("\n")[0].as_ref().unwrap_err().contains("Max realtime priority"));
        // An unreadable limit does not affect the others.
        let [priority, memory] = read(&text.replace("8388608", "x"));
        assert!(priority == Ok(Some(0)) && memory.is_err(), "{priority:?}, {memory:?}");
        let [priority, memory] = read(&text.replace("realtime priority", "prio"));
        assert!(priority.is_err() && memory == Ok(Some(8_388_608)), "{priority:?}, {memory:?}");
        assert!(rt_priority(Path::new("/")).is_ok() && locked_memory(Path::new("/")).is_ok());
    }
}
