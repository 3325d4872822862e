//! A bundle's folder, held open.

use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};

use becalm_linux::access::Access;
use becalm_linux::folder::Folder;

/// The folder of a bundle that is being written. It is opened once, and its files are made and read by it: whoever writes may have given
/// up the right to search the folders above, and to give files to the user that they are for.
#[derive(Debug)]
pub struct HeldFolder {
    path: PathBuf,
    folder: Folder,
    /// As it was decided when the folder was opened.
    pub(crate) access: Access,
}

impl HeldFolder {
    /// Opens the folder of a bundle, or another one that becalm keeps.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        Ok(Self { path: path.to_owned(), folder: Folder::open(path)?, access: Access::guarded() })
    }

    /// The path that the user knows.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The path by which this process reads what is in it. Where proc is not mounted, which has a path that is this process's own,
    /// it is the one that the user knows.
    pub(crate) fn own_path(&self) -> PathBuf {
        let own = self.folder.own_path();
        if own.exists() { own } else { self.path.clone() }
    }

    /// The folder of a file below, by the path that the user knows, and the file's name. No link below the folder is followed.
    pub(crate) fn parent_of<'a>(&self, target: &'a Path) -> io::Result<(Folder, &'a OsStr)> {
        let outside = || io::Error::new(io::ErrorKind::InvalidInput, "it does not lie in its bundle");
        let below = target.strip_prefix(&self.path).map_err(|_| outside())?;
        let name = below.file_name().ok_or_else(outside)?;
        Ok((self.folder.again()?.open_below(below.parent().unwrap_or(Path::new("")))?, name))
    }
}
