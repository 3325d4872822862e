//! The kernel's build configuration: /proc/config.gz, or the copy that distributions install in /boot or with the kernel's modules.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::path::Path;

use miniz_oxide::inflate::decompress_to_vec_with_limit;

use super::kernel;
use crate::file::{FileError, FormatError, is_gone, path_below};

/// The maximum length; a distribution's configuration has 300 KiB.
const LONGEST: usize = 16 << 20;

/// The options that a kernel was built with.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct KernelConfig {
    /// The file that it is from, as seen from the machine's root.
    pub path: String,
    options: HashMap<String, String>,
}

impl KernelConfig {
    /// Parses the file's text; `path` is the file that it is from. Skips lines that are not options.
    pub fn parse(path: &str, text: &str) -> Self {
        let options = text.lines().filter_map(|line| line.strip_prefix("CONFIG_")?.split_once('='));
        let options = options.map(|(name, value)| (name.to_owned(), value.trim().to_owned())).collect();
        Self { path: path.to_owned(), options }
    }

    /// Reads the first of the three files that exists; `None` if none does. Fails if a file exists and cannot be read, or does not have the format of
    /// its name.
    pub fn read(root: &Path) -> Result<Option<Self>, FileError> {
        let mut names = vec!["/proc/config.gz".to_owned()];
        if let Ok(release) = kernel::release(root) {
            names.push(format!("/boot/config-{release}"));
            names.push(format!("/lib/modules/{release}/config"));
        }
        for name in names {
            let path = path_below(root, &name);
            let bytes = match fs::read(&path) {
                Ok(bytes) => bytes,
                Err(error) if is_gone(&error) => continue,
                Err(source) => return Err(FileError::Read { what: WHAT, path, source }),
            };
            let bytes = if name.ends_with(".gz") { gunzip(&bytes) } else { Ok(bytes) };
            let bytes = bytes.map_err(|source| FileError::Read { what: WHAT, path: path.clone(), source })?;
            let it = Self::parse(&name, &String::from_utf8_lossy(&bytes));
            if it.options.is_empty() {
                let why = FormatError::new("options were expected", &String::from_utf8_lossy(&bytes));
                return Err(FileError::Format { what: WHAT, path, why });
            }
            return Ok(Some(it));
        }
        Ok(None)
    }

    /// Whether an option, named without `CONFIG_`, is built in or a module.
    pub fn has(&self, option: &str) -> bool {
        self.value(option).is_some_and(|value| value == "y" || value == "m")
    }

    /// The value of an option, named without `CONFIG_`: `y`, `m`, a number or a quoted text.
    pub fn value(&self, option: &str) -> Option<&str> {
        self.options.get(option).map(String::as_str)
    }
}

const WHAT: &str = "the kernel's configuration";

/// Unpacks a file with one member, like the one that the kernel writes (RFC 1952). Ignores its checksum: the file comes from the kernel's own memory.
fn gunzip(bytes: &[u8]) -> io::Result<Vec<u8>> {
    let broken = |why: &str| io::Error::new(io::ErrorKind::InvalidData, why.to_owned());
    let (header, mut rest) = bytes.split_at_checked(10).ok_or_else(|| broken("it is too short for gzip"))?;
    if header[..3] != [0x1f, 0x8b, 8] {
        return Err(broken("it is not packed by gzip"));
    }
    let flags = header[3];
    let short = || broken("its header is cut off");
    if flags & 4 != 0 {
        let (length, tail) = rest.split_first_chunk::<2>().ok_or_else(short)?;
        rest = tail.get(u16::from_le_bytes(*length) as usize..).ok_or_else(short)?;
    }
    // Name and comment, each ending in a zero.
    for flag in [8, 16] {
        if flags & flag != 0 {
            let end = rest.iter().position(|byte| *byte == 0).ok_or_else(short)?;
            rest = &rest[end + 1..];
        }
    }
    if flags & 2 != 0 {
        rest = rest.get(2..).ok_or_else(short)?;
    }
    decompress_to_vec_with_limit(rest, LONGEST).map_err(|error| broken(&format!("it cannot be unpacked: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file::write_tree;
    use proptest::prelude::*;

    fn gzip(flags: u8, extra: &[u8], text: &str) -> Vec<u8> {
        let mut bytes = vec![0x1f, 0x8b, 8, flags, 0, 0, 0, 0, 0, 3];
        bytes.extend(extra);
        bytes.extend(miniz_oxide::deflate::compress_to_vec(text.as_bytes(), 6));
        bytes.extend([0; 8]);
        bytes
    }

    #[test]
    fn options_have_their_values() {
        let it = KernelConfig::parse("/x", "# CONFIG_A is not set\nCONFIG_HZ=250\nCONFIG_B=y\nCONFIG_C=\"n\"\nD=y\n");
        assert!(it.has("B") && !it.has("A") && !it.has("HZ") && !it.has("D"));
        assert_eq!((it.value("HZ"), it.value("C")), (Some("250"), Some("\"n\"")));
    }

    #[test]
    fn every_header_of_gzip() {
        let text = "CONFIG_B=y\n".repeat(999);
        for (flags, extra) in [(0, &b""[..]), (8, b"config\0"), (4, b"\x02\0ab"), (31, b"\x01\0xname\0comment\0cc")] {
            assert_eq!(gunzip(&gzip(flags, extra, &text)).unwrap(), text.as_bytes());
        }
        assert!(gunzip(b"CONFIG_B=y\n....").unwrap_err().to_string().contains("not packed"));
    }

    #[test]
    fn where_it_is_looked_for() {
        let root = tempfile::tempdir().unwrap();
        assert_eq!(KernelConfig::read(root.path()).unwrap(), None);
        write_tree(
            root.path(),
            &[("proc/sys/kernel/osrelease", "6.1.0\n"), ("lib/modules/6.1.0/config", "CONFIG_M=y\n")],
        );
        assert_eq!(KernelConfig::read(root.path()).unwrap().unwrap().path, "/lib/modules/6.1.0/config");
        write_tree(root.path(), &[("boot/config-6.1.0", "CONFIG_N=y\n")]);
        assert!(KernelConfig::read(root.path()).unwrap().unwrap().has("N"));
        fs::write(root.path().join("proc/config.gz"), gzip(0, b"", "CONFIG_P=y\n")).unwrap();
        assert!(KernelConfig::read(root.path()).unwrap().unwrap().has("P"));
        fs::write(root.path().join("proc/config.gz"), gzip(0, b"", "nothing")).unwrap();
        assert!(KernelConfig::read(root.path()).unwrap_err().to_string().contains("config.gz"));
    }

    proptest! {
        #[test]
        fn never_panics(mut bytes in proptest::collection::vec(any::<u8>(), 0..64), flags: u8) {
            let _ = gunzip(&bytes);
            bytes.splice(0..0, [0x1f, 0x8b, 8, flags, 0, 0, 0, 0, 0, 3]);
            let _ = gunzip(&bytes);
        }
    }
}
