//! Settings of the kernel that are files: reading their whole text and writing a new one, below a root folder.
//!
//! What a text means, and whether it should be changed, is for others to say.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// The place of an absolute path below a root folder.
#[must_use]
pub fn place(root: &Path, path: &Path) -> PathBuf {
    root.join(path.strip_prefix("/").unwrap_or(path))
}

/// The whole text, as it is.
///
/// # Errors
/// If the file is not there, may not be read, or holds no UTF-8.
pub fn read(root: &Path, path: &Path) -> io::Result<String> {
    fs::read_to_string(place(root, path))
}

/// Writes a text in one system call, since the kernel takes each as a value of its own. The file must be there.
///
/// # Errors
/// What the kernel answers: `EINVAL` for a value that it does not take, `EIO` or `EPERM` for an interrupt that it manages
/// itself, `EBUSY`; and where not all was taken.
pub fn write(root: &Path, path: &Path, text: &str) -> io::Result<()> {
    // The kernel's files ignore the truncation; in others no rest of a longer text stays.
    let mut file = OpenOptions::new().write(true).truncate(true).open(place(root, path))?;
    // An empty text would be no call at all. The kernel takes a line's end for an empty value.
    let bytes = if text.is_empty() { b"\n" } else { text.as_bytes() };
    let taken = file.write(bytes)?;
    if taken == bytes.len() {
        return Ok(());
    }
    Err(io::Error::other(format!("the kernel took only {taken} of {} bytes", bytes.len())))
}

/// Has the entries of a folder survive a crash: what was made, renamed or removed in it.
///
/// # Errors
/// If it cannot be opened or its file system cannot be written.
pub fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_replace_each_other_and_files_are_not_made() {
        let root = tempfile::tempdir().unwrap();
        let path = Path::new("/a");
        assert_eq!(write(root.path(), path, "1").unwrap_err().kind(), io::ErrorKind::NotFound);
        fs::write(root.path().join("a"), "950000\n").unwrap();
        write(root.path(), path, "-1\n").unwrap();
        assert_eq!(read(root.path(), path).unwrap(), "-1\n");
        write(root.path(), path, "").unwrap();
        assert_eq!(read(root.path(), path).unwrap(), "\n");
        sync_folder(root.path()).unwrap();
    }
}
