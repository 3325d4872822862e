//! /proc/self/limits: the resource limits that decide about real-time scheduling and locked memory.

use std::path::Path;

use crate::file::{FileError, FormatError, parse};

/// Soft limits of this process; nothing stands for "unlimited".
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Limits {
    /// The highest real-time priority that it may take without privileges; 0 for none.
    pub rt_priority: Option<u64>,
    /// How many bytes it may lock into memory without privileges.
    pub locked_memory: Option<u64>,
}

impl Limits {
    /// From the file's text.
    ///
    /// # Errors
    /// If one of the limits is missing or is no number.
    pub fn parse(text: &str) -> Result<Self, FormatError> {
        let soft = |name: &'static str| {
            let value = text.lines().find_map(|line| line.strip_prefix(name)?.split_whitespace().next());
            match value {
                Some("unlimited") => Ok(None),
                Some(number) => number.parse().map(Some).map_err(|_| FormatError::new("a limit was expected", number)),
                None => Err(FormatError::new(name, "no such line")),
            }
        };
        Ok(Self { rt_priority: soft("Max realtime priority")?, locked_memory: soft("Max locked memory")? })
    }

    /// Reads `proc/self/limits`.
    ///
    /// # Errors
    /// If it cannot be read or understood.
    pub fn read(root: &Path) -> Result<Self, FileError> {
        parse(root, "proc/self/limits", "the resource limits", Self::parse)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn soft_limits_are_read() {
        let text = "Limit      Soft Limit  Hard Limit   Units\nMax locked memory     8388608   unlimited  bytes\n\
                    Max realtime priority     0      99   \nMax realtime timeout      unlimited  unlimited us\n";
        assert_eq!(Limits::parse(text).unwrap(), Limits { rt_priority: Some(0), locked_memory: Some(8_388_608) });
        let free = text.replace("8388608", "unlimited");
        assert_eq!(Limits::parse(&free).unwrap().locked_memory, None);
        assert!(Limits::parse("").unwrap_err().to_string().contains("Max realtime priority"));
        assert!(Limits::parse(&text.replace("8388608", "x")).is_err());
        Limits::read(Path::new("/")).unwrap();
    }
}
