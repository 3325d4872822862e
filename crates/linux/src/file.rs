//! Reads, lists and writes the kernel's small text files below a root directory, with errors that name the file; and reads files from any source,
//! with a size limit.
//!
//! A file with its own format has its own parser in [`procfs`](crate::procfs) or [`sysfs`](crate::sysfs), which reads through this module. The many
//! settings that hold one value are read with [`text`] and written with [`write()`]. The meaning of values, and whether to change them, is out of
//! scope.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use becalm_units::CpuList;

/// Reasons why one of the kernel's files could not be used.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// It could not be read.
    #[error("cannot read {what} from {}: {source}", path.display())]
    Read {
        /// The information expected in the file.
        what: &'static str,
        /// The path of the file, including the root directory.
        path: PathBuf,
        /// The error of the system call.
        r#source: io::Error,
    },
    /// It could be read, but its text is not what the kernel documents.
    #[error("cannot understand {what} in {}: {why}", path.display())]
    Format {
        /// The information expected in the file.
        what: &'static str,
        /// The path of the file, including the root directory.
        path: PathBuf,
        /// The error in the text.
        why: FormatError,
    },
}

becalm_units::fault::faultless!(FileError);

impl FileError {
    /// Whether the file does not exist, or the thread or device that it describes; see [`is_gone`].
    pub fn is_missing(&self) -> bool {
        match self {
            Self::Read { source, .. } => is_gone(source),
            Self::Format { .. } => false,
        }
    }

    /// Whether the kernel denied the read.
    pub fn is_denied(&self) -> bool {
        matches!(self, Self::Read { source, .. } if source.kind() == io::ErrorKind::PermissionDenied)
    }
}

/// A text that the kernel does not write: the place, and what was expected there.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{expected}, but found '{found}'")]
pub struct FormatError {
    expected: &'static str,
    found: String,
}

impl FormatError {
    /// Quotes at most the first 60 characters found.
    pub(crate) fn new(expected: &'static str, found: &str) -> Self {
        Self { expected, found: found.chars().take(60).collect() }
    }
}

/// The path of a file below a root directory. The name may be absolute or relative, `/proc/stat` or `proc/stat`.
pub fn path_below(root: &Path, name: impl AsRef<Path>) -> PathBuf {
    let name = name.as_ref();
    root.join(name.strip_prefix("/").unwrap_or(name))
}

/// Whether an error means that a file, or the thread or device behind it, does not exist (any more): `ENOENT`, `ENOTDIR`, `ESRCH` (the thread has
/// ended) or `ENODEV` (the device or CPU is gone).
pub fn is_gone(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::ENOENT | libc::ENOTDIR | libc::ESRCH | libc::ENODEV))
        || matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

/// The value of a setting, without surrounding white space; `None` if this kernel or machine has no such file.
pub fn text(root: &Path, name: impl AsRef<Path>) -> Result<Option<String>, FileError> {
    // Some drivers have files for unsupported features, and reading those returns this error.
    let unsupported = |error: &FileError| {
        let FileError::Read { source, .. } = error else { return false };
        matches!(source.raw_os_error(), Some(libc::EOPNOTSUPP | libc::EINVAL))
    };
    match read(root, name, "a setting of the kernel") {
        Err(error) if unsupported(&error) => Ok(None),
        result => Ok(optional(result)?.map(|text| text.trim().to_owned())),
    }
}

/// The names in a directory, sorted; empty if it does not exist. Bytes that are not UTF-8 become U+FFFD.
pub fn names(root: &Path, folder: impl AsRef<Path>) -> Result<Vec<String>, FileError> {
    let path = path_below(root, folder);
    let failed = |source| FileError::Read { what: "the names in a directory", path: path.clone(), source };
    let listing = match fs::read_dir(&path) {
        Ok(listing) => listing,
        Err(error) if is_gone(&error) => return Ok(Vec::new()),
        Err(error) => return Err(failed(error)),
    };
    let name = |entry: io::Result<fs::DirEntry>| Ok(entry?.file_name().to_string_lossy().into_owned());
    let mut names: Vec<String> = listing.map(name).collect::<Result<_, _>>().map_err(failed)?;
    names.sort_unstable();
    Ok(names)
}

/// Writes a text in one system call, because the kernel treats each call as a separate value. The file must exist. The kernel returns `EINVAL` for an
/// unacceptable value, `EIO` or `EPERM` for an interrupt that it manages itself, or `EBUSY`.
pub fn write(root: &Path, name: impl AsRef<Path>, text: &str) -> io::Result<()> {
    // The kernel's files ignore the truncation; in others, no rest of a longer text remains.
    let mut file = OpenOptions::new().write(true).truncate(true).open(path_below(root, name))?;
    // An empty text would make no system call at all. The kernel treats a newline as an empty value.
    let bytes = if text.is_empty() { b"\n" } else { text.as_bytes() };
    let taken = file.write(bytes)?;
    if taken == bytes.len() {
        return Ok(());
    }
    Err(io::Error::other(format!("the kernel took only {taken} of {} bytes", bytes.len())))
}

/// Opens a regular file for reading. Refuses all others, because a pipe would block the reader forever and a device may never end. Fails if it cannot
/// be opened or is not a regular file.
pub fn open_regular(path: &Path) -> io::Result<File> {
    let check = |found: &fs::Metadata| match found.file_type() {
        kind if kind.is_file() => Ok(()),
        kind if kind.is_dir() => Err(io::Error::from_raw_os_error(libc::EISDIR)),
        kind => {
            let name = if kind.is_fifo() { "pipe" } else { "device or socket" };
            Err(io::Error::new(io::ErrorKind::InvalidInput, format!("it is a {name}, and not a regular file")))
        }
    };
    // First by name, because opening alone has effects on some devices; then the opened file.
    check(&fs::metadata(path)?)?;
    let file = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(path)?;
    check(&file.metadata()?)?;
    Ok(file)
}

/// The bytes of a regular file from any source. Fails if it cannot be read, is not a regular file, or has more than `most` bytes.
pub fn read_regular(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let file = open_regular(path)?;
    let too_large = || {
        let (size, unit) = if most < 1 << 20 { (most >> 10, "KiB") } else { (most >> 20, "MiB") };
        let text = format!("it is larger than {size} {unit}, the most that is read of such a file");
        io::Error::new(io::ErrorKind::FileTooLarge, text)
    };
    if file.metadata()?.len() > most {
        return Err(too_large());
    }
    let mut bytes = Vec::new();
    // It may grow meanwhile.
    file.take(most.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most { Err(too_large()) } else { Ok(bytes) }
}

/// The text of a regular file from any source.
pub fn read_regular_text(path: &Path, most: u64) -> io::Result<String> {
    let invalid = |_| io::Error::new(io::ErrorKind::InvalidData, "stream did not contain valid UTF-8");
    String::from_utf8(read_regular(path, most)?).map_err(invalid)
}

/// Makes the entries of a directory survive a crash: files created, renamed or removed in it. File systems that cannot do that give no stronger
/// guarantee. Fails if the directory cannot be opened or its file system cannot be written.
pub fn sync_folder(folder: &Path) -> io::Result<()> {
    match File::open(folder).and_then(|folder| folder.sync_all()) {
        Err(cause) if matches!(cause.kind(), io::ErrorKind::InvalidInput | io::ErrorKind::Unsupported) => Ok(()),
        synced => synced,
    }
}

/// The whole text of a file. Bytes that are not UTF-8 (a thread's name may contain any) become U+FFFD.
pub(crate) fn read(root: &Path, name: impl AsRef<Path>, what: &'static str) -> Result<String, FileError> {
    /// Longer than most files of the kernel. They report no length beforehand, so a growing buffer would be filled in many steps, and the kernel
    /// generates some texts again at each.
    const USUAL: usize = 4096;
    let path = path_below(root, name);
    let whole = || {
        let mut bytes = Vec::with_capacity(USUAL);
        File::open(&path)?.take(u64::MAX).read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    match whole() {
        Ok(bytes) => Ok(match String::from_utf8(bytes) {
            Ok(text) => text,
            Err(error) => String::from_utf8_lossy(error.as_bytes()).into_owned(),
        }),
        Err(source) => Err(FileError::Read { what, path, source }),
    }
}

/// Reads a file that is never empty, and passes its text to a parser.
pub(crate) fn parse<T>(
    root: &Path,
    name: impl AsRef<Path>,
    what: &'static str,
    parser: impl FnOnce(&str) -> Result<T, FormatError>,
) -> Result<T, FileError> {
    let name = name.as_ref();
    let text = read(root, name, what)?;
    let parsed = if text.is_empty() {
        Err(FormatError::new("text was expected (container runtimes mask files with empty ones)", ""))
    } else {
        parser(&text)
    };
    parsed.map_err(|why| FileError::Format { what, path: path_below(root, name), why })
}

/// Parses a list line by line, and returns the parsed lines and those that failed. Drivers, architectures and later kernels add lines of their own
/// format to the kernel's lists, which must not cost the others. Skips blank lines. Fails, with the error of the first line, if there are lines and
/// none can be parsed: it is another file.
pub(crate) fn lines<'a, T>(
    lines: impl Iterator<Item = &'a str>,
    mut parser: impl FnMut(&'a str) -> Result<T, FormatError>,
) -> Result<(Vec<T>, Vec<&'a str>), FormatError> {
    let (mut understood, mut left_out, mut first) = (Vec::new(), Vec::new(), None);
    for line in lines.filter(|line| !line.trim().is_empty()) {
        match parser(line) {
            Ok(entry) => understood.push(entry),
            Err(why) => {
                left_out.push(line);
                first.get_or_insert(why);
            }
        }
    }
    match first {
        Some(why) if understood.is_empty() => Err(why),
        _ => Ok((understood, left_out)),
    }
}

pub(crate) fn parse_cpus(text: &str) -> Result<CpuList, FormatError> {
    let text = text.trim();
    text.parse().map_err(|_| FormatError::new("a list of CPUs was expected", text))
}

pub(crate) fn value<T: FromStr>(root: &Path, name: impl AsRef<Path>, what: &'static str) -> Result<T, FileError> {
    parse(root, name, what, |text| {
        text.trim().parse().map_err(|_| FormatError::new("one value was expected", text.trim()))
    })
}

/// Turns the error of a missing file into `None`: the kernel or the machine lacks the feature.
pub(crate) fn optional<T>(result: Result<T, FileError>) -> Result<Option<T>, FileError> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(error) if error.is_missing() => Ok(None),
        Err(error) => Err(error),
    }
}

/// Returns the value; adds an error to `unread`.
pub(crate) fn known<T>(result: Result<T, FileError>, unread: &mut Vec<FileError>) -> Option<T> {
    result.map_err(|error| unread.push(error)).ok()
}

/// Creates a file without a name in a directory, for this process alone: it is gone when the process ends, for whatever reason. Fails if no file can
/// be created there.
pub fn unnamed(folder: &Path) -> io::Result<fs::File> {
    use rustix::fs::{Mode, OFlags};
    let mode = Mode::RUSR | Mode::WUSR;
    match rustix::fs::open(folder, OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC, mode) {
        Ok(file) => return Ok(fs::File::from(file)),
        // Some file systems need a name.
        Err(rustix::io::Errno::OPNOTSUPP | rustix::io::Errno::ISDIR | rustix::io::Errno::INVAL) => {}
        Err(error) => return Err(error.into()),
    }
    let path = folder.join(format!(".becalm.{}.spool", std::process::id()));
    let flags = OFlags::CREATE | OFlags::EXCL | OFlags::RDWR | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let file = rustix::fs::open(&path, flags, mode)?;
    fs::remove_file(&path)?;
    Ok(fs::File::from(file))
}

/// Makes the files of a fake tree.
#[cfg(test)]
pub(crate) fn write_tree(root: &Path, files: &[(&str, &str)]) {
    for (name, text) in files {
        let path = path_below(root, name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_name_the_file_and_the_reason() {
        let root = tempfile::tempdir().unwrap();
        std::fs::write(root.path().join("value"), "seven\n").unwrap();
        let missing = value::<u32>(root.path(), "none", "the answer").unwrap_err();
        assert!(missing.is_missing() && !missing.is_denied());
        assert!(missing.to_string().starts_with("cannot read the answer from "), "{missing}");
        let wrong = value::<u32>(root.path(), "value", "the answer").unwrap_err();
        assert!(wrong.to_string().ends_with("/value: one value was expected, but found 'seven'"), "{wrong}");
        std::fs::write(root.path().join("value"), "").unwrap();
        let masked = parse(root.path(), "value", "the answer", |_| Ok(7)).unwrap_err();
        assert!(!masked.is_missing() && masked.to_string().contains("mask"), "{masked}");
        assert!(optional(Err::<u32, _>(missing)).unwrap().is_none());
        assert!(optional(Err::<u32, _>(wrong)).is_err());
    }

    #[test]
    fn values_and_choices() {
        let root = tempfile::tempdir().unwrap();
        write_tree(root.path(), &[("sys/x/a", " 7\n"), ("sys/x/b", "always [madvise] never\n")]);
        assert_eq!(text(root.path(), "/sys/x/a").unwrap().as_deref(), Some("7"));
        assert_eq!(text(root.path(), "/sys/x/b").unwrap().as_deref(), Some("always [madvise] never"));
        assert_eq!(text(root.path(), "/sys/x/c").unwrap(), None);
        assert!(text(root.path(), "/sys/x").unwrap_err().to_string().contains("/sys/x"));
        assert_eq!(names(root.path(), "/sys/x").unwrap(), ["a", "b"]);
        assert!(names(root.path(), "/sys/none").unwrap().is_empty());
        assert!(names(root.path(), "/sys/x/a").unwrap().is_empty());
    }

    #[test]
    fn texts_replace_each_other_and_files_are_not_made() {
        let root = tempfile::tempdir().unwrap();
        let path = Path::new("/a");
        let whole = || fs::read_to_string(path_below(root.path(), path)).unwrap();
        assert_eq!(write(root.path(), path, "1").unwrap_err().kind(), io::ErrorKind::NotFound);
        fs::write(root.path().join("a"), "950000\n").unwrap();
        write(root.path(), path, "-1\n").unwrap();
        assert_eq!(whole(), "-1\n");
        write(root.path(), path, "").unwrap();
        assert_eq!(whole(), "\n");
        sync_folder(root.path()).unwrap();
    }

    #[test]
    fn only_regular_files_are_read_and_only_so_far() {
        let root = tempfile::tempdir().unwrap();
        let (text, pipe) = (root.path().join("text"), root.path().join("pipe"));
        fs::write(&text, "12345678").unwrap();
        rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, rustix::fs::Mode::RUSR).unwrap();
        assert_eq!(read_regular_text(&text, 8).unwrap(), "12345678");
        let error = |path: &Path| read_regular(path, 7).unwrap_err().to_string();
        assert!(error(&text).starts_with("it is larger than 0 KiB"));
        assert_eq!(error(&pipe), "it is a pipe, and not a regular file");
        assert_eq!(error(Path::new("/dev/zero")), "it is a device or socket, and not a regular file");
        assert!(error(root.path()).contains("directory"));
        fs::write(&text, b"\xff").unwrap();
        assert!(read_regular_text(&text, 8).unwrap_err().to_string().contains("UTF-8"));
        // These report a length of zero, but have content.
        assert!(read_regular(Path::new("/proc/self/status"), 8).is_err());
    }

    #[test]
    fn errors_of_what_is_gone_are_told_apart() {
        for code in [libc::ENOENT, libc::ENOTDIR, libc::ESRCH, libc::ENODEV] {
            assert!(is_gone(&io::Error::from_raw_os_error(code)), "{code}");
        }
        assert!(!is_gone(&io::Error::from_raw_os_error(libc::EACCES)));
    }
}
