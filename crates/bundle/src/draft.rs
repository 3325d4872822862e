//! Files that get their name only when they are complete and on the disk.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::BundleError;

/// A file under a hidden name in the folder of the final one. Dropped without having been published, it is removed.
pub(crate) struct Draft {
    file: File,
    hidden: PathBuf,
    target: PathBuf,
    renamed: bool,
}

impl Draft {
    /// Opens a draft of `target`, under a name that neither another writer uses nor a killed one left.
    pub(crate) fn new(target: PathBuf) -> Result<Self, BundleError> {
        let name = target.file_name().unwrap_or_default().to_string_lossy();
        let mut number = 0_u64;
        loop {
            let hidden = target.with_file_name(format!(".{name}.{number}.draft"));
            match File::create_new(&hidden) {
                Ok(file) => return Ok(Self { file, hidden, target, renamed: false }),
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
        fs::rename(&self.hidden, &self.target).map_err(BundleError::io("write", &self.target))?;
        self.renamed = true;
        sync_folder_of(&self.target)
    }

    /// Gives the file its name if no other bears it, and says whether it did.
    pub(crate) fn publish_new(self) -> Result<bool, BundleError> {
        match fs::hard_link(&self.hidden, &self.target) {
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

impl Drop for Draft {
    fn drop(&mut self) {
        // Another writer may have taken the hidden name since the rename.
        if self.renamed {
            return;
        }
        // If this fails, a hidden file stays that no reader looks at.
        let _ = fs::remove_file(&self.hidden);
    }
}

/// Makes the names in a file's folder last. Not every file system can sync a folder; those that cannot have no
/// stronger promise to give.
fn sync_folder_of(target: &Path) -> Result<(), BundleError> {
    let folder = target.parent().unwrap_or(Path::new("."));
    match File::open(folder).and_then(|folder| folder.sync_all()) {
        Err(cause) if !matches!(cause.kind(), io::ErrorKind::InvalidInput | io::ErrorKind::Unsupported) => {
            Err(BundleError::io("sync the folder", folder)(cause))
        }
        _ => Ok(()),
    }
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
