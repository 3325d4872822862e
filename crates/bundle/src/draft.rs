//! Files that get their name only when they are complete and on the disk.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use becalm_linux::file::sync_folder;

use super::BundleError;

/// A file under a hidden name in the folder of the final one. Dropped without having been published, it is removed.
#[derive(Debug)]
pub struct Draft {
    file: File,
    /// The name that it has until it is published; `None` once it has none of its own any more, or where it never had one.
    hidden: Option<PathBuf>,
    target: PathBuf,
}

impl Draft {
    /// Begins a file in place of what may stand at `target`, which stays as it is until [`Self::finish`]. Where `target` is a link,
    /// the file that it points to is replaced. What is no regular file, such as a pipe, cannot be replaced and is written as it is.
    ///
    /// # Errors
    /// If no file can be made there, or a folder has that name.
    pub fn replace(target: &Path) -> Result<Self, BundleError> {
        let resolved = fs::canonicalize(target).unwrap_or_else(|_| target.to_owned());
        let failed = || BundleError::io("create", target);
        match fs::metadata(&resolved) {
            Ok(found) if found.is_dir() => Err(failed()(io::Error::new(io::ErrorKind::IsADirectory, "it is a folder"))),
            Ok(found) if !found.is_file() => {
                let file = File::options().write(true).open(&resolved).map_err(failed())?;
                Ok(Self { file, hidden: None, target: resolved })
            }
            _ => Self::new(resolved),
        }
    }

    /// Opens a draft of `target`, under a name that neither another writer uses nor a killed one left.
    pub(crate) fn new(target: PathBuf) -> Result<Self, BundleError> {
        let name = target.file_name().unwrap_or_default().to_string_lossy();
        let mut number = 0_u64;
        loop {
            let hidden = target.with_file_name(format!(".{name}.{number}.draft"));
            match File::create_new(&hidden) {
                Ok(file) => return Ok(Self { file, hidden: Some(hidden), target }),
                Err(cause) if cause.kind() == io::ErrorKind::AlreadyExists => number += 1,
                Err(cause) => return Err(BundleError::io("create", &target)(cause)),
            }
        }
    }

    /// The path under which the file will be published.
    pub(crate) fn target(&self) -> &Path {
        &self.target
    }

    pub(crate) fn file(&self) -> &File {
        &self.file
    }

    /// Brings the contents onto the disk, and returns how many bytes they are.
    pub(crate) fn sync(&self) -> Result<u64, BundleError> {
        let error = |cause| BundleError::io("write", &self.target)(cause);
        self.file.sync_all().map_err(error)?;
        Ok(self.file.metadata().map_err(error)?.len())
    }

    /// Gives the file its name, in place of a file that may bear it already. To be called after [`Self::sync`].
    pub(crate) fn publish(mut self) -> Result<(), BundleError> {
        let Some(hidden) = &self.hidden else { return Ok(()) };
        fs::rename(hidden, &self.target).map_err(BundleError::io("write", &self.target))?;
        // Another writer may take the hidden name from now on.
        self.hidden = None;
        sync_folder_of(&self.target)
    }

    /// Brings the contents onto the disk, and gives the file its name.
    ///
    /// # Errors
    /// If what was written does not reach the disk, or the name cannot be given.
    pub fn finish(self) -> Result<(), BundleError> {
        if self.hidden.is_some() {
            self.sync()?;
        }
        self.publish()
    }

    /// Gives the file its name if no other bears it, and says whether it did.
    pub(crate) fn publish_new(self) -> Result<bool, BundleError> {
        let Some(hidden) = &self.hidden else { return Ok(false) };
        match fs::hard_link(hidden, &self.target) {
            Ok(()) => {}
            Err(cause) if cause.kind() == io::ErrorKind::AlreadyExists => return Ok(false),
            // File systems without hard links say one of these. To look first and then rename leaves an instant in
            // which another writer could get in between; there is nothing better that works everywhere.
            Err(cause) if matches!(cause.kind(), io::ErrorKind::PermissionDenied | io::ErrorKind::Unsupported) => {
                if self.target.symlink_metadata().is_ok() {
                    return Ok(false);
                }
                return self.publish().map(|()| true);
            }
            Err(cause) => return Err(BundleError::io("write", &self.target)(cause)),
        }
        sync_folder_of(&self.target)?;
        Ok(true)
    }
}

impl Write for Draft {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        if let Some(hidden) = &self.hidden {
            // If this fails, a hidden file stays that no reader looks at.
            let _ = fs::remove_file(hidden);
        }
    }
}

/// Makes the names in a file's folder last.
fn sync_folder_of(target: &Path) -> Result<(), BundleError> {
    let folder = target.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    sync_folder(folder).map_err(BundleError::io("sync the folder", folder))
}

/// Space on the disk that is held for the closing document, so that a disk which the recording itself filled does not
/// keep the run from being closed.
///
/// The file has no name from the start: dropping it, or the death of the process, gives the space back. On file
/// systems that compress or copy on write this helps as far as they honor what was written.
pub(crate) struct Reserve(#[expect(dead_code, reason = "held for the space that it takes")] File);

impl Reserve {
    /// Takes `bytes` in the folder of `target`.
    pub(crate) fn new(target: &Path, bytes: usize) -> Result<Self, BundleError> {
        let draft = Draft::new(target.with_extension("reserve"))?;
        let error = |cause| BundleError::io("reserve space for", target)(cause);
        let mut file = draft.file().try_clone().map_err(error)?;
        drop(draft);
        let block = [0_u8; 1 << 14];
        for _ in 0..bytes.div_ceil(block.len()) {
            file.write_all(&block).map_err(error)?;
        }
        file.sync_all().map_err(error)?;
        Ok(Self(file))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_finished_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("page.html");
        fs::write(&target, "before").unwrap();
        let mut draft = Draft::replace(&target).unwrap();
        draft.write_all(b"half").unwrap();
        drop(draft);
        assert_eq!(fs::read_to_string(&target).unwrap(), "before");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn what_is_finished_replaces_also_behind_a_link() {
        let folder = tempfile::tempdir().unwrap();
        let (target, link) = (folder.path().join("page.html"), folder.path().join("link.html"));
        fs::write(&target, "before").unwrap();
        std::os::unix::fs::symlink(&target, &link).unwrap();
        let mut draft = Draft::replace(&link).unwrap();
        draft.write_all(b"after").unwrap();
        draft.finish().unwrap();
        assert_eq!(fs::read_to_string(&target).unwrap(), "after");
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
    }

    #[test]
    fn a_folder_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let error = Draft::replace(folder.path()).expect_err("a folder cannot be replaced");
        assert!(error.to_string().ends_with("it is a folder"), "{error}");
    }
}
