//! Works out an observation: decodes its pages, merges the events of all CPUs by time, and feeds them to the books.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use becalm_attribute::books::{Books, Ledger, MissingSwitches, SwitchRepair, ThreadCounts, ThreadIdentity};
use becalm_bundle::{BundleError, ObservedSegment, ObservedWriter};
use becalm_linux::procfs::task::Schedstat;
use becalm_measure::{EventClock, Names, Translator};
use becalm_model::observed::{OwnedActivity, Stay, ThreadDetour};
use becalm_model::{Event, Labels, Pid, ThreadState};
use becalm_units::fault::{self, Context};
use becalm_units::{CpuId, Nanos, Ticks, TicksToNanos};

use crate::look::{SeenAccount, SeenThread};
use crate::recorder::{Observation, TraceBuffer};

/// A segment is written when it has this many rows.
const SEGMENT_ROWS: usize = 1 << 20;

/// The books of an observation, and what belongs to them.
pub struct WorkedOut {
    /// The books, closed.
    pub books: Books,
    /// The names in them.
    pub labels: Labels,
    /// Switches that the trace lacks.
    pub missing: MissingSwitches,
    /// The kernel's accounts and those of the books, of threads that slept at both looks.
    pub compared: Vec<ComparedAccount>,
    /// Pages that could not be decoded.
    pub broken_pages: u64,
    /// The axis of all times.
    pub axis: TicksToNanos,
    /// Start and end of the books.
    pub span: (Nanos, Nanos),
}

/// The growth of a thread's account.
#[derive(Clone, Copy, Debug)]
pub struct ComparedAccount {
    /// By the kernel.
    pub kernel: Schedstat,
    /// By the books.
    pub books: Schedstat,
}

/// Something that is no event of the trace, at its place among these.
enum Interjection<'a> {
    Seen(&'a SeenThread),
    Open,
    Account(&'a SeenAccount, bool),
    Close,
}

/// The events of one buffer.
struct Stream {
    buffer: TraceBuffer,
    next_page: usize,
    repair: SwitchRepair,
    events: VecDeque<Event>,
    is_over: bool,
}

/// Keeps the rows of the tables until a segment is full.
struct Tables<'a> {
    segment: ObservedSegment,
    writer: Option<&'a mut ObservedWriter>,
}

impl Ledger for Tables<'_> {
    fn stay(&mut self, stay: &Stay) {
        if self.writer.is_some() {
            self.segment.stays.push(*stay);
        }
    }

    fn detour(&mut self, detour: &ThreadDetour, rows: &[OwnedActivity]) {
        if self.writer.is_some() {
            let place = self.segment.detours.len();
            self.segment.detours.push(*detour);
            self.segment.activities.extend(rows.iter().map(|row| (place, *row)));
        }
    }
}

impl Tables<'_> {
    fn write(&mut self, labels: &Labels) -> Result<(), BundleError> {
        if let Some(writer) = &mut self.writer
            && !self.segment.is_empty()
        {
            writer.write_segment(&self.segment, labels)?;
            self.segment = ObservedSegment::default();
        }
        Ok(())
    }
}

/// Reads and decodes pages.
struct Source<'a> {
    observation: &'a Observation,
    translators: Vec<Translator>,
    clocks: Vec<EventClock>,
    names: Names,
    page: Vec<u8>,
    broken_pages: u64,
}

impl Source<'_> {
    /// Decodes pages of a stream until it has events, or is over.
    fn fill(&mut self, number: usize, stream: &mut Stream) -> fault::Result<()> {
        while stream.events.is_empty() && !stream.is_over {
            let is_page = self
                .observation
                .spool
                .read(number, stream.next_page, &mut self.page)
                .context("cannot read the raw trace again")?;
            let Stream { buffer, repair, events, .. } = stream;
            let mut pass = |event| events.push_back(event);
            if !is_page {
                stream.is_over = true;
                repair.finish(&mut pass);
                continue;
            }
            stream.next_page += 1;
            let which = usize::from(buffer.is_own);
            let Self { observation, translators, clocks, names, page, broken_pages } = self;
            let decoded = observation.traces[which].decoder.page(page, &mut |raw| {
                let event = translators[which].translate(&raw, clocks[which].instant(raw.time), names);
                if buffer.is_own { pass(event) } else { repair.take(event, &mut pass) }
            });
            *broken_pages += u64::from(decoded.is_err());
        }
        Ok(())
    }
}

/// Works out an observation, and writes its tables with `writer`.
pub fn work_out(observation: &Observation, writer: Option<&mut ObservedWriter>) -> fault::Result<WorkedOut> {
    let axis = TicksToNanos::new(observation.anchors.0.ticks, observation.rate);
    let instant = |ticks: u64| axis.instant(Ticks::new(ticks));
    let mut names = Names::for_file();
    let translator = |names: &mut Names, which: usize| {
        let parts = &observation.traces[which];
        Translator::new(&parts.decoder, parts.symbols.clone(), &parts.strings, parts.untraced_timer, &mut names.labels)
    };
    let clock = |which: usize| {
        let mut clock =
            EventClock::new(observation.traces[which].clock, observation.is_native, axis, observation.anchors.0);
        clock.advance(observation.anchors.1);
        clock
    };
    let translators = vec![translator(&mut names, 0), translator(&mut names, 1)];
    let throttled: Vec<String> = observation
        .throttled
        .iter()
        .filter(|group| group.grown.throttled > 0)
        .map(|group| group.group.clone())
        .collect();
    let choose = Box::new(observation.choice.clone().function());
    let mut books = Books::new(choose, &throttled, observation.traces[0].has_calls, &mut names.labels);
    let mut source =
        Source { observation, translators, clocks: vec![clock(0), clock(1)], names, page: Vec::new(), broken_pages: 0 };
    let span = (instant(observation.books.0), instant(observation.books.1));
    let mut interjections = interjections(observation, instant);
    let mut tables = Tables { segment: ObservedSegment::default(), writer };
    let mut compared = Comparison::default();

    let mut streams: Vec<Stream> = observation.buffers.iter().map(|buffer| Stream::new(*buffer)).collect();
    let mut heads = BinaryHeap::new();
    for (number, stream) in streams.iter_mut().enumerate() {
        source.fill(number, stream)?;
        heads.extend(stream.events.front().map(|event| Reverse((event.time, number))));
    }
    while let Some(Reverse((_, number))) = heads.pop() {
        // Events of one buffer often come in a row.
        let until = heads.peek().map_or((Nanos::MAX, usize::MAX), |Reverse(next)| *next);
        let stream = &mut streams[number];
        while let Some(event) = stream.events.front().copied().filter(|event| (event.time, number) <= until) {
            stream.events.pop_front();
            while interjections.front().is_some_and(|(at, _)| *at <= event.time) {
                let Some((at, what)) = interjections.pop_front() else { break };
                interject(
                    &what,
                    at,
                    &mut books,
                    &mut source.names.labels,
                    &mut tables,
                    &mut compared,
                    (observation, axis),
                );
            }
            let (cpu, labels) = (stream.buffer.cpu, &mut source.names.labels);
            if stream.buffer.is_own {
                books.take_own(cpu, &event, labels, &mut tables);
            } else {
                books.take(cpu, &event, labels, &mut tables);
            }
            if stream.events.is_empty() {
                source.fill(number, stream)?;
            }
        }
        heads.extend(stream.events.front().map(|event| Reverse((event.time, number))));
        if tables.segment.len() >= SEGMENT_ROWS {
            tables.write(&source.names.labels)?;
        }
    }
    for (at, what) in interjections {
        interject(&what, at, &mut books, &mut source.names.labels, &mut tables, &mut compared, (observation, axis));
    }
    tables.write(&source.names.labels)?;
    let mut missing = MissingSwitches::default();
    for stream in &streams {
        let of_cpu = stream.repair.tally();
        missing.repaired += of_cpu.repaired;
        missing.unknown += of_cpu.unknown;
        missing.unknown_time += of_cpu.unknown_time;
    }
    let Source { names, broken_pages, .. } = source;
    Ok(WorkedOut { books, labels: names.labels, missing, compared: compared.accounts, broken_pages, axis, span })
}

impl Stream {
    fn new(buffer: TraceBuffer) -> Self {
        let (repair, events) = (SwitchRepair::default(), VecDeque::new());
        Self { buffer, next_page: 0, repair, events, is_over: false }
    }
}

/// Looks, accounts, and the start and the end of the books, in order of time.
fn interjections(observation: &Observation, instant: impl Fn(u64) -> Nanos) -> VecDeque<(Nanos, Interjection<'_>)> {
    let mut all: Vec<(Nanos, Interjection<'_>)> =
        observation.seen.iter().map(|seen| (instant(seen.at), Interjection::Seen(seen))).collect();
    all.push((instant(observation.books.0), Interjection::Open));
    all.extend(observation.accounts.iter().map(|seen| (instant(seen.read.1), Interjection::Account(seen, false))));
    all.extend(observation.last_accounts.iter().map(|seen| (instant(seen.read.1), Interjection::Account(seen, true))));
    all.push((instant(observation.books.1), Interjection::Close));
    // Stable: the books open before the first account and close after the last one.
    all.sort_by_key(|(at, _)| *at);
    all.into()
}

/// The accounts at the first look, and those that were compared.
#[derive(Default)]
struct Comparison {
    first: Vec<(SeenAccount, ThreadCounts)>,
    accounts: Vec<ComparedAccount>,
}

fn interject(
    what: &Interjection<'_>,
    at: Nanos,
    books: &mut Books,
    labels: &mut Labels,
    tables: &mut Tables<'_>,
    compared: &mut Comparison,
    (observation, axis): (&Observation, TicksToNanos),
) {
    match what {
        Interjection::Seen(seen) => {
            let pid = Pid(seen.stat.pid);
            let identity = ThreadIdentity {
                process: Pid(seen.process),
                name: labels.intern(&seen.stat.comm),
                command: labels.intern(&seen.command),
                group: labels.intern(&seen.group),
                is_kernel: seen.stat.kthread,
                is_becalm: observation.own.contains(&seen.stat.pid) || observation.own.contains(&seen.process),
                ..ThreadIdentity::unknown(pid)
            };
            let state = ThreadState::from_letter(seen.stat.state).unwrap_or(ThreadState::SLEEPING);
            books.meet(pid, &identity, Some((state, CpuId::new(seen.stat.cpu))), at, labels);
        }
        Interjection::Open => books.open(at, labels),
        Interjection::Close => books.close(at, tables),
        Interjection::Account(seen, is_last) => {
            // A thread that did not sleep all the while may have changed its account.
            let began = axis.instant(Ticks::new(seen.read.0));
            let slept = |counts: &ThreadCounts| counts.asleep_since.is_some_and(|since| since <= began);
            let Some(counts) = books.counts(Pid(seen.tid), at).filter(slept) else { return };
            if !is_last {
                compared.first.push((**seen, counts));
            } else if let Some((before, first)) = compared.first.iter().find(|(_, first)| first.thread == counts.thread)
            {
                let (one, other) = (before.account, seen.account);
                compared.accounts.push(ComparedAccount {
                    kernel: Schedstat {
                        ran: other.ran - one.ran,
                        waited: other.waited - one.waited,
                        runs: other.runs.saturating_sub(one.runs),
                    },
                    books: Schedstat {
                        ran: counts.ran - first.ran,
                        waited: counts.queued - first.queued,
                        runs: counts.switches - first.switches,
                    },
                });
            }
        }
    }
}
