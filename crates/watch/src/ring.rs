//! The bundles on disk: a directory of limited size. Above the limit, the oldest windows are removed first, and alerts once no window is left.
//!
//! Bundles are numbered in the order of creation, independent of clock changes.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use becalm_bundle::{Bundle, SUFFIX};
use becalm_units::{counted, printable};

/// The maximum number of bundles, which bounds the cost of scanning them.
const MOST: usize = 10_000;

/// The largest number of a bundle.
const LARGEST: u64 = 999_999_999_999;
/// More bundles than any watch creates.
const ENOUGH: u64 = 1_000_000_000;

/// The maximum number of windows that are dropped for one bundle that did not fit on a full disk.
const MOST_GIVEN_UP: u32 = 8;

/// A directory that cannot store bundles.
#[derive(Debug, thiserror::Error)]
#[error("cannot keep bundles in {path}: {source}", path = path.display())]
pub struct RingError {
    path: PathBuf,
    source: io::Error,
}

/// The contents of a bundle, which are part of its name.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Holds {
    /// A window without an alert.
    Window,
    /// The window that raised an alert.
    Alert,
    /// The traced events before it.
    Before,
    /// The recording after it.
    After,
}

impl Holds {
    const ALL: [Self; 4] = [Self::Window, Self::Alert, Self::Before, Self::After];

    const fn name(self) -> &'static str {
        match self {
            Self::Window => "window",
            Self::Alert => "alert",
            Self::Before => "before",
            Self::After => "after",
        }
    }
}

#[derive(Clone, PartialEq, Eq, Debug)]
struct StoredBundle {
    /// Whether it is only removed once no window is left.
    is_alert: bool,
    number: u64,
    name: OsString,
    bytes: u64,
}

/// The directory and its bundles.
#[derive(Debug)]
pub struct Ring {
    folder: PathBuf,
    kept: Vec<StoredBundle>,
    next: u64,
    /// Entries named like our bundles, but with numbers that are too large.
    strange: Vec<OsString>,
    /// Windows that were dropped since a bundle was stored.
    given_up: u32,
}

impl Ring {
    /// Opens the directory, which is created if missing, and continues its numbering.
    pub fn open(folder: &Path) -> Result<Self, RingError> {
        Self::open_where(folder, is_whole)
    }

    /// The same with another check for complete bundles.
    fn open_where(folder: &Path, is_whole: impl Fn(&Path) -> bool) -> Result<Self, RingError> {
        let err = |source| RingError { path: folder.to_owned(), source };
        if !folder.is_dir() {
            becalm_linux::folder::make_all(folder).map_err(err)?;
        }
        let (mut kept, mut strange) = (Vec::new(), Vec::new());
        for entry in fs::read_dir(folder).map_err(err)? {
            let name = entry.map_err(err)?.file_name();
            if let Some((number, holds)) = understood(&name) {
                let bytes = bytes_below(&folder.join(&name));
                kept.push(StoredBundle { is_alert: holds != Holds::Window, number, name, bytes });
            } else if is_out_of_range(&name) {
                strange.push(name);
            }
        }
        let mut next = kept.iter().map(|bundle| bundle.number + 1).max().unwrap_or(1);
        // Bundles are written one at a time, so a killed watch leaves at most the newest one incomplete.
        let newest = kept.iter().enumerate().max_by_key(|(_, bundle)| bundle.number).map(|(at, _)| at);
        if let Some(at) = newest
            && !is_whole(&folder.join(&kept[at].name))
        {
            Self::drop_bundle(&folder.join(kept.swap_remove(at).name));
        }
        if next > LARGEST - ENOUGH {
            next = renumber(folder, &mut kept).map_err(err)? + 1;
        }
        Ok(Self { folder: folder.to_owned(), kept, next, strange, given_up: 0 })
    }

    /// A note to the administrator about entries that are left alone.
    pub fn remark(&self) -> Option<String> {
        let first = self.strange.iter().min()?;
        let others = match self.strange.len() - 1 {
            0 => String::new(),
            others => format!(" and {}", counted(others as u64, "other entry", "other entries")),
        };
        Some(format!(
            "{}{others} stay as they are and do not count for --keep, because a recording of becalm has no number above {LARGEST}",
            printable(&self.folder.join(first).to_string_lossy())
        ))
    }

    pub fn next(&mut self, holds: Holds) -> PathBuf {
        let number = self.next;
        self.next += 1;
        self.folder.join(name_of(number, holds))
    }

    /// Keeps a complete bundle at a path from [`Self::next`], renaming it to its final contents. If renaming fails, the bundle is removed.
    pub fn keep(&mut self, path: &Path, holds: Holds) -> io::Result<PathBuf> {
        let Some((number, was)) = path.file_name().and_then(understood) else { return Ok(path.to_owned()) };
        let name = OsString::from(name_of(number, holds));
        if was != holds
            && let Err(error) = fs::rename(path, self.folder.join(&name))
        {
            let _ = fs::remove_dir_all(path);
            return Err(error);
        }
        let path = self.folder.join(&name);
        let bytes = bytes_below(&path);
        self.kept.push(StoredBundle { is_alert: holds != Holds::Window, number, name, bytes });
        self.given_up = 0;
        Ok(path)
    }

    /// Drops the oldest window because the disk is full: new data is worth more than old, and a disk smaller than the limit would otherwise keep the
    /// first windows forever. Limited in number, in case other programs use the freed space.
    pub fn make_room(&mut self) {
        let oldest = self.kept.iter().enumerate().filter(|(_, bundle)| !bundle.is_alert);
        let oldest = oldest.min_by_key(|(_, bundle)| bundle.number).map(|(at, _)| at);
        if let (Some(at), true) = (oldest, self.given_up < MOST_GIVEN_UP) {
            self.given_up += 1;
            let _ = fs::remove_dir_all(self.folder.join(self.kept.remove(at).name));
        }
    }

    /// Removes a bundle that is not kept.
    pub fn drop_bundle(path: &Path) {
        // It may not exist.
        let _ = fs::remove_dir_all(path);
    }

    /// Removes bundles until the total is at most `most` bytes. Bundles that cannot be removed are no longer counted.
    pub fn shrink(&mut self, most: u64) {
        self.kept.sort_by_key(|bundle| (bundle.is_alert, bundle.number));
        let (mut bytes, mut count) = (self.bytes(), self.kept.len());
        let over = self.kept.iter().take_while(|bundle| {
            let is_over = bytes > most || count > MOST;
            bytes -= if is_over { bundle.bytes } else { 0 };
            count -= usize::from(is_over);
            is_over
        });
        let over = over.count();
        for bundle in self.kept.drain(..over) {
            let _ = fs::remove_dir_all(self.folder.join(&bundle.name));
        }
    }

    /// The disk usage of all bundles, in bytes.
    pub fn bytes(&self) -> u64 {
        self.kept.iter().map(|bundle| bundle.bytes).sum()
    }

    /// The number of bundles.
    pub fn len(&self) -> usize {
        self.kept.len()
    }
}

/// Renumbers bundles from 1 on, in the same order, and returns the last number. New numbers are never above the old ones, so no name is taken.
fn renumber(folder: &Path, kept: &mut [StoredBundle]) -> io::Result<u64> {
    kept.sort_by_key(|bundle| bundle.number);
    let (mut before, mut number) = (None, 0);
    for bundle in kept {
        // Bundles that belong together share a number.
        number += u64::from(before != Some(bundle.number));
        before = Some(bundle.number);
        let Some((_, holds)) = understood(&bundle.name) else { continue };
        let name = OsString::from(name_of(number, holds));
        fs::rename(folder.join(&bundle.name), folder.join(&name))?;
        (bundle.number, bundle.name) = (number, name);
    }
    Ok(number)
}

fn name_of(number: u64, holds: Holds) -> String {
    format!("{number:08}-{}{SUFFIX}", holds.name())
}

/// The digits of a name like those of our bundles, and its contents.
fn parts(name: &OsStr) -> Option<(&str, Holds)> {
    let (digits, holds) = name.to_str()?.strip_suffix(SUFFIX)?.split_once('-')?;
    let is_number = !digits.is_empty() && digits.bytes().all(|digit| digit.is_ascii_digit());
    let holds = Holds::ALL.into_iter().find(|candidate| candidate.name() == holds)?;
    is_number.then_some((digits, holds))
}

/// The number and contents of one of our bundles; `None` for other files, which are kept.
fn understood(name: &OsStr) -> Option<(u64, Holds)> {
    let (digits, holds) = parts(name)?;
    let number = digits.parse().ok().filter(|number| *number <= LARGEST)?;
    (name_of(number, holds) == *name.to_str()?).then_some((number, holds))
}

fn is_out_of_range(name: &OsStr) -> bool {
    parts(name).is_some_and(|(digits, _)| digits.parse().map_or(true, |number: u64| number > LARGEST))
}

/// Whether a bundle shows how its recording ended. One of a killed watch does not, and is empty, because a window is stored at its end.
fn is_whole(bundle: &Path) -> bool {
    match Bundle::open(bundle) {
        Ok(bundle) => bundle.nodes().iter().all(|node| node.ended.is_some()),
        // A bundle without a document, or with a hidden draft of one, was hardly started. One with an unreadable document, for example of a later
        // version, is not ours to remove.
        Err(_) => fs::read_dir(bundle.join("runs")).is_ok_and(|entries| {
            entries.flatten().any(|entry| !entry.file_name().as_encoded_bytes().starts_with(b"."))
        }),
    }
}

/// The disk usage of a directory's files, without following links.
fn bytes_below(path: &Path) -> u64 {
    let Ok(about) = path.symlink_metadata() else { return 0 };
    let below = if about.is_dir() { fs::read_dir(path).ok() } else { None };
    let below: u64 = below.into_iter().flatten().flatten().map(|entry| bytes_below(&entry.path())).sum();
    about.blocks() * 512 + below
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn names(folder: &Path) -> Vec<String> {
        let mut names: Vec<_> =
            fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    fn write(path: &Path, bytes: usize) {
        fs::create_dir(path).unwrap();
        fs::write(path.join("rows"), vec![1; bytes]).unwrap();
    }

    #[test]
    fn the_oldest_windows_go_first_and_a_new_start_goes_on() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("mine.becalm")).unwrap();
        for round in 0..2 {
            let mut ring = Ring::open_where(folder.path(), |_| true).unwrap();
            for holds in [Holds::Alert, Holds::Window, Holds::Window] {
                let path = ring.next(Holds::Window);
                write(&path, 10_000);
                ring.keep(&path, holds).unwrap();
            }
            assert_eq!(ring.len(), 3 * (round + 1));
        }
        let mut ring = Ring::open_where(folder.path(), |_| true).unwrap();
        let each = ring.bytes() / 6;
        ring.shrink(3 * each);
        assert_eq!(
            names(folder.path()),
            ["00000001-alert.becalm", "00000004-alert.becalm", "00000006-window.becalm", "mine.becalm"]
        );
        ring.shrink(each);
        assert_eq!(names(folder.path()), ["00000004-alert.becalm", "mine.becalm"]);
        ring.shrink(0);
        assert_eq!((names(folder.path()), ring.len()), (vec!["mine.becalm".to_owned()], 0));
    }

    #[test]
    fn a_full_disk_takes_a_few_windows_for_each_bundle_and_no_alert() {
        let folder = tempfile::tempdir().unwrap();
        let mut ring = Ring::open_where(folder.path(), |_| true).unwrap();
        let store = |ring: &mut Ring, holds| {
            let path = ring.next(Holds::Window);
            write(&path, 10);
            ring.keep(&path, holds).unwrap();
        };
        store(&mut ring, Holds::Alert);
        (0..10).for_each(|_| store(&mut ring, Holds::Window));
        ring.make_room();
        assert_eq!(names(folder.path())[..2], ["00000001-alert.becalm", "00000003-window.becalm"]);
        (0..20).for_each(|_| ring.make_room());
        assert_eq!(ring.len(), 3);
        store(&mut ring, Holds::Window);
        (0..20).for_each(|_| ring.make_room());
        assert_eq!(names(folder.path()), ["00000001-alert.becalm"]);
    }

    #[test]
    fn what_a_killed_watch_left_without_its_end_goes_and_its_number_is_not_used_again() {
        let folder = tempfile::tempdir().unwrap();
        for number in 1..=3 {
            write(&folder.path().join(name_of(number, Holds::Window)), 10);
        }
        let mut ring = Ring::open(folder.path()).unwrap();
        assert_eq!((names(folder.path()).len(), ring.len()), (2, 2));
        assert!(ring.next(Holds::Window).ends_with("00000004-window.becalm"));
    }

    #[test]
    fn a_bundle_with_only_the_draft_of_a_document_was_hardly_started() {
        let folder = tempfile::tempdir().unwrap();
        let runs = folder.path().join("runs");
        fs::create_dir(&runs).unwrap();
        assert!(!is_whole(folder.path()));
        fs::write(runs.join(".node=vm.json.0.draft"), "{").unwrap();
        assert!(!is_whole(folder.path()));
        fs::write(runs.join("node=vm.json"), "of a later version").unwrap();
        assert!(is_whole(folder.path()));
    }

    #[test]
    fn numbers_that_are_too_large_are_left_alone_and_named() {
        let folder = tempfile::tempdir().unwrap();
        let numbers = ["18446744073709551615", "18446744073709551614", "1000000000000", "99999999999999999999999"];
        let strange = numbers.map(|number| format!("{number}-window{SUFFIX}"));
        strange.iter().for_each(|name| write(&folder.path().join(name), 10));
        let mut ring = Ring::open(folder.path()).unwrap();
        let remark = ring.remark().unwrap();
        assert!(remark.contains(&strange[2]) && remark.contains(" and 3 other entries stay"), "{remark}");
        assert!(ring.next(Holds::Window).ends_with("00000001-window.becalm"));
        ring.shrink(0);
        assert_eq!((names(folder.path()).len(), ring.len()), (4, 0));
        // There are no numbers left after the largest valid one: the existing bundles are renumbered from 1.
        write(&folder.path().join(name_of(3, Holds::Window)), 10);
        write(&folder.path().join(name_of(LARGEST, Holds::Alert)), 10);
        let mut ring = Ring::open_where(folder.path(), |_| true).unwrap();
        assert_eq!(names(folder.path())[..2], ["00000001-window.becalm", "00000002-alert.becalm"]);
        for _ in 0..3 {
            let path = ring.next(Holds::Window);
            write(&path, 10);
            assert_eq!(ring.keep(&path, Holds::Window).unwrap(), path);
        }
        ring.shrink(0);
        assert_eq!((names(folder.path()).len(), ring.len()), (4, 0));
        fs::remove_dir_all(folder.path()).unwrap();
        assert_eq!(Ring::open(folder.path()).unwrap().remark(), None);
    }

    proptest! {
        #[test]
        fn only_names_of_ours_are_understood(number in 0..=LARGEST, text in "[0-9a-z-]{0,12}(.becalm)?") {
            for holds in Holds::ALL {
                prop_assert_eq!(understood(name_of(number, holds).as_ref()), Some((number, holds)));
            }
            let is_ours = |(number, holds)| name_of(number, holds) == text;
            prop_assert!(understood(text.as_ref()).is_none_or(is_ours));
        }
    }
}
