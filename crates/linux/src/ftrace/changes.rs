//! Notices that another program changes an instance: `trace-cmd reset -a` walks them all.
//!
//! Two ways that complete each other. The kernel notifies of each write below the instance's directory (inotify), also of one that
//! is undone at once, and costs nothing until somebody writes. And the files that say what the instance records are open for
//! reading, to be compared with what they held: this needs no rights, and works where nothing can be notified of.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{File, OpenOptions};
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use becalm_units::CpuList;
use rustix::fs::inotify::{self, CreateFlags, ReadFlags, WatchFlags};

use super::instance::SWITCH;
use super::wanted::EventPath;

/// The files of an instance whose text says what it records. A kernel that lacks one has nothing there that could be changed.
const STATE: [&str; 11] = [
    SWITCH,
    "trace_clock",
    "tracing_cpumask",
    "trace_options",
    "current_tracer",
    // The events that are enabled.
    "set_event",
    "set_event_pid",
    "set_event_notrace_pid",
    "set_ftrace_pid",
    "buffer_total_size_kb",
    "buffer_subbuf_size_kb",
];

/// Files of an event whose text says which of its occurrences are recorded.
const OF_EVENT: [&str; 2] = ["filter", "trigger"];

/// Writing to these changes nothing of what is recorded.
const HARMLESS: [&str; 3] = ["trace_marker", "trace_marker_raw", "buffer_percent"];

/// Whoever opens these takes events away, or the buffer.
const TAKING: [&str; 2] = ["trace_pipe", "free_buffer"];
const TAKING_OF_CPU: [&str; 2] = ["trace_pipe", "trace_pipe_raw"];

/// A file, and what it held at the start.
#[derive(Debug)]
struct Kept {
    name: String,
    file: File,
    text: Vec<u8>,
}

impl Kept {
    fn open(folder: &Path, name: String) -> Option<Self> {
        let file = File::open(folder.join(&name)).ok()?;
        let text = text(&file).ok()?;
        Some(Self { name, file, text })
    }
}

/// What is known of the instance.
#[derive(Debug)]
struct Known {
    kept: Vec<Kept>,
    /// The files that others changed so far.
    changed: BTreeSet<String>,
}

/// Watches one instance.
#[derive(Debug)]
pub(super) struct Changes {
    notices: Option<Notices>,
    known: Mutex<Known>,
}

impl Changes {
    /// Watches the instance in this directory from now on.
    pub fn watch(folder: &Path, cpus: &CpuList, events: &[EventPath]) -> Self {
        let notices = Notices::open(folder, cpus, events).ok();
        let of_event = |event: &EventPath| OF_EVENT.map(|file| format!("events/{event}/{file}"));
        // With notices no descriptor need be spent on these.
        let of_events = events.iter().filter(|_| notices.is_none()).flat_map(of_event);
        let names = STATE.iter().map(ToString::to_string).chain(of_events);
        let kept = names.filter_map(|name| Kept::open(folder, name)).collect();
        Self { notices, known: Mutex::new(Known { kept, changed: BTreeSet::new() }) }
    }

    /// Becomes readable when somebody writes; `None` if the kernel cannot notify.
    pub fn notices(&self) -> Option<BorrowedFd<'_>> {
        self.notices.as_ref().map(|notices| notices.queue.as_fd())
    }

    /// Writes to the switch, which is no change by others.
    pub fn turn(&self, write: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
        let mut known = self.look();
        write()?;
        self.take_notices(&mut known.changed, |name| name != SWITCH);
        if let Some(switch) = known.kept.iter_mut().find(|kept| kept.name == SWITCH) {
            switch.text = text(&switch.file)?;
        }
        Ok(())
    }

    /// The files that others wrote to, or that do not hold what they held, since the start; none if nothing was changed.
    pub fn found(&self) -> Vec<String> {
        self.look().changed.iter().cloned().collect()
    }

    /// Learns what others changed by now.
    fn look(&self) -> MutexGuard<'_, Known> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let Known { kept, changed } = &mut *known;
        self.take_notices(changed, |_| true);
        for kept in kept {
            // A file that cannot be read says nothing of a change.
            if text(&kept.file).is_ok_and(|text| text != kept.text) {
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

/// The kernel's notices of writes.
#[derive(Debug)]
struct Notices {
    queue: OwnedFd,
    /// What each watch is of, below the instance's directory.
    places: BTreeMap<i32, String>,
    /// The directories of events, held open: while nobody has them open, the kernel may forget them, and what was to be notified
    /// of them.
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
        let of_events = events.iter().flat_map(|event| [format!("events/{}", event.system), format!("events/{event}")]);
        let directories: BTreeSet<String> =
            ["", "options", "events"].map(str::to_owned).into_iter().chain(of_events).collect();
        for place in directories {
            if place.starts_with("events/") {
                held.extend(path_only(&place));
            }
            add(place, WatchFlags::MODIFY | WatchFlags::CLOSE_WRITE)?;
        }
        for name in TAKING {
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

    /// Takes the notices that wait, each with the name of the file.
    fn take(&self, mut take: impl FnMut(String)) {
        let mut buffer = [MaybeUninit::uninit(); 4096];
        let mut reader = inotify::Reader::new(&self.queue, &mut buffer);
        while let Ok(notice) = reader.next() {
            if notice.events().contains(ReadFlags::QUEUE_OVERFLOW) {
                take("more files than the kernel could notify of".to_owned());
                continue;
            }
            // The kernel's last word on a watch: its directory is gone.
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

/// All that an open file of tracefs holds now.
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
        Changes::watch(tree, &"0".parse().unwrap(), &[event])
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
        let mut changes = watch(tree.path());
        changes.notices = None;
        fs::write(tree.path().join("trace_clock"), "[local] mono_raw\n").unwrap();
        assert_eq!(changes.found(), ["trace_clock"]);
    }
}
