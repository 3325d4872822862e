//! Merges the events of several buffers by time and feeds them to the books: those of an observation, and those of a trace that another program
//! recorded.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use becalm_attribute::books::{Books, Ledger, MissingSwitches, SwitchRepair};
use becalm_bundle::{BundleError, ObservedSegment, ObservedWriter};
use becalm_model::observed::{OwnedActivity, Stay, ThreadDetour};
use becalm_model::{Event, Labels};
use becalm_units::fault;
use becalm_units::{CpuId, Nanos};

/// A segment is written when it has this many rows.
const SEGMENT_ROWS: usize = 1 << 20;

/// A buffer of the kernel's trace.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TraceBuffer {
    /// The CPU.
    pub cpu: CpuId,
    /// Whether it has the events of the chosen threads' own context, instead of those of all threads.
    pub is_own: bool,
}

/// The decoded events of several buffers.
pub trait EventSource {
    /// Passes the next events of a buffer, in order of time: at least one, or none that count; `false` if there are no more. Fails if they cannot be
    /// read.
    fn more(&mut self, buffer: usize, pass: &mut impl FnMut(Event)) -> fault::Result<bool>;

    /// The names in the events passed so far.
    fn labels(&mut self) -> &mut Labels;
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

/// The events of one buffer.
struct Stream {
    buffer: TraceBuffer,
    repair: SwitchRepair,
    events: VecDeque<Event>,
    is_over: bool,
}

impl Stream {
    fn new(buffer: TraceBuffer) -> Self {
        Self { buffer, repair: SwitchRepair::default(), events: VecDeque::new(), is_over: false }
    }

    /// Takes events until there are some, or the buffer has no more.
    fn fill(&mut self, number: usize, source: &mut impl EventSource) -> fault::Result<()> {
        let Self { buffer, repair, events, is_over } = self;
        while events.is_empty() && !*is_over {
            let mut pass = |event| events.push_back(event);
            *is_over = !source.more(number, &mut |event| {
                if buffer.is_own { pass(event) } else { repair.take(event, &mut pass) }
            })?;
            if *is_over {
                repair.finish(&mut pass);
            }
        }
        Ok(())
    }
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

/// Feeds the events of these buffers to the books, with interjections in order of time, each before the events of its instant. `enter` gives the books
/// a fact. Writes the tables with `writer`. Returns the switches that the trace lacks.
pub fn feed<T>(
    source: &mut impl EventSource,
    buffers: &[TraceBuffer],
    mut interjections: VecDeque<(Nanos, Interjection<T>)>,
    mut enter: impl FnMut(T, Nanos, &mut Books, &mut Labels),
    books: &mut Books,
    writer: Option<&mut ObservedWriter>,
) -> fault::Result<MissingSwitches> {
    let mut tables = Tables { segment: ObservedSegment::default(), writer };
    let mut interject = |(at, what), books: &mut Books, labels: &mut Labels, tables: &mut Tables<'_>| match what {
        Interjection::Open => books.open(at, labels),
        Interjection::Close => books.close(at, tables),
        Interjection::Fact(fact) => enter(fact, at, books, labels),
    };
    let mut streams: Vec<Stream> = buffers.iter().map(|buffer| Stream::new(*buffer)).collect();
    let mut heads = BinaryHeap::new();
    for (number, stream) in streams.iter_mut().enumerate() {
        stream.fill(number, source)?;
        heads.extend(stream.events.front().map(|event| Reverse((event.time, number))));
    }
    while let Some(Reverse((_, number))) = heads.pop() {
        // Events of one buffer often come in a row.
        let until = heads.peek().map_or((Nanos::MAX, usize::MAX), |Reverse(next)| *next);
        let stream = &mut streams[number];
        while let Some(event) = stream.events.front().copied().filter(|event| (event.time, number) <= until) {
            stream.events.pop_front();
            while let Some(due) = interjections.pop_front_if(|(at, _)| *at <= event.time) {
                interject(due, books, source.labels(), &mut tables);
            }
            let cpu = stream.buffer.cpu;
            if stream.buffer.is_own {
                books.take_own(cpu, &event, source.labels(), &mut tables);
            } else {
                books.take(cpu, &event, source.labels(), &mut tables);
            }
            if stream.events.is_empty() {
                stream.fill(number, source)?;
            }
        }
        heads.extend(stream.events.front().map(|event| Reverse((event.time, number))));
        if tables.segment.len() >= SEGMENT_ROWS {
            tables.write(source.labels())?;
        }
    }
    for late in interjections {
        interject(late, books, source.labels(), &mut tables);
    }
    tables.write(source.labels())?;
    let mut missing = MissingSwitches::default();
    for stream in &streams {
        let of_cpu = stream.repair.tally();
        missing.repaired += of_cpu.repaired;
        missing.unknown += of_cpu.unknown;
        // A damaged file may have any time on each CPU.
        missing.unknown_time = missing.unknown_time.saturating_add(of_cpu.unknown_time);
    }
    Ok(missing)
}
