//! Files that other processes of this user open by a path, for as long as the process that created them lives.
//!
//! Such a path is in the environment of programs, which may outlive this process; a user who could then put a file there would decide what they load.
//! So it leads into a directory of this user's that no other user can recreate (see the module `places`): once the file is gone, no other user can
//! put one there. A path into `/proc` would not do, because process numbers are reused.

mod places;

use std::fs::{File, Permissions};
use std::io::{self, Write};
use std::ops::Deref;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::atomic::AtomicU64;

use crate::mapping::Mapping;
use crate::private;
pub use places::Places;
use places::{FilePurpose, HeldFile};

/// A file that programs map as code, and that is never written.
#[derive(Debug)]
pub struct CodeFile(HeldFile);

impl CodeFile {
    /// Writes these bytes into a file whose name starts with `name`, which starts with "becalm-", and ends with `.so`. Fails if there is no directory
    /// for it, or no space.
    pub fn new(places: &Places, name: &str, bytes: &[u8]) -> io::Result<Self> {
        let write = |file: &mut File| {
            file.write_all(bytes)?;
            file.set_permissions(Permissions::from_mode(0o400))
        };
        Ok(Self(places.make(FilePurpose::Code, name, ".so", write)?))
    }

    /// The path that other processes open.
    pub fn path(&self) -> &Path {
        self.0.path()
    }
}

/// 64-bit words that other processes also map.
#[derive(Debug)]
pub struct SharedWords {
    memory: Mapping,
    file: HeldFile,
}

impl SharedWords {
    /// Creates this many words, all zero, in a file whose name starts with `name`, which starts with "becalm-". Fails if there is no directory for
    /// it, or not enough space.
    pub fn new(places: &Places, name: &str, words: usize) -> io::Result<Self> {
        let words = words.max(1);
        let bytes = words.checked_mul(size_of::<AtomicU64>()).ok_or(io::ErrorKind::OutOfMemory)?;
        let file = places.make(FilePurpose::Memory, name, "", |file| {
            // Writing to memory for which the disk has no space would end the writing process.
            private::hold_space(file, bytes as u64)?;
            file.set_len(bytes as u64)
        })?;
        // The file is never shortened: only processes of this user can open it, and those that do are becalm and its library.
        Ok(Self { memory: Mapping::of_file(file.file(), words)?, file })
    }

    /// The path that other processes open.
    pub fn path(&self) -> &Path {
        self.file.path()
    }
}

impl Deref for SharedWords {
    type Target = [AtomicU64];

    fn deref(&self) -> &[AtomicU64] {
        &self.memory
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::MetadataExt;
    use std::sync::atomic::Ordering;

    #[test]
    fn code_is_what_was_given_and_only_to_be_read() {
        let folder = tempfile::tempdir().unwrap();
        let file = CodeFile::new(&Places::at(&[folder.path()]), "becalm-test", b"some bytes").unwrap();
        let path = file.path().to_owned();
        assert_eq!(fs::read(&path).unwrap(), b"some bytes");
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o7777, 0o400);
        drop(file);
        assert!(!path.exists());
    }

    #[test]
    fn words_are_those_that_others_see() {
        let folder = tempfile::tempdir().unwrap();
        let words = SharedWords::new(&Places::at(&[folder.path()]), "becalm-test", 3).unwrap();
        words[1].store(7, Ordering::Relaxed);
        let path = words.path().to_owned();
        assert_eq!(fs::read(&path).unwrap(), [[0; 8], 7_u64.to_ne_bytes(), [0; 8]].concat());
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o7777, 0o600);
        drop(words);
        assert!(!path.exists());
    }

    #[test]
    fn an_absurd_size_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        // The first two wrap to a few bytes.
        for words in [usize::MAX / 8 + 2, usize::MAX, usize::MAX / 16] {
            assert!(SharedWords::new(&Places::at(&[folder.path()]), "becalm-test", words).is_err(), "{words}");
        }
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}
