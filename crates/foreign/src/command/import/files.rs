//! The imported files: read completely, and recognized.

use std::path::{Path, PathBuf};

use becalm_command::messages::{option, say};
use becalm_linux::file;
use becalm_units::Named;
use becalm_units::fault::{self, Context, UsageError};

use crate::read::{Format, Source, guessed_by, near_miss, recognize};

/// The most bytes that are read, all files together. Memory takes a few times their size.
const LARGEST: u64 = 1 << 30;

pub struct InputFile {
    pub path: PathBuf,
    name: String,
    bytes: Vec<u8>,
}

impl InputFile {
    /// The file as the readers take it: without the byte order mark that some editors put in front of a text.
    pub fn source(&self) -> Source<'_> {
        const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";
        Source { name: &self.name, bytes: self.bytes.strip_prefix(BYTE_ORDER_MARK).unwrap_or(&self.bytes) }
    }

    pub fn size(&self) -> u64 {
        self.bytes.len() as u64
    }
}

/// Reads all of the files. Fails if one cannot be read or is no regular file, or if all together are too large.
pub fn read(paths: &[PathBuf]) -> fault::Result<Vec<InputFile>> {
    let mut left = LARGEST;
    let read = |path: &PathBuf| {
        let bytes = file::read_regular(path, left).with_context(|| format!("cannot read {}", path.display()))?;
        left -= bytes.len() as u64;
        let name = Path::file_name(path).unwrap_or_default().to_string_lossy().into_owned();
        Ok(InputFile { path: path.clone(), name, bytes })
    };
    paths.iter().map(read).collect()
}

/// The size of all files together, in bytes. Fails if it is more than `most`, because files of this kind take a large multiple of their
/// size of memory.
pub fn size(files: &[InputFile], most: u64, kind: &str) -> fault::Result<u64> {
    let size = files.iter().map(InputFile::size).sum();
    fault::ensure!(
        size <= most,
        "the files have {} MiB, and of {kind} at most {} MiB are read",
        size >> 20,
        most >> 20
    );
    Ok(size)
}

/// The chosen format, or else the one of all files, which is then printed. Fails if the format of a file is unknown, or two files have
/// different ones.
pub fn format(files: &[InputFile], chosen: Option<Format>) -> fault::Result<Format> {
    if let Some(format) = chosen {
        return Ok(format);
    }
    let mut found: Option<(Format, &Path)> = None;
    for file in files {
        let path = file.path.display();
        let format = recognize(file.source()).ok_or_else(|| match near_miss(file.source()) {
            Some(what) => fault::Error::new(format!("{path} {}", what.shown(option))),
            None => {
                let known = Format::ALL.iter().map(|format| format.name()).collect::<Vec<_>>().join(", ");
                fault::Error::new(format!(
                    "{path} looks like none of the formats that becalm reads; if it is one of them, name it with --from: {known}"
                ))
            }
        })?;
        if let Some((other, first)) = found.filter(|(other, _)| *other != format) {
            return Err(UsageError::new(format!(
                "{} is in format {other}, and {path} in format {format}; import each kind of its own",
                first.display()
            ))
            .into());
        }
        found = Some((format, &file.path));
    }
    let (format, _) = found.context("there is no file to read")?;
    let why = files.first().and_then(|file| guessed_by(format, file.source()));
    let why = why.map(|why| format!(", because {why}; if it is something else, name its format with --from"));
    say(format_args!("this is read as {format}{}", why.unwrap_or_default()));
    Ok(format)
}

/// A hint after the error of a file that was read in a format: if the user named the format, another one that the file looks like; else
/// that becalm chose it.
pub fn advice(files: &[InputFile], format: Format, is_chosen: bool) -> Option<String> {
    if !is_chosen {
        // These are recognized by their first bytes, which no other file has.
        if matches!(format, Format::TraceDat | Format::PerfData | Format::Perfetto) {
            return None;
        }
        return Some(format!(
            "it was read as {format} by what it holds: if it is something else, name its format with --from"
        ));
    }
    files.iter().find_map(|file| match recognize(file.source()) {
        Some(other) => (other != format).then(|| format!("it looks like {other}: name that with --from")),
        // The chosen format is among the possible ones, so no other is suggested.
        None => near_miss(file.source())
            .map(|what| what.shown(option))
            .filter(|what| !what.contains(&format!("--from {format}")))
            .map(|what| format!("the file {what}")),
    })
}
