//! Files that get their name only when they are complete.

use std::fs::{self, File, Permissions};
use std::io::{BufWriter, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use anyhow::Context;
use tempfile::NamedTempFile;

/// A file that is being written: under another name in the same folder, which is removed if it is not finished.
pub struct Draft {
    target: PathBuf,
    out: Out,
}

enum Out {
    Hidden(BufWriter<NamedTempFile>),
    /// What is no regular file, such as a pipe, cannot be replaced and is written as it is.
    Direct(BufWriter<File>),
}

impl Draft {
    /// Begins a file in place of what may stand at `target`, which stays as it is until [`Self::finish`].
    ///
    /// # Errors
    /// If no file can be made there.
    pub fn new(target: &Path) -> anyhow::Result<Self> {
        let context = || format!("cannot create {}", target.display());
        // A link keeps pointing to its file, and that gets the contents.
        let resolved = fs::canonicalize(target).unwrap_or_else(|_| target.to_owned());
        let out = match fs::metadata(&resolved) {
            Ok(found) if found.is_dir() => anyhow::bail!("{}: it is a folder", context()),
            Ok(found) if !found.is_file() => {
                let file = File::options().write(true).open(&resolved).with_context(context)?;
                Out::Direct(BufWriter::new(file))
            }
            _ => {
                let folder =
                    resolved.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
                let mut builder = tempfile::Builder::new();
                // As any other new file: what the umask leaves of it.
                let builder = builder.prefix(".becalm-").suffix(".draft").permissions(Permissions::from_mode(0o666));
                // The error of the hidden file would name a path that nobody gave.
                fs::metadata(folder).with_context(context)?;
                let file = builder.tempfile_in(folder).map_err(|error| match error.get_ref() {
                    Some(_) => std::io::Error::from(error.kind()),
                    None => error,
                });
                Out::Hidden(BufWriter::new(file.with_context(context)?))
            }
        };
        Ok(Self { target: resolved, out })
    }

    /// Gives the file its name.
    ///
    /// # Errors
    /// If what was written does not reach the disk, or the name cannot be given.
    pub fn finish(self) -> anyhow::Result<()> {
        let context = || format!("cannot write {}", self.target.display());
        match self.out {
            Out::Direct(mut out) => out.flush().with_context(context),
            Out::Hidden(out) => {
                let file = out.into_inner().map_err(std::io::IntoInnerError::into_error).with_context(context)?;
                file.as_file().sync_all().with_context(context)?;
                file.persist(&self.target).map_err(|error| error.error).with_context(context)?;
                Ok(())
            }
        }
    }
}

impl Write for Draft {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        match &mut self.out {
            Out::Hidden(out) => out.write(bytes),
            Out::Direct(out) => out.write(bytes),
        }
    }

    fn flush(&mut self) -> std::io::Result<()> {
        match &mut self.out {
            Out::Hidden(out) => out.flush(),
            Out::Direct(out) => out.flush(),
        }
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
        let mut draft = Draft::new(&target).unwrap();
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
        let mut draft = Draft::new(&link).unwrap();
        draft.write_all(b"after").unwrap();
        draft.finish().unwrap();
        assert_eq!(fs::read_to_string(&target).unwrap(), "after");
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
    }

    #[test]
    fn a_folder_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let error = Draft::new(folder.path()).err().expect("a folder cannot be replaced");
        assert!(error.to_string().ends_with("it is a folder"), "{error}");
    }
}
