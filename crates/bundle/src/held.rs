//! A bundle's directory, held open.

use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};

use becalm_linux::access::Access;
use becalm_linux::folder::Folder;

/// The directory of a bundle being written. It is opened once, and files are created and read through it, because the writer may since have dropped
/// the privileges to search the parent directories and to give files to their user.
#[derive(Debug)]
pub struct HeldFolder {
    path: PathBuf,
    folder: Folder,
    /// As decided when the directory was opened.
    pub(crate) access: Access,
}

impl HeldFolder {
    /// Opens the directory of a bundle, or another one that becalm manages.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        Ok(Self { path: path.to_owned(), folder: Folder::open(path)?, access: Access::guarded() })
    }

    /// The user's path of the directory.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The path that this process uses to read the directory: its own in /proc, or the user's path if /proc is not mounted.
    pub(crate) fn own_path(&self) -> PathBuf {
        let own = self.folder.own_path();
        if own.exists() { own } else { self.path.clone() }
    }

    /// The directory and the name of a file below, given the user's path. Follows no link below the bundle's directory.
    pub(crate) fn parent_of<'a>(&self, target: &'a Path) -> io::Result<(Folder, &'a OsStr)> {
        let outside = || io::Error::new(io::ErrorKind::InvalidInput, "it is not in its bundle");
        let below = target.strip_prefix(&self.path).map_err(|_| outside())?;
        let name = below.file_name().ok_or_else(outside)?;
        Ok((self.folder.again()?.open_below(below.parent().unwrap_or(Path::new("")))?, name))
    }
}
