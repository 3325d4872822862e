//! Merges the events of several buffers by time and feeds them to the books: those of an observation, and those of a trace that another program
//! recorded.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use becalm_attribute::books::{Books, Ledger, MissingSwitches, SwitchRepair};
use becalm_attribute::causes::CauseFinder;
use becalm_bundle::{BundleError, ObservedSegment, ObservedWriter};
use becalm_model::cause::Cause;
use becalm_model::observed::{OwnedActivity, Stay, ThreadDetour};
use becalm_model::{Event, Happening, Labels, Tasks};
use becalm_units::fault;
use becalm_units::{CpuId, Nanos};

/// A segment is written when it has this many rows.
const SEGMENT_ROWS: usize = 1 << 20;

/// A buffer of the kernel's trace.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TraceBuffer {
    /// The CPU.
    pub cpu: CpuId,
    /// The events in it.
    pub holds: BufferEvents,
}

/// The events of a trace.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BufferEvents {
    /// Those of all threads.
    All,
    /// Those of the chosen threads' own context.
    Own,
    /// Requests of interrupts, softirqs and work items.
    Requests,
}

impl BufferEvents {
    /// The traces of an observation, in order.
    pub const ALL: [Self; 3] = [Self::All, Self::Own, Self::Requests];
}

/// The decoded events of several buffers.
pub trait EventSource {
    /// Passes the next events of a buffer, in order of time: at least one, or none that count; `false` if there are no more. Fails if they cannot be
    /// read.
    fn more(&mut self, buffer: usize, pass: &mut impl FnMut(Event)) -> fault::Result<bool>;

    /// The names in the events passed so far.
    fn labels(&mut self) -> &mut Labels;

    /// The threads in them, and all other names.
    fn names(&mut self) -> (&Tasks, &mut Labels);
}

/// Something that is no event of the trace, at its place among these.
#[derive(Clone, Debug)]
pub enum Interjection<T> {
    /// The books start.
    Open,
    /// The books end.
    Close,
    /// A fact from another source.
    Fact(T),
}

/// Books, and what belongs to them.
pub struct WorkedOut {
    /// The books, closed.
    pub books: Books,
    /// The names in them.
    pub labels: Labels,
    /// Switches that the trace lacks.
    pub missing: MissingSwitches,
    /// Start and end of the books.
    pub span: (Nanos, Nanos),
}

/// How far a portion of the events is fed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Until {
    /// The instant up to which all events have arrived.
    pub arrived: Nanos,
    /// Events from before this instant no longer wait for the instant of a missing switch, which then stays unknown.
    pub at_least: Nanos,
}

/// The events of one buffer.
struct Stream {
    buffer: TraceBuffer,
    repair: SwitchRepair,
    events: VecDeque<Event>,
}

impl Stream {
    fn new(buffer: TraceBuffer) -> Self {
        Self { buffer, repair: SwitchRepair::default(), events: VecDeque::new() }
    }

    /// Takes events until there are some, or the buffer has no more. Returns the instant up to which all that came is known, if it waits for later
    /// ones.
    fn fill(&mut self, number: usize, source: &mut impl EventSource, until: Option<Until>) -> fault::Result<Nanos> {
        while self.events.is_empty() {
            if self.more(number, source)? {
                continue;
            }
            let Self { repair, events, .. } = self;
            match (until, repair.held_since()) {
                (Some(until), Some(since)) if since >= until.at_least => return Ok(since),
                (_, Some(_)) => repair.finish(&mut |event| events.push_back(event)),
                (_, None) => return Ok(Nanos::MAX),
            }
        }
        Ok(Nanos::MAX)
    }

    /// Takes the next events of the buffer; returns whether there may be more.
    fn more(&mut self, number: usize, source: &mut impl EventSource) -> fault::Result<bool> {
        let Self { buffer, repair, events } = self;
        let mut pass = |event| events.push_back(event);
        let is_repaired = buffer.holds == BufferEvents::All;
        source.more(number, &mut |event| if is_repaired { repair.take(event, &mut pass) } else { pass(event) })
    }
}

/// The causes of activities, and how many events of requests they come from.
#[derive(Debug)]
pub struct FoundCauses {
    finder: CauseFinder,
    rows: Vec<Cause>,
    /// Causes that were stored.
    pub stored: u64,
    /// Requests.
    pub taken: u64,
    /// Requests that were lost, as far as the kernel reports their number.
    pub lost: u64,
}

/// Keeps the rows of the tables until a segment is full.
struct Tables<'a> {
    causes: Option<FoundCauses>,
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
    fn len(&self) -> usize {
        self.segment.len() + self.causes.as_ref().map_or(0, |causes| causes.rows.len())
    }

    /// Takes an event of a CPU for the causes of activities.
    fn take_for_causes(&mut self, buffer: TraceBuffer, event: &Event, source: &mut impl EventSource) {
        let Some(FoundCauses { finder, rows, taken, lost, .. }) = &mut self.causes else { return };
        match (buffer.holds, event.what) {
            (BufferEvents::Own, _) => return,
            (BufferEvents::All, _) => {}
            // What runs on the CPU is still in the other trace.
            (BufferEvents::Requests, Happening::Lost { count }) => {
                *lost += count.unwrap_or(0);
                return;
            }
            (BufferEvents::Requests, _) => *taken += 1,
        }
        let (tasks, labels) = source.names();
        finder.take(buffer.cpu, event, tasks, labels, &mut |cause| rows.push(cause));
    }

    fn write(&mut self, labels: &Labels) -> Result<(), BundleError> {
        if let Some(writer) = &mut self.writer
            && !self.segment.is_empty()
        {
            writer.write_segment(&self.segment, labels)?;
            self.segment = ObservedSegment::default();
        }
        if let (Some(writer), Some(causes)) = (&mut self.writer, &mut self.causes)
            && !causes.rows.is_empty()
        {
            writer.write_causes(&causes.rows, labels)?;
            causes.stored += causes.rows.len() as u64;
            causes.rows.clear();
        }
        Ok(())
    }
}

/// Merges the events of several buffers by time, at once or in portions, and feeds them to the books with interjections, each before the events of its
/// instant.
pub struct Merge<'a, T> {
    streams: Vec<Stream>,
    interjections: VecDeque<(Nanos, Interjection<T>)>,
    tables: Tables<'a>,
}

impl<'a, T> Merge<'a, T> {
    /// For these buffers, with interjections in order of time. Writes the tables with `writer`.
    pub fn new(
        buffers: &[TraceBuffer],
        interjections: VecDeque<(Nanos, Interjection<T>)>,
        writer: Option<&'a mut ObservedWriter>,
    ) -> Self {
        let streams = buffers.iter().map(|buffer| Stream::new(*buffer)).collect();
        Self { streams, interjections, tables: Tables { causes: None, segment: ObservedSegment::default(), writer } }
    }

    /// Also finds the causes of activities.
    #[must_use]
    pub fn finding_causes(mut self, finder: CauseFinder) -> Self {
        self.tables.causes = Some(FoundCauses { finder, rows: Vec::new(), stored: 0, taken: 0, lost: 0 });
        self
    }

    /// The causes of activities, if they were to be found.
    pub fn into_causes(self) -> Option<FoundCauses> {
        self.tables.causes
    }

    /// Adds an interjection that is no earlier than those before.
    pub fn interject(&mut self, at: Nanos, what: Interjection<T>) {
        self.interjections.push_back((at, what));
    }

    /// Feeds what the source has now: up to `until`, if more is to come later; the rest is kept for then. All events up to then must have arrived. Events that wait for the
    /// instant of a missing switch stop it earlier, but not before `at_least`. Returns the instant up to which all is fed.
    pub fn feed(
        &mut self,
        source: &mut impl EventSource,
        until: Option<Until>,
        mut enter: impl FnMut(T, Nanos, &mut Books, &mut Labels),
        books: &mut Books,
    ) -> fault::Result<Nanos> {
        let Self { streams, interjections, tables } = self;
        let mut limit = until.map_or(Nanos::MAX, |until| until.arrived);
        let mut interject = |(at, what), books: &mut Books, labels: &mut Labels, tables: &mut Tables<'_>| match what {
            Interjection::Open => books.open(at, labels),
            Interjection::Close => books.close(at, tables),
            Interjection::Fact(fact) => enter(fact, at, books, labels),
        };
        let mut heads = BinaryHeap::new();
        for (number, stream) in streams.iter_mut().enumerate() {
            limit = limit.min(stream.fill(number, source, until)?);
            heads.extend(stream.events.front().map(|event| Reverse((event.time, number))));
        }
        while let Some(Reverse((time, number))) = heads.pop()
            && time <= limit
        {
            // Events of one buffer often come in a row.
            let next = heads.peek().map_or((Nanos::MAX, usize::MAX), |Reverse(next)| *next);
            let stream = &mut streams[number];
            let is_next = |event: &Event, limit| (event.time, number) <= next && event.time <= limit;
            while let Some(event) = stream.events.front().copied().filter(|event| is_next(event, limit)) {
                stream.events.pop_front();
                while let Some(due) = interjections.pop_front_if(|(at, _)| *at <= event.time) {
                    interject(due, books, source.labels(), tables);
                }
                let buffer = stream.buffer;
                tables.take_for_causes(buffer, &event, source);
                match buffer.holds {
                    BufferEvents::All => books.take(buffer.cpu, &event, source.labels(), tables),
                    BufferEvents::Own => books.take_own(buffer.cpu, &event, source.labels(), tables),
                    BufferEvents::Requests => {}
                }
                if stream.events.is_empty() {
                    limit = limit.min(stream.fill(number, source, until)?);
                }
            }
            heads.extend(stream.events.front().map(|event| Reverse((event.time, number))));
            if tables.len() >= SEGMENT_ROWS {
                tables.write(source.labels())?;
            }
        }
        while let Some(due) = interjections.pop_front_if(|(at, _)| *at <= limit) {
            interject(due, books, source.labels(), tables);
        }
        tables.write(source.labels())?;
        if until.is_some() {
            for (number, stream) in streams.iter_mut().enumerate() {
                while stream.more(number, source)? {}
            }
        }
        Ok(limit)
    }

    /// CPUs whose next event tells that others before it were lost.
    pub fn in_doubt(&self) -> Vec<CpuId> {
        let is_gap = |event: &Event| matches!(event.what, Happening::Lost { .. });
        let in_doubt =
            |stream: &&Stream| stream.buffer.holds == BufferEvents::All && stream.events.front().is_some_and(is_gap);
        self.streams.iter().filter(in_doubt).map(|stream| stream.buffer.cpu).collect()
    }

    /// The switches that the trace lacks.
    pub fn missing(&self) -> MissingSwitches {
        let mut missing = MissingSwitches::default();
        for stream in &self.streams {
            let of_cpu = stream.repair.tally();
            missing.repaired += of_cpu.repaired;
            missing.unknown += of_cpu.unknown;
            // A damaged file may have any time on each CPU.
            missing.unknown_time = missing.unknown_time.saturating_add(of_cpu.unknown_time);
        }
        missing
    }
}

/// Feeds all events of these buffers to the books, with interjections in order of time. `enter` gives the books a fact. Writes the tables with `writer`.
/// Returns the switches that the trace lacks.
pub fn feed<T>(
    source: &mut impl EventSource,
    buffers: &[TraceBuffer],
    interjections: VecDeque<(Nanos, Interjection<T>)>,
    enter: impl FnMut(T, Nanos, &mut Books, &mut Labels),
    books: &mut Books,
    writer: Option<&mut ObservedWriter>,
) -> fault::Result<MissingSwitches> {
    let mut merge = Merge::new(buffers, interjections, writer);
    merge.feed(source, None, enter, books)?;
    Ok(merge.missing())
}
