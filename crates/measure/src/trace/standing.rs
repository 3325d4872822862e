//! A standing trace without loops: set up once, switched on and off as needed, and emptied now and then.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;
use std::sync::Arc;

use becalm_linux::clock::{Anchor, Counter, MonotonicRaw};
use becalm_linux::ftrace::{Faults, PageReader, RawHappening, TracefsError};
use becalm_linux::janitor::Janitor;
use becalm_linux::procfs::kallsyms::Kallsyms;
use becalm_linux::procfs::namespace;
use becalm_linux::sched;
use becalm_model::node::{TracingDoc, Warning};
use becalm_model::warning::changed_files;
use becalm_model::{Event, Pid};
use becalm_units::{CpuId, CpuList, Nanos};

use super::setup::read_symbols;
use super::softirqs::TracedSoftirqs;
use super::{Names, TraceRequest, Tracing, Translator};
use crate::plan::RecordPlan;

/// Readers are woken when a buffer is this full, in percent.
const WAKE_PERCENT: u32 = 50;

/// The assumed cost of an event if it could not be measured.
const UNKNOWN_COST: Nanos = Nanos::new(500);

/// No requested record is larger; a page with more room at its end is not full.
const LONGEST_RECORD: usize = 256;

/// The number of thread names after which all names are forgotten: the kernel keeps assigning new thread numbers while the machine runs.
const MOST_NAMES: usize = 4_096;

/// The kernel's trace of some CPUs, stamped with `CLOCK_MONOTONIC_RAW`.
pub struct StandingTrace {
    /// Closed before the instance is removed.
    readers: Vec<PageReader>,
    tracing: Tracing,
    /// `None` only while it is rebuilt.
    translator: Option<Translator>,
    symbols: Option<Arc<Kallsyms>>,
    names: Names,
    own: Vec<Pid>,
    numbers_are_own: bool,
    origin: Anchor,
    wakes: bool,
    softirqs: TracedSoftirqs,
    /// Softirqs that the trace lacks.
    lack: Option<Disturbance>,
    is_confirmed: bool,
    page: Vec<u8>,
    events: Vec<Event>,
}

/// How a trace was found not to be the one that becalm set up.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Disturbance {
    /// Another program changed these files.
    Files(Vec<String>),
    /// The kernel counted more softirqs than the trace contains.
    Softirqs {
        /// The CPU.
        cpu: CpuId,
        /// Softirqs counted since the trace was last complete.
        counted: u64,
        /// Softirqs in the trace.
        found: u64,
    },
}

impl fmt::Display for Disturbance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Files(files) => write!(f, "another program changed becalm's trace ({})", changed_files(files)),
            Self::Softirqs { cpu, counted, found } => {
                write!(
                    f,
                    "the kernel counted {counted} softirqs on CPU {cpu}, and becalm's trace holds {found} of them"
                )
            }
        }
    }
}

/// The result of emptying the buffers.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Drained {
    /// Events that were read.
    pub events: u64,
    /// Events that the kernel lost, as far as it reports their number.
    pub lost: u64,
    /// Pages that could not be decoded.
    pub broken: u64,
}

impl StandingTrace {
    /// Sets up the trace of these CPUs and leaves it off. Missing parts are added to the warnings; `None` if no trace is possible. `own` are threads
    /// of becalm.
    pub fn set_up(
        plan: &RecordPlan,
        cpus: &CpuList,
        own: &[Pid],
        guard: &Result<Arc<Janitor>, String>,
        warnings: &mut Vec<Warning>,
    ) -> Option<Self> {
        let mut tracing =
            Tracing::set_up(&TraceRequest::for_loops(plan, cpus, "monotonic_raw", Faults::None), guard, warnings)?;
        let readers = cpus.iter().map(|cpu| tracing.instance.reader(cpu)).collect::<Result<Vec<_>, _>>();
        let readers = match readers {
            Ok(readers) => readers,
            Err(error) => {
                warnings.push(becalm_model::warning::no_tracing(&error.to_string()));
                return None;
            }
        };
        tracing.instance.watch_changes(cpus);
        let symbols = tracing.symbols.take();
        let known = symbols.clone();
        let mut own = own.to_vec();
        own.push(Pid(sched::current_tid()));
        own.extend(guard.as_ref().ok().map(|janitor| Pid(janitor.pid())));
        let mut names = Names::new(&plan.root);
        let decoder = tracing.instance.decoder();
        let labels = &mut names.labels;
        let translator = Translator::new(decoder, symbols, &tracing.strings, tracing.untraced_timer, labels);
        let has_softirqs = tracing.doc.events.iter().any(|event| event == "irq/softirq_entry");
        let mut standing = Self {
            softirqs: TracedSoftirqs::new(&plan.root, has_softirqs, cpus.iter()),
            lack: None,
            is_confirmed: false,
            page: vec![0; tracing.instance.page_size()],
            wakes: tracing.instance.wake_when_full(WAKE_PERCENT),
            readers,
            tracing,
            translator: Some(translator),
            symbols: known,
            names,
            own,
            numbers_are_own: namespace::has_own_numbers(&plan.root),
            origin: Anchor::take::<MonotonicRaw>(),
            events: Vec::new(),
        };
        standing.name_own();
        Some(standing)
    }

    /// The CPUs, in the order of their numbers in [`Self::drain`].
    pub fn cpus(&self) -> impl ExactSizeIterator<Item = CpuId> + '_ {
        self.readers.iter().map(PageReader::cpu)
    }

    /// The cost of one event for the thread that it interrupts; assumed if it could not be measured.
    pub fn event_cost(&self) -> Nanos {
        self.tracing.doc.event_cost_ns.unwrap_or(UNKNOWN_COST)
    }

    /// The trace's part of documents.
    pub const fn doc(&self) -> &TracingDoc {
        &self.tracing.doc
    }

    /// The names of the kernel's functions, for simultaneous recordings; `None` if the kernel hides them.
    pub fn symbols(&self) -> Option<&Arc<Kallsyms>> {
        self.symbols.as_ref()
    }

    /// The names in the events.
    pub const fn names(&self) -> &Names {
        &self.names
    }

    /// The origin of the events' times.
    pub const fn origin(&self) -> Anchor {
        self.origin
    }

    /// Now, on the axis of the events.
    pub fn now(&self) -> Nanos {
        Nanos::new(MonotonicRaw::read().wrapping_sub(self.origin.raw_ns) as i64)
    }

    /// Switches the trace on or off; recorded data stays in the buffers.
    pub fn turn(&mut self, is_on: bool) -> Result<(), TracefsError> {
        if is_on {
            self.tracing.instance.start()?;
            self.softirqs.begin();
        } else {
            self.softirqs.end();
            self.tracing.instance.stop()?;
        }
        Ok(())
    }

    /// How the trace was changed since it was set up; `None` if its files and the kernel's counts show no change.
    pub fn disturbance(&self) -> Option<Disturbance> {
        let files = self.tracing.instance.changed();
        if files.is_empty() { self.lack.clone() } else { Some(Disturbance::Files(files)) }
    }

    /// Whether the trace ever contained everything that the kernel counted.
    pub const fn is_confirmed(&self) -> bool {
        self.is_confirmed
    }

    /// Descriptors that become readable when a buffer is half full; empty if this kernel cannot wait for that.
    pub fn filling(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.readers.iter().filter(|_| self.wakes).map(AsFd::as_fd)
    }

    /// Takes the contents of the buffers, CPU by CPU, in order of time. Events that arrive meanwhile wait for the next call.
    pub fn drain(&mut self, take: &mut dyn FnMut(usize, &[Event], &mut Names)) -> io::Result<Drained> {
        let mut drained = Drained::default();
        let Some(mut translator) = self.translator.take() else { return Ok(drained) };
        let counted = self.softirqs.counted();
        for index in 0..self.readers.len() {
            self.events.clear();
            if let Err(error) = self.read(index, &mut translator, &mut drained) {
                self.translator = Some(translator);
                return Err(error);
            }
            take(index, &self.events, &mut self.names);
        }
        self.translator = Some(translator);
        match self.softirqs.compare(counted) {
            Ok(is_confirmed) => self.is_confirmed |= is_confirmed,
            Err(lack) => self.lack = Some(lack),
        }
        Ok(drained)
    }

    fn read(&mut self, index: usize, translator: &mut Translator, drained: &mut Drained) -> io::Result<()> {
        let Self { readers, tracing, names, origin, softirqs, page, events, .. } = self;
        let decoder = tracing.instance.decoder();
        // The first page may be the rest of one that was half full last time; a second partial page is being written.
        let mut partial = 0;
        while partial < 2
            && let Some(length) = readers[index].read_page(page)?
        {
            let page = &page[..length];
            partial += u32::from(decoder.used(page) + LONGEST_RECORD < length);
            let decoded = decoder.page(page, &mut |raw| {
                let time = Nanos::new(raw.time.wrapping_sub(origin.raw_ns) as i64);
                match raw.what {
                    RawHappening::Lost { .. } => softirqs.lose(),
                    RawHappening::SoftirqEntry { .. } => softirqs.add(index),
                    _ => {}
                }
                drained.events += u64::from(!matches!(raw.what, RawHappening::Lost { .. }));
                events.push(translator.translate(&raw, time, names));
            });
            match decoded {
                Ok(summary) => drained.lost += summary.lost_events,
                Err(_) => {
                    drained.broken += 1;
                    softirqs.lose();
                }
            }
        }
        Ok(())
    }

    /// Whether so many names are stored that they should be forgotten.
    pub fn knows_many(&self) -> bool {
        self.names.labels.len() >= MOST_NAMES
    }

    /// Reads the names of the kernel's functions again, because modules may have been loaded, and forgets all others.
    pub fn read_symbols(&mut self, root: &Path) {
        // Free the old names first, to avoid having both in memory.
        (self.translator, self.symbols) = (None, None);
        self.symbols = read_symbols(root, &mut Vec::new());
        self.forget_names(root);
    }

    /// Forgets all names except those of the kernel's functions, which invalidates earlier labels.
    pub fn forget_names(&mut self, root: &Path) {
        self.names = Names::new(root);
        let (tracing, labels) = (&self.tracing, &mut self.names.labels);
        let decoder = tracing.instance.decoder();
        let symbols = self.symbols.clone();
        self.translator = Some(Translator::new(decoder, symbols, &tracing.strings, tracing.untraced_timer, labels));
        self.name_own();
    }

    fn name_own(&mut self) {
        if self.numbers_are_own {
            // The mapping of numbers is unknown, so no thread in /proc is taken for another.
            self.names.translate_own(BTreeMap::new());
        }
        self.own.iter().for_each(|pid| self.names.set_own(*pid));
    }
}
