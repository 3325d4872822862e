//! becalm's own tracing instance: separate buffers, clock and events.
//!
//! *Lost events.* The buffers overwrite the oldest events when full, because only then does the kernel mark the loss in the pages themselves, with
//! the count and at its position in time; so exactly the detours around it are marked incomplete. Buffers that drop the newest events only count them
//! in `stats`, without the time.
//!
//! *Inherited options.* A new instance starts with the options of the top-level one, so one user's `stacktrace` would make each of our events cost
//! microseconds. Everything that adds work or records is switched off.

use std::fs;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use becalm_units::{CpuId, CpuList, Named, bracketed};

use super::changes::{Changes, THREADS};
use super::decoder::Decoder;
use super::error::TracefsError;
use super::format::{EventFormat, HeaderPage};
use super::leftover::{InstanceName, remove_instance};
use super::reader::PageReader;
use super::stats::CpuStats;
use super::tracefs::{Tracefs, read};
use super::wanted::{EventGroup, EventPath, MissingEvent, discover};
use crate::janitor::Janitor;

/// The clock that stamps events, named as in the kernel.
#[derive(Clone, Copy, PartialEq, Eq, Debug, strum::IntoStaticStr, strum::VariantArray)]
#[strum(serialize_all = "snake_case")]
pub enum TraceClock {
    /// The raw time stamp counter of x86, in its ticks.
    #[strum(serialize = "x86-tsc")]
    X86Tsc,
    /// `CLOCK_MONOTONIC_RAW`, in nanoseconds; NTP does not change its rate.
    MonoRaw,
    /// `CLOCK_MONOTONIC`, in nanoseconds; NTP may change its rate.
    Mono,
}

/// Whose page faults are recorded. A thread pays for each of its recorded faults, and many of them fill the buffers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Faults {
    /// Those of all threads.
    All,
    /// Only those of threads whose names start with this. Each fault of other threads costs a name comparison.
    Of(&'static str),
    /// None, at no cost for any thread.
    None,
}

/// The configuration of an instance: its CPUs, clock and buffers.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct InstanceConfig {
    /// The CPUs whose events are recorded.
    pub cpus: CpuList,
    /// The size of the buffer per recorded CPU, in KiB. The kernel may round it up; if memory is short, a CPU gets 1 MiB.
    pub clock: TraceClock,
    /// The size of the buffer of each of these CPUs, in KiB. The kernel may round it up; where memory is short, a CPU gets 1 MiB.
    pub buffer_kb: u32,
    /// The size of a sub-buffer, in KiB; `None`, or a kernel before 6.8, uses the kernel's own size, normally a page.
    pub subbuf_kb: Option<u32>,
    /// Whose page faults are recorded.
    pub faults: Faults,
    /// The recorded events, such as [`WANTED`](super::WANTED).
    pub events: &'static [&'static [EventGroup]],
    /// The CPUs that [`EventFilter`](super::EventFilter) means; empty for filters that mean none.
    pub concerned: CpuList,
    /// Record only events of these threads, and of those that they create; `None` records those of all.
    pub threads: Option<Vec<i32>>,
}

/// A tracing instance, which is removed on drop. Its [`PageReader`]s must be closed by then.
#[derive(Debug)]
pub struct Instance {
    name: InstanceName,
    folder: PathBuf,
    page_size: usize,
    decoder: Decoder,
    enabled: Vec<EventPath>,
    missing: Vec<MissingEvent>,
    janitor: Option<Arc<Janitor>>,
    /// `tracing_on`, open for writing, so recording can start and stop without the right to open it. `None` until it is set up, and before it is
    /// removed.
    switch: Option<fs::File>,
    /// Detects changes by others. `None` until it is set up, and before it is removed.
    changes: Option<Changes>,
    /// Keeps our own mount for as long as the instance needs it.
    _tracefs: Tracefs,
}

/// The file that switches an instance on and off.
pub(super) const SWITCH: &str = "tracing_on";

/// Numbers the instances of this process.
static SERIAL: AtomicU32 = AtomicU32::new(0);

/// Options that cost time or records, with their values. Options that a kernel lacks are skipped.
const OPTIONS: &[(&str, bool)] = &[
    ("overwrite", true),
    // Would hook every thread switch and wake-up to keep a table of names that we do not read.
    ("record-cmd", false),
    ("record-tgid", false),
    // Writes of others to trace_marker.
    ("markers", false),
    ("copy_trace_marker", false),
    ("stacktrace", false),
    ("userstacktrace", false),
    ("event-fork", false),
    ("function-fork", false),
    // Would stop the recording while someone reads the text of the trace.
    ("pause-on-trace", false),
];

/// The buffer of CPUs that are not recorded, in KiB; the kernel rounds it up to two sub-buffers.
const IDLE_BUFFER_KB: u32 = 1;

/// The buffer of a CPU if there is no memory for the requested size, in KiB: room for about 40,000 events.
const SMALL_BUFFER_KB: u32 = 1 << 10;

/// How long a removal waits for readers to be closed.
const REMOVAL_PATIENCE: Duration = Duration::from_secs(1);

impl Instance {
    /// Creates an instance with every wanted event of this kernel enabled, and recording off. The janitor, if given, removes the instance if this
    /// process is killed.
    ///
    /// Creating an instance briefly allocates the kernel's default buffers for every online CPU (1.4 MB each), before they are cut to size. Fails if
    /// the instance cannot be created or set up; it is then removed again. Missing events are not an error, see [`Self::missing`].
    pub fn create(
        tracefs: &Tracefs,
        proc_root: &Path,
        config: &InstanceConfig,
        janitor: Option<Arc<Janitor>>,
    ) -> Result<Self, TracefsError> {
        let header_file = tracefs.root().join("events/header_page");
        let header = HeaderPage::parse(&header_file.display().to_string(), &read(&header_file)?)?;
        let serial = SERIAL.fetch_add(1, Ordering::Relaxed);
        let name = InstanceName { serial, ..InstanceName::own(proc_root)? };
        let folder = tracefs.root().join("instances").join(name.to_string());
        if let Some(janitor) = &janitor {
            // Before it exists, so being killed at any moment leaves nothing.
            janitor.guard(&folder).map_err(|error| TracefsError::io("guard the trace instance", &folder, error))?;
        }
        if let Err(error) = fs::create_dir(&folder) {
            if let Some(janitor) = &janitor {
                // If this fails, the janitor tries to remove an instance that does not exist, which is harmless.
                let _ = janitor.release(&folder);
            }
            return Err(TracefsError::io("create the trace instance", &folder, error));
        }
        // From here on the drop removes it.
        let mut instance = Self {
            name,
            folder,
            page_size: 0,
            decoder: Decoder::new(&header),
            enabled: Vec::new(),
            missing: Vec::new(),
            janitor,
            switch: None,
            changes: None,
            _tracefs: tracefs.clone(),
        };
        instance.set_up(config)?;
        instance.changes = Some(Changes::remember(&instance.folder, &instance.enabled, config.threads.is_some()));
        Ok(instance)
    }

    /// Sets everything. In this order nothing is recorded, and no setting undoes another: changing the clock or the sub-buffer size empties the
    /// buffers.
    fn set_up(&mut self, config: &InstanceConfig) -> Result<(), TracefsError> {
        let switch = self.folder.join(SWITCH);
        let opened = fs::OpenOptions::new().write(true).truncate(true).open(&switch);
        self.switch = Some(opened.map_err(|error| TracefsError::io("open", &switch, error))?);
        self.turn("0")?;
        for (option, is_on) in OPTIONS {
            let value = if *is_on { (*option).to_owned() } else { format!("no{option}") };
            match self.set("trace_options", &value) {
                Err(TracefsError::Io { source, .. }) if source.raw_os_error() == Some(libc::EINVAL) => {}
                result => result?,
            }
        }
        let options = read(&self.folder.join("trace_options"))?;
        if options.lines().any(|line| line == "nooverwrite") {
            return Err(self.refused("trace_options", "overwrite", "nooverwrite", "lost events would not be seen"));
        }
        self.set_clock(config.clock)?;
        // First, to avoid allocating larger sub-buffers for the kernel's default number of pages on every CPU.
        self.set("buffer_size_kb", &IDLE_BUFFER_KB.to_string())?;
        self.page_size = self.set_sub_buffers(config.subbuf_kb)?;
        self.set("buffer_size_kb", &IDLE_BUFFER_KB.to_string())?;
        for cpu in config.cpus.iter() {
            self.set_buffer(cpu, config.buffer_kb)?;
        }
        self.set("tracing_cpumask", &config.cpus.to_mask())?;
        if let Some(threads) = &config.threads {
            self.set("trace_options", "event-fork")?;
            let numbers: Vec<String> = threads.iter().map(ToString::to_string).collect();
            self.set(THREADS, &numbers.join(" "))?;
        }
        self.enable_events(config)
    }

    /// Gives a CPU its buffer, or a small one if there is no memory for it.
    fn set_buffer(&self, cpu: CpuId, wanted: u32) -> Result<(), TracefsError> {
        let file = format!("per_cpu/cpu{cpu}/buffer_size_kb");
        let kb = or_small(wanted, |kb| self.set(&file, &kb.to_string()))?;
        let got = self.buffer_kb(cpu)?;
        if got < kb {
            return Err(self.refused(&file, &kb.to_string(), &got.to_string(), "ask for a smaller buffer"));
        }
        Ok(())
    }

    fn set_clock(&self, clock: TraceClock) -> Result<(), TracefsError> {
        self.set("trace_clock", clock.name())?;
        let text = read(&self.folder.join("trace_clock"))?;
        match bracketed(&text) {
            Some(current) if current == clock.name() => Ok(()),
            current => {
                let got = current.unwrap_or(text.trim());
                Err(self.refused("trace_clock", clock.name(), got, "choose a clock that trace_clock lists"))
            }
        }
    }

    /// Sets the size of sub-buffers, if the kernel supports it and has the memory, and returns the actual size in bytes.
    fn set_sub_buffers(&self, kb: Option<u32>) -> Result<usize, TracefsError> {
        const FILE: &str = "buffer_subbuf_size_kb";
        let path = self.folder.join(FILE);
        if !path.exists() {
            return Ok(rustix::param::page_size());
        }
        match kb.map(|kb| self.set(FILE, &kb.to_string())) {
            Some(Err(error)) if !error.is_no_memory() => return Err(error),
            _ => {}
        }
        let text = read(&path)?;
        let kb: Option<usize> = text.trim().parse().ok().filter(|kb| (1..=1 << 20).contains(kb));
        let kb = kb.ok_or_else(|| TracefsError::Content(path, format!("'{}' is not a size", text.trim())))?;
        Ok(kb * 1024)
    }

    /// Enables the wanted events one by one. Events that cannot be described or enabled are added to the missing ones.
    fn enable_events(&mut self, config: &InstanceConfig) -> Result<(), TracefsError> {
        let found = discover(&self.folder.join("events"), std::env::consts::ARCH, config.events)?;
        self.missing = found.missing;
        for (event, wanted) in found.present {
            let filters = match config.faults {
                _ if event.system != "exceptions" => wanted.filter.expressions(&config.concerned, &config.cpus),
                Faults::All => Vec::new(),
                Faults::Of(name) => vec![format!("comm ~ \"{name}*\"")],
                Faults::None => continue,
            };
            let is_required = wanted.filter.is_required() || event.system == "exceptions";
            match self.enable(&event, &filters, is_required) {
                Ok(()) => self.enabled.push(event),
                Err(error) => self.missing.push(MissingEvent {
                    event: event.to_string(),
                    why: error.to_string(),
                    unseen: wanted.unseen,
                }),
            }
        }
        Ok(())
    }

    /// Enables an event with the first of the filters that this kernel accepts; without any if none of them is required.
    fn enable(&mut self, event: &EventPath, filters: &[String], is_required: bool) -> Result<(), TracefsError> {
        let file = self.folder.join(format!("events/{event}/format"));
        let format = EventFormat::parse(&file.display().to_string(), &read(&file)?)?;
        if self.decoder.learn(&event.system, &format)? {
            let mut refused = None;
            for filter in filters {
                refused = self.set(&format!("events/{event}/filter"), filter).err();
                if refused.is_none() {
                    break;
                }
            }
            if let Some(error) = refused.filter(|_| is_required) {
                return Err(error);
            }
            self.set(&format!("events/{event}/enable"), "1")?;
        }
        Ok(())
    }

    /// The instance's name, which is that of its directory.
    pub fn name(&self) -> InstanceName {
        self.name
    }

    /// The instance's directory below `instances/`.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The size of a sub-buffer, in bytes.
    pub fn page_size(&self) -> usize {
        self.page_size
    }

    /// The decoder that has learned the formats of the enabled events.
    pub fn decoder(&self) -> &Decoder {
        &self.decoder
    }

    /// The events that are recorded.
    pub fn enabled(&self) -> &[EventPath] {
        &self.enabled
    }

    /// The events that should be recorded but are not, each with the reason and with what stays unseen.
    pub fn missing(&self) -> &[MissingEvent] {
        &self.missing
    }

    /// Starts recording.
    pub fn start(&self) -> Result<(), TracefsError> {
        self.turn("1")
    }

    /// Stops recording. Recorded events can still be read.
    pub fn stop(&self) -> Result<(), TracefsError> {
        self.turn("0")
    }

    fn turn(&self, value: &str) -> Result<(), TracefsError> {
        let write = || match &self.switch {
            Some(switch) => switch.write_all_at(value.as_bytes(), 0),
            None => Err(io::ErrorKind::NotFound.into()),
        };
        let written = match &self.changes {
            Some(changes) => changes.turn(write),
            None => write(),
        };
        written.map_err(|error| TracefsError::io(format!("write '{value}' to"), &self.folder.join(SWITCH), error))
    }

    /// Makes the kernel report each change by others from now on. Everything but the switch is set up, and all readers are open.
    pub fn watch_changes(&mut self, cpus: &CpuList) {
        if let Some(changes) = &mut self.changes {
            changes.notify(&self.folder, cpus, &self.enabled);
        }
    }

    /// The files that others used to change the instance since it was set up; empty if it is unchanged.
    pub fn changed(&self) -> Vec<String> {
        self.changes.as_ref().map(Changes::found).unwrap_or_default()
    }

    /// The same from the kernel's reports alone, for moments when reading the files would disturb.
    pub fn noticed_changes(&self) -> Vec<String> {
        self.changes.as_ref().map(Changes::noticed).unwrap_or_default()
    }

    /// Opens the buffer of a CPU for reading. Fails if the CPU has none, or it cannot be opened.
    pub fn reader(&self, cpu: CpuId) -> Result<PageReader, TracefsError> {
        PageReader::open(&self.folder.join(format!("per_cpu/cpu{cpu}/trace_pipe_raw")), cpu, self.page_size)
    }

    /// Makes a poll on the readers wait until this percentage of a CPU's buffer is full. Returns whether this kernel can: before 5.0, a poll ends
    /// with the first event.
    #[must_use]
    pub fn wake_when_full(&self, percent: u32) -> bool {
        self.set("buffer_percent", &percent.to_string()).is_ok()
    }

    /// The kernel's statistics of a CPU's buffer. Fails if the CPU has none, or its `stats` cannot be read.
    pub fn stats(&self, cpu: CpuId) -> Result<CpuStats, TracefsError> {
        let path = self.folder.join(format!("per_cpu/cpu{cpu}/stats"));
        CpuStats::parse(&read(&path)?).map_err(|why| TracefsError::Content(path, why))
    }

    /// The size of a CPU's buffer as the kernel made it, in KiB. Fails if the CPU has none, or its size cannot be read.
    pub fn buffer_kb(&self, cpu: CpuId) -> Result<u32, TracefsError> {
        let path = self.folder.join(format!("per_cpu/cpu{cpu}/buffer_size_kb"));
        let text = read(&path)?;
        // `7 (expanded: 1408)` before the first use.
        let size = text.split_whitespace().next().and_then(|word| word.parse().ok());
        size.ok_or_else(|| TracefsError::Content(path, format!("'{}' is not a size", text.trim())))
    }

    /// Removes the instance like drop, but returns errors. All readers must be closed. Fails if a reader is still open after a second, or with the
    /// kernel's error. The janitor, if there is one, tries again when this process ends.
    pub fn remove(mut self) -> Result<(), TracefsError> {
        self.take_away()
    }

    fn take_away(&mut self) -> Result<(), TracefsError> {
        if self.folder.as_os_str().is_empty() {
            return Ok(());
        }
        let folder = std::mem::take(&mut self.folder);
        // Open files of the instance prevent its removal.
        (self.switch, self.changes) = (None, None);
        let Some(janitor) = &self.janitor else { return remove_instance(&folder, REMOVAL_PATIENCE) };
        // This process may have given up the right to do it. If it has not, it can do so without a janitor that was killed.
        if janitor.take_away(&folder).is_err() {
            remove_instance(&folder, REMOVAL_PATIENCE)?;
            // If this fails, the janitor tries to remove an instance that is gone, which is harmless.
            let _ = janitor.release(&folder);
        }
        Ok(())
    }

    pub(super) fn set(&self, file: &str, value: &str) -> Result<(), TracefsError> {
        let path = self.folder.join(file);
        let written = fs::OpenOptions::new().write(true).truncate(true).open(&path);
        let written = written.and_then(|mut file| io::Write::write_all(&mut file, value.as_bytes()));
        written.map_err(|error| TracefsError::io(format!("write '{value}' to"), &path, error))
    }

    fn refused(&self, file: &str, wanted: &str, got: &str, advice: &'static str) -> TracefsError {
        let path = self.folder.join(file);
        let path = path.display();
        TracefsError::Refused(format!("{path} holds '{got}' after '{wanted}' was written to it: {advice}"))
    }
}

/// Sets a size in KiB, or [`SMALL_BUFFER_KB`] if there is no memory for it. Returns the size set.
fn or_small(wanted: u32, mut set: impl FnMut(u32) -> Result<(), TracefsError>) -> Result<u32, TracefsError> {
    match set(wanted) {
        Err(error) if error.is_no_memory() && wanted > SMALL_BUFFER_KB => {
            set(SMALL_BUFFER_KB).map(|()| SMALL_BUFFER_KB)
        }
        set => set.map(|()| wanted),
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        // If this fails, the janitor removes it, or the next run, which removes leftovers of dead processes.
        let _ = self.take_away();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config() -> InstanceConfig {
        InstanceConfig {
            cpus: "0".parse().unwrap(),
            clock: TraceClock::MonoRaw,
            buffer_kb: 64,
            subbuf_kb: None,
            faults: Faults::All,
            events: &[super::super::wanted::WANTED],
            concerned: CpuList::default(),
            threads: None,
        }
    }

    #[test]
    fn a_folder_that_the_kernel_does_not_fill_is_an_error_and_is_removed() {
        let tree = tempfile::tempdir().unwrap();
        fs::create_dir_all(tree.path().join("events")).unwrap();
        fs::create_dir_all(tree.path().join("instances")).unwrap();
        let header = include_str!("../../tests/data/linux-6.18-x86_64/header_page");
        fs::write(tree.path().join("events/header_page"), header).unwrap();
        let tracefs = Tracefs::at(tree.path()).unwrap();
        let error = Instance::create(&tracefs, Path::new("/proc"), &config(), None).unwrap_err().to_string();
        assert!(error.starts_with("cannot open ") && error.contains("/tracing_on: No such file"), "{error}");
        assert_eq!(fs::read_dir(tree.path().join("instances")).unwrap().count(), 0);
    }

    #[test]
    fn without_a_place_for_instances_the_error_names_it() {
        let tree = tempfile::tempdir().unwrap();
        fs::create_dir_all(tree.path().join("events")).unwrap();
        let tracefs = Tracefs::at(tree.path()).unwrap();
        let error = Instance::create(&tracefs, Path::new("/proc"), &config(), None).unwrap_err().to_string();
        assert!(error.contains("events/header_page: No such file"), "{error}");
    }

    #[test]
    fn a_buffer_for_which_there_is_no_memory_is_a_small_one() {
        let no_memory =
            |code| TracefsError::io("write", Path::new("/t/buffer_size_kb"), io::Error::from_raw_os_error(code));
        let refuse_above = |most: u32, code| move |kb: u32| if kb > most { Err(no_memory(code)) } else { Ok(()) };
        assert_eq!(or_small(16 << 10, refuse_above(u32::MAX, libc::ENOMEM)).unwrap(), 16 << 10);
        assert_eq!(or_small(16 << 10, refuse_above(4 << 10, libc::ENOMEM)).unwrap(), 1 << 10);
        assert!(or_small(16 << 10, refuse_above(4 << 10, libc::EACCES)).is_err());
        assert!(or_small(16 << 10, refuse_above(64, libc::ENOMEM)).is_err());
        assert!(or_small(512, refuse_above(64, libc::ENOMEM)).is_err());
    }
}
