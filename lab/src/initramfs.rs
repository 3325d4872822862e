//! The guest's first and only file system: an archive in the kernel's `newc` format, written in memory.
//!
//! Not compressed: the emulated processor would take longer to decompress it than the disk to read it.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use crate::LabError;

const FOLDER: u32 = 0o040_755;
const PROGRAM: u32 = 0o100_755;
const TRAILER: &str = "TRAILER!!!";

/// An archive under construction.
///
/// A member is a header of `070701` and 13 numbers of 8 hexadecimal digits (inode, mode, uid, gid, links, mtime,
/// size, device major and minor, special file major and minor, length of the name with its NUL, checksum), the
/// name with its NUL, zeros up to a multiple of 4, the contents, and zeros up to a multiple of 4. (Linux,
/// Documentation/driver-api/early-userspace/buffer-format.rst)
#[derive(Debug, Default)]
pub struct Initramfs {
    bytes: Vec<u8>,
    members: u32,
    folders: BTreeSet<String>,
}

impl Initramfs {
    /// An empty archive.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds an empty directory unless it exists. Directories must precede their contents.
    pub fn folder(&mut self, name: &str) {
        if self.folders.insert(name.to_owned()) {
            self.member(name, FOLDER, &[]);
        }
    }

    /// Adds a file that everyone may read and execute.
    pub fn file(&mut self, name: &str, contents: &[u8]) {
        self.member(name, PROGRAM, contents);
    }

    /// Adds a copy of a file of this machine.
    pub fn copy(&mut self, name: &str, from: &Path) -> Result<(), LabError> {
        let contents = fs::read(from).map_err(LabError::file("read", from))?;
        self.file(name, &contents);
        Ok(())
    }

    /// Adds a copy of a file of this machine at the same path, with its parent directories.
    pub fn copy_in_place(&mut self, from: &Path) -> Result<(), LabError> {
        let name = from.to_string_lossy();
        let name = name.trim_start_matches('/');
        for (end, _) in name.match_indices('/') {
            self.folder(&name[..end]);
        }
        self.copy(name, from)
    }

    /// Finishes the archive and returns its bytes.
    #[must_use]
    pub fn finish(mut self) -> Vec<u8> {
        self.member(TRAILER, 0, &[]);
        self.bytes
    }

    fn member(&mut self, name: &str, mode: u32, contents: &[u8]) {
        self.members += 1;
        let size = u32::try_from(contents.len()).expect("a member of an initramfs is smaller than 4 GiB");
        let name_length = u32::try_from(name.len() + 1).expect("a name is shorter than 4 GiB");
        let numbers = [self.members, mode, 0, 0, 1, 0, size, 0, 0, 0, 0, name_length, 0];
        self.bytes.extend_from_slice(b"070701");
        for number in numbers {
            self.bytes.extend_from_slice(format!("{number:08x}").as_bytes());
        }
        self.bytes.extend_from_slice(name.as_bytes());
        self.bytes.push(0);
        self.pad();
        self.bytes.extend_from_slice(contents);
        self.pad();
    }

    fn pad(&mut self) {
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_are_laid_out_as_the_kernel_reads_them() {
        let mut archive = Initramfs::new();
        archive.folder("bin");
        archive.file("bin/x", b"hello");
        let bytes = archive.finish();

        let folder = b"070701000000010000\
            41ed00000000000000000000000100000000000000000000000000000000000000000000000000000004000000 00bin\0";
        let folder: Vec<u8> = folder.iter().copied().filter(|&byte| byte != b' ').collect();
        assert_eq!(bytes[..folder.len()], folder);
        // The header and the name take 114 bytes, so 2 of padding follow.
        assert_eq!(bytes[114..122], *b"\0\x00070701");
        let file = &bytes[116..];
        assert_eq!(file[54..62], *b"00000005", "the size");
        assert_eq!(file[94..102], *b"00000006", "the length of the name with its NUL");
        assert_eq!(file[110..124], *b"bin/x\0hello\0\0\0");
        assert_eq!(bytes.len() % 4, 0);
        assert!(bytes.windows(TRAILER.len()).any(|part| part == TRAILER.as_bytes()));
    }
}
