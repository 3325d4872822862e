//! Disks that are full or read-only. These tests mount small file systems of their own, which takes root; elsewhere
//! they say that they were skipped.

use std::ffi::OsStr;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use becalm_bundle::{Bundle, BundleError, BundleWriter};
use becalm_model::node::{CounterGrowth, Ended};
use becalm_model::{Labels, NodeDoc};
use becalm_units::CpuId;

use crate::recording::{doc, documents, ended, read_all, read_detours, rows};
use crate::survival::names;

/// A file system in memory, of a size.
struct SmallDisk {
    folder: tempfile::TempDir,
}

impl SmallDisk {
    fn mount(test: &str, kilobytes: u32) -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let size = format!("size={kilobytes}k");
        let arguments = ["-t", "tmpfs", "-o", &size, "tmpfs"].map(OsStr::new);
        if !mount(arguments.into_iter().chain([folder.path().as_os_str()])) {
            let mut error = std::io::stderr();
            writeln!(error, "{test}: skipped, as a file system cannot be mounted here; run it as root").unwrap();
            return None;
        }
        Some(Self { folder })
    }

    fn make_read_only(&self) {
        let arguments = ["-o", "remount,ro"].map(OsStr::new);
        assert!(mount(arguments.into_iter().chain([self.folder.path().as_os_str()])));
    }

    /// Fills the disk to the last byte, and returns the file that does.
    fn fill(&self) -> PathBuf {
        let path = self.folder.path().join("filler");
        let mut file = fs::File::create(&path).unwrap();
        for size in [1 << 12, 1] {
            while file.write_all(&vec![0; size]).is_ok() {}
        }
        path
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(self.folder.path()).status();
    }
}

fn mount<'a>(arguments: impl Iterator<Item = &'a OsStr>) -> bool {
    Command::new("mount").args(arguments).output().is_ok_and(|output| output.status.success())
}

fn assert_full(error: &BundleError, path: &str) {
    assert!(error.is_full(), "{error}");
    let text = error.to_string();
    assert!(text.contains(path) && text.contains("No space left"), "{text}");
}

#[test]
fn a_full_disk_costs_one_segment_and_the_run_is_closed() {
    let Some(disk) = SmallDisk::mount("a_full_disk_costs_one_segment_and_the_run_is_closed", 1024) else { return };
    let path = disk.path().join("run.becalm");
    let mut labels = Labels::new();
    let mut writer = BundleWriter::create(&path, &doc("a")).unwrap();
    let first = rows(&[0, 1], 0, 100, &mut labels);
    writer.write_segment(&first.detours, &first.activities, &labels).unwrap();

    let filler = disk.fill();
    let second = rows(&[0, 1], 100, 20_000, &mut labels);
    let error = writer.write_segment(&second.detours, &second.activities, &labels).unwrap_err();
    assert_full(&error, "detours/node=a/0001.parquet");
    for table in ["detours/node=a", "activities/node=a"] {
        assert_eq!(names(&path.join(table)), ["0000.parquet"]);
    }
    assert_eq!(read_all(&path).unwrap(), 200 + 400);

    // What is said on the way leaves the last document its room.
    disk.fill();
    assert_full(&writer.note_doc(&doc("a")).unwrap_err(), "node=a.json");
    // The closing document is much longer than the first one, and gets its place all the same.
    let counter = |number: u32| CounterGrowth {
        traced: None,
        cpu: CpuId::new(0),
        name: format!("interrupts/{number}"),
        growth: u64::from(number),
    };
    let closing = NodeDoc { ended: Some(Ended::Failed), counters: (0..200).map(counter).collect(), ..ended("a") };
    writer.write_doc(&closing).unwrap();
    assert_eq!(documents(&Bundle::open(&path).unwrap()), [closing]);
    assert_eq!(names(&path.join("runs")), ["node=a.json"]);

    // With space again the recording could go on where it was.
    fs::remove_file(filler).unwrap();
    writer.write_segment(&second.detours, &second.activities, &labels).unwrap();
    assert_eq!(read_detours(&Bundle::open(&path).unwrap(), "a").unwrap().len(), 40_200);
}

#[test]
fn the_reserve_is_given_back() {
    let Some(disk) = SmallDisk::mount("the_reserve_is_given_back", 1024) else { return };
    let path = disk.path().join("run.becalm");
    let writer = BundleWriter::create(&path, &doc("a")).unwrap();
    assert_eq!(names(&path.join("runs")), ["node=a.json"]);
    let held = fs::metadata(disk.fill()).unwrap().len();
    drop(writer);
    let free = fs::metadata(disk.fill()).unwrap().len();
    assert!(free >= held + (64 << 10), "{held} bytes free beside the writer, {free} without it");
}

#[test]
fn a_disk_that_is_full_at_once_is_refused_at_once() {
    let Some(disk) = SmallDisk::mount("a_disk_that_is_full_at_once_is_refused_at_once", 1024) else { return };
    disk.fill();
    let error = BundleWriter::create(&disk.path().join("run.becalm"), &doc("a")).err().unwrap();
    assert_full(&error, "run.becalm");
    assert_eq!(names(disk.path()), ["filler"]);
}

#[test]
fn a_read_only_disk_is_refused_at_once() {
    let Some(disk) = SmallDisk::mount("a_read_only_disk_is_refused_at_once", 1024) else { return };
    let path = disk.path().join("run.becalm");
    let mut labels = Labels::new();
    let mut writer = BundleWriter::create(&path, &doc("a")).unwrap();
    let rows = rows(&[0], 0, 10, &mut labels);
    writer.write_segment(&rows.detours, &rows.activities, &labels).unwrap();
    drop(writer);
    disk.make_read_only();
    // What is there can be read, but nobody can join, and nothing new can be made.
    assert_eq!(read_all(&path).unwrap(), 10 + 20);
    for (path, node) in [(path.clone(), "b"), (disk.path().join("other.becalm"), "a")] {
        let error = BundleWriter::create(&path, &doc(node)).err().unwrap().to_string();
        assert!(error.contains("Read-only file system") && error.contains(&path.display().to_string()), "{error}");
    }
}

#[test]
fn a_folder_without_permission_is_refused() {
    use std::os::unix::fs::{MetadataExt, PermissionsExt};
    use std::os::unix::process::CommandExt;
    let folder = tempfile::tempdir().unwrap();
    let allow = |mode| fs::set_permissions(folder.path(), fs::Permissions::from_mode(mode)).unwrap();
    if fs::metadata(folder.path()).unwrap().uid() == 0 {
        // Root may write everywhere, so nobody runs this test instead; from a copy, as the build may be root's alone.
        allow(0o755);
        let copy = folder.path().join("test");
        fs::copy(std::env::current_exe().unwrap(), &copy).unwrap();
        let name = "disk::a_folder_without_permission_is_refused";
        let nobody = 65_534;
        let run =
            Command::new(&copy).args([name, "--exact"]).current_dir("/").uid(nobody).gid(nobody).output().unwrap();
        let text = String::from_utf8_lossy(&run.stdout);
        assert!(run.status.success() && text.contains("1 passed"), "{text}");
        return;
    }
    allow(0o500);
    let path = folder.path().join("run.becalm");
    let error = BundleWriter::create(&path, &doc("a")).map(drop).unwrap_err().to_string();
    allow(0o700);
    assert!(error.contains("Permission denied") && error.contains(&path.display().to_string()), "{error}");
}
