//! /proc/swaps: the swap areas.

use std::path::Path;

use crate::file::{self, FileError, FormatError, optional, parse};

/// A partition or file in use for swapping.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Swap {
    /// The path of the partition or file.
    pub name: String,
    /// The size of the partition or file, in KiB.
    pub size_kib: u64,
    /// The used part, in KiB.
    pub used_kib: u64,
}

/// Parses the file's text. Fails if a line is not of the form `NAME TYPE SIZE USED PRIORITY`.
fn parse_swaps(text: &str) -> Result<Vec<Swap>, FormatError> {
    let line = |line: &str| {
        // The kernel writes blanks in a path as \040, so there are always five columns.
        let mut columns = line.split_whitespace();
        let mut next = || columns.next().ok_or_else(|| FormatError::new("five columns were expected", line));
        let (name, _kind, size, used) = (next()?, next()?, next()?, next()?);
        let number = |text: &str| text.parse().map_err(|_| FormatError::new("a size in KiB was expected", text));
        Ok(Swap { name: name.to_owned(), size_kib: number(size)?, used_kib: number(used)? })
    };
    Ok(file::lines(text.lines().skip(1), line)?.0)
}

/// Reads `proc/swaps`; empty on a kernel without swapping. Fails if it exists and cannot be parsed.
pub fn swaps(root: &Path) -> Result<Vec<Swap>, FileError> {
    Ok(optional(parse(root, "proc/swaps", "where memory is swapped to", parse_swaps))?.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn reads_files_and_partitions() {
        let head = "Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n";
        let text = format!("{head}/dev/dm-1   partition\t8388604\t\t12\t\t-2\n/swap\\040file file 1024 0 -3\n");
        let swaps = parse_swaps(&text).unwrap();
        assert_eq!(swaps[0], Swap { name: "/dev/dm-1".into(), size_kib: 8_388_604, used_kib: 12 });
        assert_eq!((swaps.len(), swaps[1].size_kib), (2, 1024));
        assert!(parse_swaps(head).unwrap().is_empty() && parse_swaps("").unwrap().is_empty());
        assert!(parse_swaps(&format!("{head}/swap file much 0 -2\n")).is_err());
        assert!(parse_swaps(&format!("{head}/swap file\n")).is_err());
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "\\PC{0,80}\n\\PC{0,80}") {
            let _ = parse_swaps(&text);
        }
    }

    #[test]
    fn the_swaps_of_this_machine_are_read() {
        swaps(Path::new("/")).unwrap();
    }
}
