//! Finds the kernel's tracing file system, and mounts it if it is not mounted.

use std::collections::BTreeMap;
use std::ffi::CString;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::error::TracefsError;
use crate::file::{self, FileError, path_below};
use crate::janitor::Janitor;
use crate::procfs::mountinfo::{Mount, mounts};

/// A mounted tracefs; its root has `events` and `instances`.
#[derive(Clone, Debug)]
pub struct Tracefs {
    root: PathBuf,
    /// Our own mount, undone with its last user.
    mounted: Option<Arc<Mounted>>,
}

impl Tracefs {
    /// The kernel's standard mount point.
    pub const MOUNT_POINT: &str = "/sys/kernel/tracing";

    /// The tracefs with this root directory. Only its subdirectory `events` is checked, so a fake tree can be used. Fails if the directory, or
    /// `events` in it, is missing or may not be entered.
    pub fn at(root: impl Into<PathBuf>) -> Result<Self, TracefsError> {
        let root = root.into();
        let events = root.join("events");
        fs::metadata(&events).map_err(|error| TracefsError::io("look at", &events, error))?;
        Ok(Self { root, mounted: None })
    }

    /// The first usable tracefs among the mounts of the machine with its files below `root`, in the order of [`mount_point`]. Fails with
    /// [`TracefsError::NotMounted`] if there is none, otherwise with the reason why the first one cannot be used.
    pub fn find(root: &Path) -> Result<Self, TracefsError> {
        let mut first_error = None;
        for folder in candidates(&mounts(root)?) {
            match Self::at(path_below(root, folder)) {
                Ok(tracefs) => return Ok(tracefs),
                Err(error) => first_error = first_error.or(Some(error)),
            }
        }
        Err(first_error.unwrap_or(TracefsError::NotMounted))
    }

    /// Like [`Self::find`], but mounts tracefs below `root` at `mount_point` (normally [`Self::MOUNT_POINT`]) if none is mounted, which
    /// [`Self::mounted_here`] then reports. The mount is undone when the last clone of this value and the last instance created through it are
    /// dropped; after a kill, the janitor undoes it. Without a janitor it remains, which is harmless: the kernel's tracing is just visible.
    pub fn find_or_mount(
        root: &Path,
        mount_point: &Path,
        janitor: Option<&Arc<Janitor>>,
    ) -> Result<Self, TracefsError> {
        match Self::find(root) {
            Err(TracefsError::NotMounted) if path_below(root, mount_point).is_dir() => {
                let mount_point = path_below(root, mount_point);
                let mounted = Mounted::new(&mount_point, janitor.cloned())?;
                let mut tracefs = Self::at(mount_point)?;
                tracefs.mounted = Some(Arc::new(mounted));
                Ok(tracefs)
            }
            found => found,
        }
    }

    /// The directory with `events` and `instances`.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Where becalm mounted it; `None` if it was already mounted.
    pub fn mounted_here(&self) -> Option<&Path> {
        self.mounted.as_ref().map(|mounted| mounted.point.as_path())
    }

    /// The trace clocks that this kernel offers, the chosen one first.
    pub fn clocks(&self) -> Result<Vec<String>, TracefsError> {
        Ok(parse_clocks(&read(&self.root.join("trace_clock"))?))
    }

    /// The kernel's strings that events refer to by address, such as the reason of an inter-processor interrupt.
    pub fn strings(&self) -> Result<BTreeMap<u64, String>, TracefsError> {
        Ok(printk_formats(&read(&self.root.join("printk_formats"))?))
    }
}

/// Parses lines like `0xffff800082a1b2c0 : "Rescheduling interrupts"`, which start with an address.
///
/// Skips other lines.
pub fn printk_formats(text: &str) -> BTreeMap<u64, String> {
    let entry = |line: &str| {
        let (address, string) = line.split_once(" : ")?;
        let address = u64::from_str_radix(address.trim().strip_prefix("0x")?, 16).ok()?;
        Some((address, string.trim().strip_prefix('"')?.strip_suffix('"')?.to_owned()))
    };
    text.lines().filter_map(entry).collect()
}

/// A mount that is undone on drop.
#[derive(Debug)]
struct Mounted {
    point: PathBuf,
    /// Undoes it, because this process may have given up the right to; `None` if it does so itself.
    janitor: Option<Arc<Janitor>>,
}

impl Mounted {
    fn new(mount_point: &Path, janitor: Option<Arc<Janitor>>) -> Result<Self, TracefsError> {
        let fail = |error| TracefsError::io("mount tracefs at", mount_point, error);
        let target = CString::new(mount_point.as_os_str().as_bytes()).map_err(|error| fail(error.into()))?;
        let flags = libc::MS_NOSUID | libc::MS_NODEV | libc::MS_NOEXEC | libc::MS_RELATIME;
        // SAFETY: the three strings end in a zero and outlive the call; tracefs takes no data.
        let result =
            unsafe { libc::mount(c"nodev".as_ptr(), target.as_ptr(), c"tracefs".as_ptr(), flags, std::ptr::null()) };
        if result != 0 {
            return Err(fail(io::Error::last_os_error()));
        }
        // Not before: until it is mounted, it is not becalm's to undo.
        let janitor = janitor.filter(|janitor| janitor.guard_mount(mount_point).is_ok());
        Ok(Self { point: mount_point.to_owned(), janitor })
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        if self.janitor.as_ref().is_some_and(|janitor| janitor.unmount(&self.point).is_ok()) {
            return;
        }
        if let Ok(target) = CString::new(self.point.as_os_str().as_bytes()) {
            // Detached, so it can be unmounted even while another process uses it. If this fails, the remaining mount is harmless.
            // SAFETY: the string ends in a zero and outlives the call.
            unsafe { libc::umount2(target.as_ptr(), libc::MNT_DETACH) };
        }
    }
}

/// Reads a file of tracefs in large pieces, unlike the standard library, because the kernel answers only the first read of some of these files
/// (`header_page`).
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

/// The directory of tracefs: a separate mount, of several the last; else the one that the kernel mounts inside debugfs on first use; else `tracing`
/// in a mounted debugfs. `None` if neither is mounted.
pub fn mount_point(mounts: &[Mount]) -> Option<PathBuf> {
    candidates(mounts).into_iter().next()
}

/// The directories that may be tracefs, in the order of [`mount_point`].
fn candidates(mounts: &[Mount]) -> Vec<PathBuf> {
    let last_first = |kind: &'static str| mounts.iter().rev().filter(move |mount| mount.kind == kind);
    let (inside, own): (Vec<_>, Vec<_>) =
        last_first("tracefs").map(|mount| mount.point.clone()).partition(|point| point.ends_with("debug/tracing"));
    own.into_iter().chain(inside).chain(last_first("debugfs").map(|mount| mount.point.join("tracing"))).collect()
}

/// The available trace clocks, the chosen one first, of the tracefs in this directory of the machine with its files below `root`.
pub fn clocks(root: &Path, tracefs: &Path) -> Result<Vec<String>, FileError> {
    Ok(parse_clocks(&file::read(root, tracefs.join("trace_clock"), "the trace clocks")?))
}

/// From a text like `local global [mono_raw] x86-tsc`.
fn parse_clocks(text: &str) -> Vec<String> {
    let mut clocks: Vec<&str> = text.split_whitespace().collect();
    clocks.sort_by_key(|clock| !clock.starts_with('['));
    clocks.into_iter().map(|clock| clock.trim_matches(['[', ']']).to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file::write_tree;

    /// A machine with these mounts, each a kind and a place.
    fn machine(mounts: &[(&str, &str)]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        let line = |(kind, point): &(&str, &str)| format!("1 2 0:1 / {point} rw - {kind} none rw\n");
        let text: String = mounts.iter().map(line).collect();
        write_tree(root.path(), &[("proc/self/mountinfo", &text)]);
        root
    }

    #[test]
    fn a_mount_of_its_own_comes_first() {
        let point = |mounts: &[(&str, &str)]| mount_point(&super::mounts(machine(mounts).path()).unwrap());
        let debugfs = ("debugfs", "/sys/kernel/debug");
        let inside = ("tracefs", "/sys/kernel/debug/tracing");
        let own = ("tracefs", "/sys/kernel/tracing");
        assert_eq!(point(&[("proc", "/proc")]), None);
        assert_eq!(point(&[debugfs]), Some("/sys/kernel/debug/tracing".into()));
        assert_eq!(point(&[own, debugfs, inside]), Some("/sys/kernel/tracing".into()));
        assert_eq!(point(&[debugfs, inside]), Some("/sys/kernel/debug/tracing".into()));
        assert_eq!(point(&[own, ("tracefs", "/a\\040b")]), Some("/a b".into()));
    }

    #[test]
    fn finds_the_first_that_is_usable() {
        let machine = machine(&[("tracefs", "/here"), ("tracefs", "/gone")]);
        let error = Tracefs::find(machine.path()).unwrap_err().to_string();
        assert!(error.contains("gone/events: No such file"), "{error}");
        write_tree(machine.path(), &[("here/events/enable", "0")]);
        let found = Tracefs::find(machine.path()).unwrap();
        assert_eq!(found.root(), machine.path().join("here"));
        assert_eq!(found.mounted_here(), None);
    }

    #[test]
    fn nothing_mounted_says_what_to_do() {
        let machine = machine(&[("proc", "/proc")]);
        let error = Tracefs::find(machine.path()).unwrap_err();
        assert!(matches!(error, TracefsError::NotMounted));
        assert!(error.to_string().contains("mount -t tracefs"));
        // If the kernel offers no mount point, that is the only possible message.
        let error = Tracefs::find_or_mount(machine.path(), Path::new("/nonexistent"), None).unwrap_err();
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
    fn clocks_are_listed_with_the_chosen_one_first() {
        let root = tempfile::tempdir().unwrap();
        write_tree(root.path(), &[("t/events/enable", "0"), ("t/trace_clock", "local global [mono_raw] x86-tsc\n")]);
        let listed = ["mono_raw", "local", "global", "x86-tsc"];
        assert_eq!(clocks(root.path(), Path::new("/t")).unwrap(), listed);
        assert_eq!(Tracefs::at(root.path().join("t")).unwrap().clocks().unwrap(), listed);
        assert!(clocks(root.path(), Path::new("/u")).unwrap_err().to_string().contains("/u/trace_clock"));
    }
}
