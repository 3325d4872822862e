//! A trace of the kernel's own pages, as trace-cmd stores them: decoded page by page, each time that it is read.

use std::collections::BTreeSet;
use std::sync::Arc;

use becalm_linux::ftrace::{Decoder, EventFormat, EventPath, HeaderPage, RawHappening, printk_formats};
use becalm_linux::procfs::kallsyms::Kallsyms;
use becalm_measure::{Names, Translator, UNTRACED_TIMER};
use becalm_model::{Event, Pid};
use becalm_units::CpuId;

use super::clock::Axis;
use super::{KernelTrace, StampClock, Take, TraceError};
use crate::read::trace_dat::TraceDat;
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
        Ok(Self { decoder, translator, known, has_symbols })
    }

    /// The known events whose numbers satisfy `has`.
    pub fn events(&self, has: impl Fn(u16) -> bool) -> Vec<EventPath> {
        self.known.iter().filter(|(_, id)| has(*id)).map(|(event, _)| event.clone()).collect()
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
    backwards: u64,
}

impl<'a> PagedTrace<'a> {
    /// A trace of a file whose stamps count as `clock` does. Fails if the file's event formats cannot be used, or no CPU has an event.
    pub fn new(mut file: TraceDat<'a>, clock: StampClock, names: &mut Names) -> Result<Self, ReadError> {
        let taught = Taught::new(&file.formats, names)?;
        // No longer needed; its tables are large.
        file.formats = KernelFormats::default();
        let (mut origin, mut with_events) = (None, Vec::new());
        // The file also has the formats of events that were not enabled.
        let (mut came, mut others) = (BTreeSet::new(), 0);
        for pages in &file.cpus {
            let mut first = None;
            pages.each(&mut |place, page| {
                let summary = taught.decoder.page(page, &mut |_| {}).map_err(|error| damaged(place, &error))?;
                first = first.or(summary.first);
                others += summary.ignored;
                let ids = taught.decoder.ids(page, &mut |id| {
                    came.insert(id);
                });
                ids.map(|()| true).map_err(|error| damaged(place, &error))
            })?;
            with_events.push(first.is_some());
            let first = first.map(|stamp| clock.nanos(stamp));
            origin = [origin, first].into_iter().flatten().min();
        }
        let mut with_events = with_events.into_iter();
        file.cpus.retain(|_| with_events.next() == Some(true));
        let origin = origin.ok_or_else(|| ReadError::new("it holds no event"))?;
        let events = taught.events(|id| came.contains(&id));
        Ok(Self { file, taught, events, others, clock, origin, backwards: 0 })
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
}

fn damaged(place: usize, error: &dyn std::fmt::Display) -> ReadError {
    ReadError::byte(place, format!("the page here is not as the kernel writes it: {error}"))
}

impl KernelTrace for PagedTrace<'_> {
    fn cpus(&self) -> Vec<CpuId> {
        self.file.cpus.iter().map(|pages| pages.cpu).collect()
    }

    fn each(&mut self, index: usize, names: &mut Names, take: &mut Take<'_>) -> Result<(), TraceError> {
        let Self { file, taught: Taught { decoder, translator, .. }, clock, origin, .. } = self;
        let mut axis = Axis::new(*origin);
        let mut failed = None;
        let mut events: Vec<Event> = Vec::new();
        file.cpus[index].each(&mut |place, page| {
            events.clear();
            let mut misplaced = None;
            let decoded = decoder.page(page, &mut |raw| {
                // A page may start with the stamp of a discarded record, before the first event of all.
                let nanos = clock.nanos(raw.time).max(*origin);
                match axis.place(nanos, place) {
                    Ok(time) if !matches!(raw.what, RawHappening::PageFault { .. }) => {
                        events.push(translator.translate(&raw, time, names));
                    }
                    Ok(_) => {}
                    Err(error) => misplaced = Some(error),
                }
            });
            decoded.map_err(|error| damaged(place, &error))?;
            misplaced.map_or(Ok(()), Err)?;
            failed = events.iter().try_for_each(|event| take(event, names)).err();
            Ok(failed.is_none())
        })?;
        self.backwards += axis.backwards;
        failed.map_or(Ok(()), Err)
    }

    fn backwards(&self) -> u64 {
        self.backwards
    }
}
