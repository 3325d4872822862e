//! Detects changes to an instance by other programs: `trace-cmd reset -a` changes them all.
//!
//! Two methods complement each other. The kernel reports each write below the instance's directory (inotify), even one that is undone at once, at no
//! cost until a write happens. And the files that describe what the instance records are kept open, to compare them with their original text: this
//! needs no privilege, and works if inotify does not.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{File, OpenOptions};
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use becalm_units::CpuList;
use rustix::fs::inotify::{self, CreateFlags, ReadFlags, WatchFlags};

use super::instance::SWITCH;
use super::wanted::EventPath;

/// The threads whose events an instance records.
pub(super) const THREADS: &str = "set_event_pid";

/// The files of an instance that describe what it records. If a kernel lacks one, there is nothing to change.
const STATE: [&str; 11] = [
    SWITCH,
    "trace_clock",
    "tracing_cpumask",
    "trace_options",
    "current_tracer",
    // The enabled events.
    "set_event",
    THREADS,
    "set_event_notrace_pid",
    "set_ftrace_pid",
    "buffer_total_size_kb",
    "buffer_subbuf_size_kb",
];

/// The files of an event that describe which of its occurrences are recorded.
const OF_EVENT: [&str; 2] = ["filter", "trigger"];

/// Writing to these changes nothing of the recording.
const HARMLESS: [&str; 4] = ["trace_marker", "trace_marker_raw", "buffer_percent", "error_log"];

/// Opening these takes events away, or the buffer.
const TAKING: [&str; 2] = ["trace_pipe", "free_buffer"];
const TAKING_OF_CPU: [&str; 2] = ["trace_pipe", "trace_pipe_raw"];

/// A file and its original text.
#[derive(Debug)]
struct OriginalFile {
    name: String,
    file: File,
    text: Vec<u8>,
}

impl OriginalFile {
    fn open(folder: &Path, name: String) -> Option<Self> {
        let file = File::open(folder.join(&name)).ok()?;
        let text = text(&file).ok()?;
        Some(Self { name, file, text })
    }

    /// Whether its text has changed. A file that cannot be read shows no change.
    fn differs(&self) -> bool {
        text(&self.file).is_ok_and(|text| text != self.text)
    }
}

#[derive(Debug)]
struct InstanceState {
    kept: Vec<OriginalFile>,
    changed: BTreeSet<String>,
}

/// Watches one instance.
#[derive(Debug)]
pub(super) struct Changes {
    notices: Option<Notices>,
    known: Mutex<InstanceState>,
}

impl Changes {
    /// Records how the instance in this directory is set up. Its own set-up may still write to it, if it undoes that. If it follows threads, the
    /// kernel itself changes their list.
    pub fn remember(folder: &Path, events: &[EventPath], follows_threads: bool) -> Self {
        let event_files = |event: &EventPath| OF_EVENT.map(|file| format!("events/{event}/{file}"));
        let state = STATE.iter().filter(|name| !(follows_threads && **name == THREADS));
        let names = state.map(ToString::to_string).chain(events.iter().flat_map(event_files));
        let kept = names.filter_map(|name| OriginalFile::open(folder, name)).collect();
        Self { notices: None, known: Mutex::new(InstanceState { kept, changed: BTreeSet::new() }) }
    }

    /// Makes the kernel report each write from now on. All readers of the instance are open by now.
    pub fn notify(&mut self, folder: &Path, cpus: &CpuList, events: &[EventPath]) {
        self.notices = Notices::open(folder, cpus, events).ok();
        let mut known = self.look(true);
        if self.notices.is_some() {
            // The events need no descriptors then.
            known.kept.retain(|kept| STATE.contains(&kept.name.as_str()));
        }
    }

    /// Writes to the switch, which is not a change by others.
    pub fn turn(&self, write: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
        let mut known = self.look(false);
        let InstanceState { kept, changed } = &mut *known;
        let switch = kept.iter_mut().find(|kept| kept.name == SWITCH);
        if switch.as_ref().is_some_and(|switch| switch.differs()) {
            changed.insert(SWITCH.to_owned());
        }
        write()?;
        self.take_notices(changed, |name| name != SWITCH);
        if let Some(switch) = switch {
            switch.text = text(&switch.file)?;
        }
        Ok(())
    }

    /// The files that others wrote to, or whose text has changed since the start; empty if nothing was changed.
    pub fn found(&self) -> Vec<String> {
        self.look(true).changed.iter().cloned().collect()
    }

    /// The files that the kernel has reported. Costs next to nothing; like [`Self::found`] if the kernel cannot report.
    pub fn noticed(&self) -> Vec<String> {
        self.look(self.notices.is_none()).changed.iter().cloned().collect()
    }

    /// Updates the list of changes; with `read`, also by comparing the files.
    fn look(&self, read: bool) -> MutexGuard<'_, InstanceState> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let InstanceState { kept, changed } = &mut *known;
        self.take_notices(changed, |_| true);
        for kept in kept.iter().filter(|_| read) {
            if kept.differs() {
                changed.insert(kept.name.clone());
            }
        }
        known
    }

    fn take_notices(&self, changed: &mut BTreeSet<String>, counts: impl Fn(&str) -> bool) {
        if let Some(notices) = &self.notices {
            notices.take(|name| {
                if counts(&name) {
                    changed.insert(name);
                }
            });
        }
    }
}

/// The kernel's reports of writes.
#[derive(Debug)]
struct Notices {
    queue: OwnedFd,
    /// The file or directory of each watch, below the instance's directory.
    places: BTreeMap<i32, String>,
    /// The directories of events, kept open: otherwise the kernel may forget them, together with their watches.
    _held: Vec<File>,
}

impl Notices {
    fn open(folder: &Path, cpus: &CpuList, events: &[EventPath]) -> io::Result<Self> {
        let queue = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)?;
        let mut places = BTreeMap::new();
        let mut add = |place: String, flags: WatchFlags| -> io::Result<()> {
            match inotify::add_watch(&queue, folder.join(&place), flags) {
                Ok(watch) => drop(places.insert(watch, place)),
                Err(rustix::io::Errno::NOENT) => {}
                Err(error) => return Err(error.into()),
            }
            Ok(())
        };
        let mut held = Vec::new();
        let path_only = |place: &str| {
            OpenOptions::new().read(true).custom_flags(libc::O_PATH | libc::O_DIRECTORY).open(folder.join(place))
        };
        let event_folders =
            events.iter().flat_map(|event| [format!("events/{}", event.system), format!("events/{event}")]);
        let directories: BTreeSet<String> =
            ["", "options", "events"].map(str::to_owned).into_iter().chain(event_folders).collect();
        for place in directories {
            if place.starts_with("events/") {
                held.extend(path_only(&place));
            }
            add(place, WatchFlags::MODIFY | WatchFlags::CLOSE_WRITE)?;
        }
        // Before 5.9, kernels always stop recording while a program has the text of the trace open.
        let stopping = (!folder.join("options/pause-on-trace").exists()).then_some("trace");
        for name in TAKING.into_iter().chain(stopping) {
            add(name.to_owned(), WatchFlags::OPEN)?;
        }
        for cpu in cpus.iter() {
            add(format!("per_cpu/cpu{cpu}"), WatchFlags::MODIFY | WatchFlags::CLOSE_WRITE)?;
            for name in TAKING_OF_CPU {
                add(format!("per_cpu/cpu{cpu}/{name}"), WatchFlags::OPEN)?;
            }
        }
        Ok(Self { queue, places, _held: held })
    }

    /// Takes the pending reports, each with the name of the file.
    fn take(&self, mut take: impl FnMut(String)) {
        let mut buffer = [MaybeUninit::uninit(); 4096];
        let mut reader = inotify::Reader::new(&self.queue, &mut buffer);
        while let Ok(notice) = reader.next() {
            if notice.events().contains(ReadFlags::QUEUE_OVERFLOW) {
                take("more files than the kernel could notify of".to_owned());
                continue;
            }
            // The last report of a watch: its directory is gone.
            let Some(place) = self.places.get(&notice.wd()).filter(|_| !notice.events().contains(ReadFlags::IGNORED))
            else {
                continue;
            };
            let file = notice.file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
            if !HARMLESS.contains(&file.as_ref()) {
                let parts = [place.as_str(), file.as_ref()];
                take(parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("/"));
            }
        }
    }
}

/// The current content of an open file of tracefs.
fn text(file: &File) -> io::Result<Vec<u8>> {
    let mut text = vec![0; 4096];
    let mut length = 0;
    loop {
        match file.read_at(&mut text[length..], length as u64) {
            Ok(0) => break,
            Ok(read) => length += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
        text.resize(length + 4096, 0);
    }
    text.truncate(length);
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn instance() -> tempfile::TempDir {
        let tree = tempfile::tempdir().unwrap();
        fs::create_dir_all(tree.path().join("events/sched/sched_switch")).unwrap();
        fs::create_dir_all(tree.path().join("per_cpu/cpu0")).unwrap();
        for (file, text) in [
            ("tracing_on", "1\n"),
            ("trace_clock", "local [mono_raw]\n"),
            ("trace_marker", ""),
            ("trace_pipe", ""),
            ("events/sched/sched_switch/filter", "none\n"),
            ("per_cpu/cpu0/buffer_size_kb", "7\n"),
            ("per_cpu/cpu0/trace_pipe_raw", ""),
        ] {
            fs::write(tree.path().join(file), text).unwrap();
        }
        tree
    }

    fn watch(tree: &Path) -> Changes {
        let event = EventPath { system: "sched".to_owned(), name: "sched_switch".to_owned() };
        let mut changes = Changes::remember(tree, std::slice::from_ref(&event), false);
        changes.notify(tree, &"0".parse().unwrap(), &[event]);
        changes
    }

    #[test]
    fn a_change_that_is_undone_is_noticed() {
        for file in ["tracing_on", "events/sched/sched_switch/filter", "per_cpu/cpu0/buffer_size_kb"] {
            let tree = instance();
            let changes = watch(tree.path());
            assert_eq!(changes.found(), Vec::<String>::new());
            let before = fs::read(tree.path().join(file)).unwrap();
            fs::write(tree.path().join(file), "other\n").unwrap();
            fs::write(tree.path().join(file), before).unwrap();
            assert_eq!(changes.found(), [file]);
            assert_eq!(changes.found(), [file], "it is not forgotten");
        }
    }

    #[test]
    fn who_takes_events_away_is_noticed_and_who_only_looks_is_not() {
        let tree = instance();
        let changes = watch(tree.path());
        fs::read(tree.path().join("trace_clock")).unwrap();
        fs::write(tree.path().join("trace_marker"), "hello").unwrap();
        assert_eq!(changes.found(), Vec::<String>::new());
        fs::read(tree.path().join("per_cpu/cpu0/trace_pipe_raw")).unwrap();
        fs::read(tree.path().join("trace_pipe")).unwrap();
        assert_eq!(changes.found(), ["per_cpu/cpu0/trace_pipe_raw", "trace_pipe"]);
    }

    #[test]
    fn own_switching_is_no_change_and_hides_none() {
        let tree = instance();
        let changes = watch(tree.path());
        let switch = tree.path().join("tracing_on");
        changes.turn(|| fs::write(&switch, "0\n")).unwrap();
        assert_eq!(changes.found(), Vec::<String>::new());
        fs::write(&switch, "1\n").unwrap();
        changes.turn(|| fs::write(&switch, "0\n")).unwrap();
        assert_eq!(changes.found(), ["tracing_on"]);
    }

    #[test]
    fn without_notices_what_stays_changed_is_found() {
        let tree = instance();
        let changes = Changes::remember(tree.path(), &[], false);
        fs::write(tree.path().join("trace_clock"), "[local] mono_raw\n").unwrap();
        assert_eq!(changes.found(), ["trace_clock"]);
    }
}
