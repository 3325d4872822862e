//! Texts that decide what this process does, like its configuration: read only if no other user could have written them.

use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

use rustix::fs::{Access, access};

use crate::private::{OTHERS_WRITE, trusted_users};

/// Reasons why such a text was not read.
#[derive(Debug, thiserror::Error)]
pub enum Unread {
    /// The process has root's rights, and another user could have written the text.
    #[error("becalm runs as root, and {0}")]
    Untrusted(String),
    /// It is not a regular file, is too long, is not text, or cannot be read.
    #[error("{0}")]
    Failed(io::Error),
}

impl From<io::Error> for Unread {
    fn from(error: io::Error) -> Self {
        Self::Failed(error)
    }
}

/// Reads a text of at most `most` bytes; `None` if there is no such file. A process of root reads only files that belong to root and that no other
/// user may write; one with capabilities only files that its user could read without them. Fails if the file exists but is not read.
pub fn read(path: &Path, most: u64) -> Result<Option<String>, Unread> {
    // As the user who called the program, whatever rights its file gives it.
    match access(path, Access::READ_OK) {
        Err(rustix::io::Errno::NOENT | rustix::io::Errno::NOTDIR) => return Ok(None),
        checked => checked.map_err(io::Error::from)?,
    }
    // Without O_NONBLOCK, opening a pipe would wait for its other end.
    let file = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(path)?;
    refuse_untrusted(&file)?;
    let mut bytes = Vec::new();
    file.take(most.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most {
        return Err(io::Error::other(format!("it has more than {most} bytes")).into());
    }
    let text = String::from_utf8(bytes).map_err(|_| io::Error::other("it is no text in UTF-8"))?;
    Ok(Some(text))
}

/// Checks the opened file rather than its path, which may name another one by now.
fn refuse_untrusted(file: &File) -> Result<(), Unread> {
    let found = file.metadata()?;
    if !found.is_file() {
        return Err(io::Error::other("it is no regular file").into());
    }
    if !rustix::process::geteuid().is_root() {
        return Ok(());
    }
    if !trusted_users()?.contains(&found.uid()) {
        return Err(Unread::Untrusted(format!("it belongs to user {}", found.uid())));
    }
    if found.mode() & OTHERS_WRITE != 0 {
        return Err(Unread::Untrusted(format!("others may write it (its mode is {:04o})", found.mode() & 0o7777)));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn texts_are_read_whole_or_not_at_all() {
        let place = tempfile::tempdir().unwrap();
        let path = |name: &str| place.path().join(name);
        assert!(matches!(read(&path("none"), 10), Ok(None)));
        fs::write(path("file"), "0123456789").unwrap();
        fs::set_permissions(path("file"), Permissions::from_mode(0o644)).unwrap();
        assert_eq!(read(&path("file"), 10).unwrap().unwrap(), "0123456789");
        assert!(matches!(read(&path("file/below"), 10), Ok(None)));
        assert_eq!(read(&path("file"), 9).unwrap_err().to_string(), "it has more than 9 bytes");
        assert_eq!(read(place.path(), 9).unwrap_err().to_string(), "it is no regular file");
        fs::write(path("bytes"), [0xff, 0xfe]).unwrap();
        assert_eq!(read(&path("bytes"), 9).unwrap_err().to_string(), "it is no text in UTF-8");
        rustix::fs::mkfifoat(rustix::fs::CWD, path("pipe"), rustix::fs::Mode::RUSR).unwrap();
        assert_eq!(read(&path("pipe"), 9).unwrap_err().to_string(), "it is no regular file");
    }

    #[test]
    fn root_reads_what_nobody_else_may_write() {
        if !rustix::process::geteuid().is_root() {
            return;
        }
        let place = tempfile::tempdir().unwrap();
        let file = place.path().join("file");
        fs::write(&file, "a = b").unwrap();
        for (mode, untrusted) in [(0o600, false), (0o644, false), (0o664, true), (0o646, true)] {
            fs::set_permissions(&file, Permissions::from_mode(mode)).unwrap();
            let read = read(&file, 99);
            assert_eq!(matches!(read, Err(Unread::Untrusted(_))), untrusted, "{mode:o}: {read:?}");
        }
        fs::set_permissions(&file, Permissions::from_mode(0o644)).unwrap();
        std::os::unix::fs::chown(&file, Some(65534), None).unwrap();
        let error = read(&file, 99).unwrap_err();
        assert_eq!(error.to_string(), "becalm runs as root, and it belongs to user 65534");
        // A link of another user to a file of root's leads to a file of root's.
        let link = place.path().join("link");
        std::os::unix::fs::symlink(&file, &link).unwrap();
        assert!(matches!(read(&link, 99), Err(Unread::Untrusted(_))));
    }
}
