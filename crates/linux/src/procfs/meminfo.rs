//! /proc/meminfo: the kernel's memory.

use std::path::Path;

use crate::file::{FileError, FormatError, parse};

/// The memory managed by the kernel, in bytes. Fails if the file cannot be read or does not contain it.
pub fn total_bytes(root: &Path) -> Result<u64, FileError> {
    parse(root, "proc/meminfo", "how much memory there is", total)
}

/// The value of the line `MemTotal:`, in KiB.
fn total(text: &str) -> Result<u64, FormatError> {
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:")).unwrap_or_default();
    let number = line.split_whitespace().next().and_then(|number| number.parse::<u64>().ok());
    number
        .and_then(|kib| kib.checked_mul(1024))
        .ok_or_else(|| FormatError::new("a line like 'MemTotal: 8000 kB' was expected", text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_total_is_read_and_nothing_else_is_taken_for_it() {
        assert_eq!(total("MemTotal:        8139548 kB\nMemFree: 1 kB\n").unwrap(), 8_139_548 * 1024);
        for text in ["", "MemFree: 1 kB\n", "MemTotal: many kB\n", "MemTotal: 18446744073709551615 kB\n"] {
            assert!(total(text).is_err(), "{text}");
        }
    }
}
