//! The destination of an export: a file, which gets its name when it is complete, standard output, or a directory.

use std::io::{self, BufWriter, IntoInnerError, IsTerminal, Write};
use std::path::{Path, PathBuf};

use becalm_bundle::Draft;
use becalm_linux::folder;
use becalm_units::fault::{self, Context, UsageError};

/// A file being written.
pub type File = BufWriter<Draft>;

pub enum Destination<'a> {
    /// Standard output.
    Stdout(&'a mut dyn Write),
    File(PathBuf),
    /// A directory of files.
    Folder(PathBuf),
}

impl<'a> Destination<'a> {
    /// The destination that the user named. Fails if binary data would go to a terminal.
    pub fn new(path: &Path, is_text: bool, out: &'a mut dyn Write) -> Result<Self, UsageError> {
        if path.as_os_str() == "-" {
            if !is_text && io::stdout().is_terminal() {
                let why = "standard output is a terminal, and this format is not text: name a file with -o, or pipe it";
                return Err(UsageError::new(why.to_owned()));
            }
            return Ok(Self::Stdout(out));
        }
        let ends_in_slash = path.as_os_str().as_encoded_bytes().ends_with(b"/");
        Ok(if ends_in_slash || path.is_dir() { Self::Folder(path.to_owned()) } else { Self::File(path.to_owned()) })
    }

    pub fn write(self, write: impl FnOnce(&mut dyn Write) -> fault::Result<()>) -> fault::Result<()> {
        match self {
            Self::Stdout(out) => {
                let mut out = BufWriter::new(out);
                named("standard output", write(&mut out).and_then(|()| Ok(out.flush()?)))
            }
            Self::File(path) | Self::Folder(path) => {
                let mut out = begin(&path)?;
                named(path.display(), write(&mut out))?;
                finish(&path, out)
            }
        }
    }
}

/// Makes a directory for files if there is none.
pub fn make_folder(path: &Path) -> fault::Result<()> {
    folder::make_all(path).with_context(|| format!("cannot create the directory {}", path.display()))
}

pub fn begin(path: &Path) -> fault::Result<File> {
    Ok(BufWriter::new(Draft::replace(path)?))
}

pub fn finish(path: &Path, out: File) -> fault::Result<()> {
    let draft = out.into_inner().map_err(IntoInnerError::into_error);
    draft.with_context(|| format!("cannot write {}", path.display()))?.finish()?;
    Ok(())
}

/// Adds the name of the file to an error.
pub fn named<T>(path: impl std::fmt::Display, result: fault::Result<T>) -> fault::Result<T> {
    result.map_err(|error| {
        let is_io = error.causes().any(|cause| cause.is::<io::Error>());
        if is_io { error.context(format_args!("cannot write {path}")) } else { error }
    })
}
