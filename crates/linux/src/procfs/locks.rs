//! /proc/locks: which process holds a lock on a file.

use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use crate::file::{FileError, read};

/// The process that holds a `flock` lock on a file; `None` if there is none, or if it is in another pid namespace. Fails if the locks or the file's
/// identity cannot be read.
pub fn lock_holder(root: &Path, file: &File) -> Result<Option<i32>, FileError> {
    let Ok(found) = file.metadata() else { return Ok(None) };
    let (major, minor) = (rustix::fs::major(found.dev()), rustix::fs::minor(found.dev()));
    let identity = format!("{major:02x}:{minor:02x}:{}", found.ino());
    Ok(holder(&read(root, "proc/locks", "the locks on files")?, &identity))
}

/// `1: FLOCK  ADVISORY  WRITE 1234 00:18:393 0 EOF`; waiting ones have `->` after their number.
fn holder(text: &str, identity: &str) -> Option<i32> {
    text.lines().find_map(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [_, "FLOCK", _, _, pid, file, ..] = words[..] else { return None };
        if file == identity { pid.parse().ok().filter(|pid| *pid > 0) } else { None }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_who_holds_a_file() {
        let text = "1: POSIX  ADVISORY  WRITE 9 00:18:393 0 EOF\n2: FLOCK  ADVISORY  WRITE 1234 00:18:393 0 EOF\n\
                    2: -> FLOCK  ADVISORY  WRITE 99 00:18:393 0 EOF\n3: FLOCK  ADVISORY  READ 0 00:18:394 0 EOF\n";
        assert_eq!(holder(text, "00:18:393"), Some(1234));
        // Zero is a process of another pid namespace.
        assert_eq!(holder(text, "00:18:394"), None);
        assert_eq!(holder(text, "00:18:395"), None);
    }

    #[test]
    fn names_this_process() {
        let file = tempfile::tempfile().unwrap();
        assert_eq!(lock_holder(Path::new("/"), &file).unwrap(), None);
        file.lock().unwrap();
        assert_eq!(lock_holder(Path::new("/"), &file).unwrap(), Some(std::process::id().cast_signed()));
    }
}
