//! A trace of the kernel's own pages, as trace-cmd stores them: decoded page by page, each time that it is read.

use std::collections::BTreeSet;
use std::sync::Arc;

use becalm_linux::ftrace::{Decoder, EventFormat, EventPath, HeaderPage, RawEvent, RawHappening, printk_formats};
use becalm_linux::procfs::kallsyms::Kallsyms;
use becalm_measure::{Names, Translator, UNTRACED_TIMER};
use becalm_model::{Event, Pid};
use becalm_units::{CpuId, Nanos};

use super::clock::Axis;
use super::{KernelTrace, StampClock, ThreadLog, TraceError};
use crate::read::trace_dat::{PageCursor, TraceDat};
use crate::read::{KernelFormats, ReadError};

/// A decoder of a kernel's events, taught by a file.
#[derive(Debug)]
pub(super) struct Taught {
    pub decoder: Decoder,
    pub translator: Translator,
    /// The events that it knows, with their numbers.
    known: Vec<(EventPath, u16)>,
    /// Whether functions have names.
    pub has_symbols: bool,
    /// Whether the trace shows the creation of a thread twice.
    repeats_creations: bool,
}

impl Taught {
    /// Teaches a decoder the formats of a file. Fails if a description is invalid or lacks a required field.
    pub fn new(formats: &KernelFormats, names: &mut Names) -> Result<Self, ReadError> {
        let refused = |error: &dyn std::fmt::Display| {
            ReadError::new(format!("its descriptions of events cannot be used: {error}"))
        };
        let header = HeaderPage::parse("header_page", &formats.header_page).map_err(|error| refused(&error))?;
        let mut decoder = Decoder::new(&header);
        let mut known = Vec::new();
        for (system, text) in &formats.events {
            let format = EventFormat::parse(system, text).map_err(|error| refused(&error))?;
            if decoder.learn(system, &format).map_err(|error| refused(&error))? {
                known.push((EventPath { system: system.clone(), name: format.name }, format.id));
            }
        }
        known.sort_unstable();
        known.dedup();
        let symbols = Kallsyms::parse(&formats.symbols).map_err(|error| refused(&error))?;
        let symbols = symbols.filter(|symbols| !symbols.is_empty()).map(Arc::new);
        let has_symbols = symbols.is_some();
        for (pid, name) in formats.threads() {
            names.see(Pid(pid), name.as_bytes());
        }
        let strings = printk_formats(&formats.strings);
        let translator = Translator::new(&decoder, symbols, &strings, UNTRACED_TIMER, &mut names.labels);
        Ok(Self { decoder, translator, known, has_symbols, repeats_creations: false })
    }

    /// Of two events that show the creation of a thread, only the one with more facts counts from now on, if the trace has these events.
    pub fn leave_out_repeated_creations(&mut self, events: &[EventPath]) {
        self.repeats_creations = events.iter().any(|event| event.system == "task" && event.name == "task_newtask");
    }

    /// Whether an event counts.
    pub const fn counts(&self, what: &RawHappening<'_>) -> bool {
        counts(what, self.repeats_creations)
    }

    /// The known events whose numbers satisfy `has`.
    pub fn events(&self, has: impl Fn(u16) -> bool) -> Vec<EventPath> {
        self.known.iter().filter(|(_, id)| has(*id)).map(|(event, _)| event.clone()).collect()
    }
}

/// Whether an event counts. No event shows the end of a page fault: those of a thread are its own time.
const fn counts(what: &RawHappening<'_>, repeats_creations: bool) -> bool {
    match what {
        RawHappening::PageFault { .. } => false,
        RawHappening::Forked { .. } => !repeats_creations,
        _ => true,
    }
}

/// Enters the names that an event gives to threads.
pub(super) fn enter_names(log: &mut ThreadLog, cpu: CpuId, at: Nanos, raw: &RawEvent<'_>, names: &mut Names) {
    let named: [Option<(i32, &[u8])>; 2] = match raw.what {
        RawHappening::SchedSwitch { prev_pid, prev_comm, next_pid, next_comm, .. } => {
            [Some((prev_pid, prev_comm)), Some((next_pid, next_comm))]
        }
        RawHappening::Waking { pid, comm }
        | RawHappening::Woken { pid, comm, .. }
        | RawHappening::Renamed { pid, comm } => [Some((pid, comm)), None],
        _ => [None; 2],
    };
    for (pid, comm) in named.into_iter().flatten() {
        let comm = comm.split(|byte| *byte == 0).next().unwrap_or_default();
        log.name(cpu, at, Pid(pid), names.labels.intern(&String::from_utf8_lossy(comm)));
    }
}

/// A file of trace-cmd.
#[derive(Debug)]
pub struct PagedTrace<'a> {
    file: TraceDat<'a>,
    taught: Taught,
    /// The decoded events that occur, and the number of records of others.
    events: Vec<EventPath>,
    others: u64,
    clock: StampClock,
    /// The stamp of the first event of all CPUs, in nanoseconds.
    origin: i128,
    /// How far each CPU has been read.
    places: Vec<(PageCursor<'a>, Axis)>,
}

impl<'a> PagedTrace<'a> {
    /// A trace of a file whose stamps count as `clock` does. Fails if the file's event formats cannot be used, or no CPU has an event.
    pub fn new(mut file: TraceDat<'a>, clock: StampClock, names: &mut Names) -> Result<Self, ReadError> {
        let mut taught = Taught::new(&file.formats, names)?;
        // No longer needed; its tables are large.
        file.formats = KernelFormats::default();
        let (mut origin, mut with_events) = (None, Vec::new());
        // The file also has the formats of events that were not enabled.
        let (mut came, mut others) = (BTreeSet::new(), 0);
        for pages in &file.cpus {
            let mut first = None;
            let mut cursor = pages.cursor();
            while let Some((place, page)) = cursor.next_page()? {
                let summary = taught.decoder.page(page, &mut |_| {}).map_err(|error| damaged(place, &error))?;
                first = first.or(summary.first);
                others += summary.ignored;
                let ids = taught.decoder.ids(page, &mut |id| {
                    came.insert(id);
                });
                ids.map_err(|error| damaged(place, &error))?;
            }
            with_events.push(first.is_some());
            let first = first.map(|stamp| clock.nanos(stamp));
            origin = [origin, first].into_iter().flatten().min();
        }
        let mut with_events = with_events.into_iter();
        file.cpus.retain(|_| with_events.next() == Some(true));
        let origin = origin.ok_or_else(|| ReadError::new("it holds no event"))?;
        let events = taught.events(|id| came.contains(&id));
        taught.leave_out_repeated_creations(&events);
        let places = file.cpus.iter().map(|pages| (pages.cursor(), Axis::new(origin))).collect();
        Ok(Self { file, taught, events, others, clock, origin, places })
    }

    /// The decoded events that occur. The file does not list the enabled ones.
    pub fn events(&self) -> &[EventPath] {
        &self.events
    }

    /// The number of records of events that are not decoded.
    pub const fn others(&self) -> u64 {
        self.others
    }

    /// True if the file names the kernel's functions.
    pub const fn has_symbols(&self) -> bool {
        self.taught.has_symbols
    }

    /// The file, without its event formats.
    pub const fn file(&self) -> &TraceDat<'a> {
        &self.file
    }

    /// The clock at the run's origin, in nanoseconds.
    pub const fn origin(&self) -> i128 {
        self.origin
    }

    /// Passes the events of the next page of a CPU, each also as it was in the page; `false` if there are no more.
    fn page(
        &mut self,
        index: usize,
        names: &mut Names,
        pass: &mut dyn FnMut(&RawEvent<'_>, Event, &mut Names),
    ) -> Result<bool, ReadError> {
        let Self { taught, clock, origin, places, .. } = self;
        let Taught { decoder, translator, repeats_creations, .. } = taught;
        let (cursor, axis) = &mut places[index];
        let Some((place, page)) = cursor.next_page()? else { return Ok(false) };
        let mut misplaced = None;
        let decoded = decoder.page(page, &mut |raw| {
            // A page may start with the stamp of a discarded record, before the first event of all.
            let nanos = clock.nanos(raw.time).max(*origin);
            match axis.place(nanos, place) {
                Ok(time) if counts(&raw.what, *repeats_creations) => {
                    let event = translator.translate(&raw, time, names);
                    pass(&raw, event, names);
                }
                Ok(_) => {}
                Err(error) => misplaced = Some(error),
            }
        });
        decoded.map_err(|error| damaged(place, &error))?;
        misplaced.map_or(Ok(true), Err)
    }
}

fn damaged(place: usize, error: &dyn std::fmt::Display) -> ReadError {
    ReadError::byte(place, format!("the page here is not as the kernel writes it: {error}"))
}

impl KernelTrace for PagedTrace<'_> {
    fn cpus(&self) -> Vec<CpuId> {
        self.file.cpus.iter().map(|pages| pages.cpu).collect()
    }

    fn rewind(&mut self, index: usize) {
        self.places[index] = (self.file.cpus[index].cursor(), Axis::new(self.origin));
    }

    fn more(&mut self, index: usize, names: &mut Names, pass: &mut dyn FnMut(Event)) -> Result<bool, TraceError> {
        Ok(self.page(index, names, &mut |_, event, _| pass(event))?)
    }

    fn threads(&mut self, names: &mut Names) -> Result<ThreadLog, TraceError> {
        let mut log = ThreadLog::default();
        for (index, cpu) in self.cpus().into_iter().enumerate() {
            self.rewind(index);
            let mut take = |raw: &RawEvent<'_>, event: Event, names: &mut Names| {
                log.take(cpu, &event);
                enter_names(&mut log, cpu, event.time, raw, names);
            };
            while self.page(index, names, &mut take)? {}
        }
        Ok(log)
    }

    fn backwards(&self) -> u64 {
        self.places.iter().map(|(_, axis)| axis.backwards).sum()
    }
}
