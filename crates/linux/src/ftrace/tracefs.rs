//! Finds the kernel's tracing file system, and mounts it where it is not mounted.

use std::collections::BTreeMap;
use std::ffi::CString;
use std::fs;
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::error::TracefsError;

/// A mounted tracefs, whose root holds `events` and `instances`.
#[derive(Clone, Debug)]
pub struct Tracefs {
    root: PathBuf,
    /// A mount of our own, undone when the last user of it is gone.
    mounted: Option<Arc<Mounted>>,
}

impl Tracefs {
    /// Where the kernel wants it to be mounted.
    pub const MOUNT_POINT: &str = "/sys/kernel/tracing";

    /// The tracefs whose root is the given folder. Whether it really is one is not checked beyond its folder `events`,
    /// so that a fake tree can be used.
    ///
    /// # Errors
    /// The folder, or `events` in it, is missing or may not be entered.
    pub fn at(root: impl Into<PathBuf>) -> Result<Self, TracefsError> {
        let root = root.into();
        let events = root.join("events");
        fs::metadata(&events).map_err(|error| TracefsError::io("look at", &events, error))?;
        Ok(Self { root, mounted: None })
    }

    /// The first usable tracefs of `PROC_ROOT/self/mounts`; where none is listed, the one that a mounted debugfs brings
    /// along in its folder `tracing`.
    ///
    /// # Errors
    /// [`TracefsError::NotMounted`] where there is none; where there are some but none can be used, why the first cannot.
    pub fn find(proc_root: &Path) -> Result<Self, TracefsError> {
        let path = proc_root.join("self/mounts");
        let table = fs::read(&path).map_err(|error| TracefsError::io("read", &path, error))?;
        let mut first_error = None;
        for root in candidates(&table) {
            match Self::at(root) {
                Ok(tracefs) => return Ok(tracefs),
                Err(error) => first_error = first_error.or(Some(error)),
            }
        }
        Err(first_error.unwrap_or(TracefsError::NotMounted))
    }

    /// As [`Self::find`], but mounts tracefs at `mount_point` (normally [`Self::MOUNT_POINT`]) where none is mounted.
    /// [`Self::mounted_here`] then says so. The mount goes when the last clone of this value and the last instance made
    /// through it are dropped; after a kill it stays, which harms nothing: the kernel's tracing is then just visible.
    ///
    /// # Errors
    /// As [`Self::find`]; [`TracefsError::NotMounted`] where there is no such folder to mount at; or the mount fails,
    /// for want of privilege or because the kernel has no tracing.
    pub fn find_or_mount(proc_root: &Path, mount_point: &Path) -> Result<Self, TracefsError> {
        match Self::find(proc_root) {
            Err(TracefsError::NotMounted) if mount_point.is_dir() => {
                let mounted = Mounted::new(mount_point)?;
                let mut tracefs = Self::at(mount_point)?;
                tracefs.mounted = Some(Arc::new(mounted));
                Ok(tracefs)
            }
            found => found,
        }
    }

    /// The folder that holds `events` and `instances`.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Where becalm mounted it; nothing where it was mounted before.
    #[must_use]
    pub fn mounted_here(&self) -> Option<&Path> {
        self.mounted.as_ref().map(|mounted| mounted.0.as_path())
    }

    /// The trace clocks that this kernel offers, in its order.
    ///
    /// # Errors
    /// The file `trace_clock` cannot be read.
    pub fn clocks(&self) -> Result<Vec<String>, TracefsError> {
        let path = self.root.join("trace_clock");
        let text = read(&path)?;
        Ok(text.split_whitespace().map(|clock| clock.trim_matches(['[', ']']).to_owned()).collect())
    }

    /// The kernel's strings that events refer to by address, such as the reason of an inter-processor interrupt.
    ///
    /// # Errors
    /// The file `printk_formats` cannot be read.
    pub fn strings(&self) -> Result<BTreeMap<u64, String>, TracefsError> {
        Ok(printk_formats(&read(&self.root.join("printk_formats"))?))
    }
}

/// Reads lines like `0xffff800082a1b2c0 : "Rescheduling interrupts"`, whose first part is an address.
fn printk_formats(text: &str) -> BTreeMap<u64, String> {
    let entry = |line: &str| {
        let (address, string) = line.split_once(" : ")?;
        let address = u64::from_str_radix(address.trim().strip_prefix("0x")?, 16).ok()?;
        Some((address, string.trim().strip_prefix('"')?.strip_suffix('"')?.to_owned()))
    };
    text.lines().filter_map(entry).collect()
}

/// A mount that is undone on drop.
#[derive(Debug)]
struct Mounted(PathBuf);

impl Mounted {
    fn new(mount_point: &Path) -> Result<Self, TracefsError> {
        let fail = |error| TracefsError::io("mount tracefs at", mount_point, error);
        let target = CString::new(mount_point.as_os_str().as_bytes()).map_err(|error| fail(error.into()))?;
        let flags = libc::MS_NOSUID | libc::MS_NODEV | libc::MS_NOEXEC | libc::MS_RELATIME;
        // SAFETY: the three strings end in a zero and outlive the call; tracefs takes no data.
        let result =
            unsafe { libc::mount(c"nodev".as_ptr(), target.as_ptr(), c"tracefs".as_ptr(), flags, std::ptr::null()) };
        if result == 0 { Ok(Self(mount_point.to_owned())) } else { Err(fail(io::Error::last_os_error())) }
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        if let Ok(target) = CString::new(self.0.as_os_str().as_bytes()) {
            // Detached, so that it goes even while somebody else looks into it. A failure leaves a harmless mount.
            // SAFETY: the string ends in a zero and outlives the call.
            unsafe { libc::umount2(target.as_ptr(), libc::MNT_DETACH) };
        }
    }
}

/// Reads a file of tracefs. Not in small pieces as the standard library begins to, since the kernel gives some of these
/// files (`header_page`) to the first read only.
pub(super) fn read(path: &Path) -> Result<String, TracefsError> {
    let fail = |error| TracefsError::io("read", path, error);
    let mut file = fs::File::open(path).map_err(fail)?;
    let mut text = Vec::new();
    let mut piece = vec![0; 64 << 10];
    loop {
        match io::Read::read(&mut file, &mut piece) {
            Ok(0) => break,
            Ok(length) => text.extend_from_slice(&piece[..length]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(fail(error)),
        }
    }
    Ok(String::from_utf8_lossy(&text).into_owned())
}

/// The roots that a mount table offers, those of tracefs itself first.
fn candidates(table: &[u8]) -> Vec<PathBuf> {
    let mounts = |kind: &'static [u8]| {
        table.split(|byte| *byte == b'\n').filter_map(move |line| {
            let mut words = line.split(|byte| *byte == b' ');
            let (point, found) = (words.nth(1)?, words.next()?);
            (found == kind).then(|| unescape(point))
        })
    };
    mounts(b"tracefs").chain(mounts(b"debugfs").map(|point| point.join("tracing"))).collect()
}

/// A mount point without the octal escapes (`\040`) in which the table writes white space and the backslash.
fn unescape(point: &[u8]) -> PathBuf {
    let mut plain = Vec::with_capacity(point.len());
    let mut rest = point;
    while let Some((&byte, after)) = rest.split_first() {
        let octal =
            after.first_chunk::<3>().filter(|digits| byte == b'\\' && digits.iter().all(|d| (b'0'..=b'7').contains(d)));
        if let Some(digits) = octal {
            plain.push(digits.iter().fold(0_u8, |value, digit| value.wrapping_mul(8).wrapping_add(digit - b'0')));
            rest = &after[3..];
        } else {
            plain.push(byte);
            rest = after;
        }
    }
    PathBuf::from(std::ffi::OsString::from_vec(plain))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn proc_with(mounts: &str) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir(root.path().join("self")).unwrap();
        fs::write(root.path().join("self/mounts"), mounts).unwrap();
        root
    }

    #[test]
    fn mount_tables_are_read() {
        let table = b"proc /proc proc rw 0 0\ndebugfs /d debugfs rw 0 0\nnodev /a\\040b\\134 tracefs rw 0 0\n\n";
        assert_eq!(candidates(table), [Path::new("/a b\\"), Path::new("/d/tracing")]);
    }

    #[test]
    fn finds_the_first_that_is_usable() {
        let tree = tempfile::tempdir().unwrap();
        fs::create_dir_all(tree.path().join("here/events")).unwrap();
        let t = tree.path().display();
        let proc = proc_with(&format!("a {t}/gone tracefs rw 0 0\nb {t}/here tracefs rw 0 0\n"));
        let found = Tracefs::find(proc.path()).unwrap();
        assert_eq!(found.root(), tree.path().join("here"));
        assert_eq!(found.mounted_here(), None);
        let proc = proc_with(&format!("a {t}/gone tracefs rw 0 0\n"));
        let error = Tracefs::find(proc.path()).unwrap_err().to_string();
        assert!(error.contains("gone/events: No such file"), "{error}");
    }

    #[test]
    fn nothing_mounted_says_what_to_do() {
        let proc = proc_with("proc /proc proc rw 0 0\n");
        let error = Tracefs::find(proc.path()).unwrap_err();
        assert!(matches!(error, TracefsError::NotMounted));
        assert!(error.to_string().contains("mount -t tracefs"));
        // Where the kernel offers no place to mount at, that is all that can be said.
        let error = Tracefs::find_or_mount(proc.path(), Path::new("/nonexistent")).unwrap_err();
        assert!(matches!(error, TracefsError::NotMounted));
    }

    #[test]
    fn strings_are_found_by_their_address() {
        let text = "0xffff800082a1b2c0 : \"Rescheduling interrupts\"\nnonsense\n0x10 : \"a : b\"\n";
        let strings = printk_formats(text);
        assert_eq!(strings[&0xffff_8000_82a1_b2c0], "Rescheduling interrupts");
        assert_eq!((strings[&0x10].as_str(), strings.len()), ("a : b", 2));
    }

    #[test]
    fn clocks_are_listed_without_the_mark_of_the_current_one() {
        let tree = tempfile::tempdir().unwrap();
        fs::create_dir(tree.path().join("events")).unwrap();
        fs::write(tree.path().join("trace_clock"), "[local] global mono_raw x86-tsc\n").unwrap();
        let clocks = Tracefs::at(tree.path()).unwrap().clocks().unwrap();
        assert_eq!(clocks, ["local", "global", "mono_raw", "x86-tsc"]);
    }
}
