//! The collector: empties the loops' rings and the kernel's trace buffers while the loops run, and turns the data into batches on the run's axis.
//!
//! Taking and decoding are separate, so if no CPU is free of loops, decoding can wait until a segment ends. It is then done in small portions, with
//! pauses, while taking continues.

use std::io;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::{Duration, Instant};

use becalm_linux::clock::Anchor;
use becalm_linux::ftrace::{DecodeError, Decoder, PageReader, RawHappening};
use becalm_model::unseen::Watch;
use becalm_model::{Event, Step};
use becalm_units::{CpuId, CpuList, Nanos, Ticks, TicksToNanos};

use super::pauses::{Haste, Pauses};
use super::portions::Portions;
use crate::loops::StepRing;
use crate::machine::KernelCounters;
use crate::shelf::Shelf;
use crate::sink::{Batch, Sink, Unstored};
use crate::spool::Spool;
use crate::trace::{EventClock, Names, Occurrences, Translator, Window, Windows};
use crate::work::AccumulatedMean;

/// No requested record is larger; a page with more room at its end is not full.
const LONGEST_RECORD: usize = 256;
/// The number of steps taken from a ring, or of pages from a trace buffer, between two pauses.
const STEPS_AT_ONCE: u64 = 1024;
const PAGES_AT_ONCE: usize = 2;
/// The capacity of a part of the waiting lists, in steps and in bytes of raw trace.
const STEPS_ROOM: usize = 1 << 14;
const PAGES_ROOM: usize = 1 << 18;
/// During a hand-over: how often waiting data is taken, and the number of waiting bytes that shortens pauses or ends them.
const WHILE_HANDED_OVER: Duration = Duration::from_millis(100);
const SHORT_PAUSES: usize = 4 << 20;
const NO_PAUSES: usize = 64 << 20;

/// Data taken from one CPU and not yet handed over.
#[derive(Debug)]
pub(super) struct Backlog {
    pub steps: Shelf<Step>,
    /// The iterations done in each step, if the loop does work.
    pub work: Shelf<u64>,
    /// Raw pages without their unused ends, concatenated.
    pages: Shelf<u8>,
    /// The length of each page.
    lengths: Shelf<u32>,
    /// How many of the pages were taken before the trace was last verified to be unchanged.
    known_pages: usize,
    /// Counts of the CPU from outside of its loop.
    watches: Vec<Watch>,
}

impl Backlog {
    /// Creates empty lists whose parts have room for this many steps.
    pub fn with_room(steps: usize) -> Self {
        Self {
            steps: Shelf::new(steps),
            work: Shelf::new(steps),
            pages: Shelf::new(PAGES_ROOM),
            lengths: Shelf::new(STEPS_ROOM),
            known_pages: 0,
            watches: Vec::new(),
        }
    }

    fn clear(&mut self) {
        self.steps.clear();
        self.work.clear();
        self.pages.clear();
        self.lengths.clear();
        self.known_pages = 0;
        self.watches.clear();
    }

    /// The raw pages, in order.
    fn raw_pages(&self) -> impl Iterator<Item = &[u8]> {
        let mut parts = self.pages.parts();
        let mut part: &[u8] = &[];
        self.lengths.parts().flatten().map(move |length| {
            // Each page is within one part.
            if part.is_empty() {
                part = parts.next().unwrap_or(&[]);
            }
            let (page, rest) = part.split_at((*length as usize).min(part.len()));
            part = rest;
            page
        })
    }

    fn bytes(&self) -> usize {
        self.pages.len() + self.steps.len() * size_of::<Step>()
    }
}

/// Data taken from one measured CPU until it is handed over.
#[derive(Debug)]
struct CpuFeed<R> {
    cpu: CpuId,
    ring: Arc<R>,
    reader: Option<PageReader>,
    waiting: Backlog,
    /// Detects when the steps are enough.
    repetitions: Option<AccumulatedMean>,
    enough: bool,
    complete_until: Nanos,
    /// The `complete_until` of the last hand-over.
    told: Nanos,
    /// The number and sum of unstored steps at the last query.
    unstored: Unstored,
    /// The position of the only other hardware thread of its core, if it is measured.
    sibling: Option<usize>,
    /// Steps taken from the ring.
    steps: u64,
}

/// The CPU of a page that could not be decoded, and the error.
type Broken = Option<(CpuId, DecodeError)>;

/// The collector's counts on one CPU.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct FeedCounts {
    /// The number of kernel events that were decoded.
    pub events: u64,
    /// Lost kernel events, as far as the kernel reports their number.
    pub lost_events: u64,
    /// The places in the trace where events were lost.
    pub gaps: u64,
    /// Records that are not requested events.
    pub ignored: u64,
    /// Pages that could not be decoded.
    pub broken_pages: u64,
    /// Steps taken from the ring.
    pub steps: u64,
}

impl<R: StepRing> CpuFeed<R> {
    /// The number and sum of steps that the loop counted instead of storing since the last call.
    fn take_unstored(&mut self, axis: TicksToNanos) -> Unstored {
        let classes = self.ring.readings().unstored().length_classes();
        let total = axis.duration(Ticks::new(classes.iter().map(|class| class.total.get()).sum()));
        let so_far = Unstored { count: classes.iter().map(|class| class.steps).sum(), total };
        let earlier = std::mem::replace(&mut self.unstored, so_far);
        Unstored { count: so_far.count - earlier.count, total: so_far.total - earlier.total }
    }

    /// Takes the steps that wait now. Later ones wait for the next call, so a storm of steps does not keep this one running.
    fn take_steps(&mut self, axis: TicksToNanos, pauses: &mut Pauses<'_>) -> u64 {
        let steps = self.ring.readings().waiting();
        let mut left = steps;
        while left > 0 {
            let most = left.min(STEPS_AT_ONCE);
            let Self { ring, waiting, enough, repetitions, .. } = self;
            ring.take_some(most, |before, after, work| {
                waiting.steps.push(Step { start: axis.instant(before), end: axis.instant(after) });
                if let Some(work) = work {
                    waiting.work.push(work);
                }
                if let Some(repetitions) = repetitions {
                    *enough |= repetitions.add((after - before).get() as f64);
                }
            });
            left -= most;
            // A short pause, because the ring fills up meanwhile.
            pauses.rest(Haste::Some);
        }
        self.steps += steps;
        steps
    }

    /// Takes the pages that wait now, and passes each without its unused end.
    fn take_pages(
        &mut self,
        decoder: &Decoder,
        page: &mut [u8],
        everything: bool,
        pauses: &mut Pauses<'_>,
        pass: &mut impl FnMut(&[u8]) -> io::Result<()>,
    ) -> io::Result<()> {
        let Self { reader: Some(reader), waiting, .. } = self else { return Ok(()) };
        // The first page may be the rest of one that was half full at the last call. A second partial page is the one being written: its later events
        // are after `progress`, and chasing them would not end on a CPU where reading itself causes events.
        let mut partial = 0;
        let mut taken = 0;
        while (everything || partial < 2)
            && let Some(length) = reader.read_page(page)?
        {
            let page = &page[..length];
            let used = decoder.used(page);
            partial += u32::from(used + LONGEST_RECORD < length);
            pass(&page[..used])?;
            waiting.pages.extend_together(&page[..used]);
            waiting.lengths.push(used as u32);
            taken += 1;
            if taken % PAGES_AT_ONCE == 0 {
                pauses.rest(Haste::Some);
            }
        }
        Ok(())
    }
}

/// The part of the collector that keeps taking data during a hand-over.
#[derive(Debug)]
struct Intake<R> {
    feeds: Vec<CpuFeed<R>>,
    axis: TicksToNanos,
    /// Finds the used size of a page; `None` if the kernel is not traced.
    decoder: Option<Decoder>,
    page: Vec<u8>,
    /// Keeps all pages, for the causes of activities.
    kept: Option<Spool>,
    /// The time of the last take.
    taken: Instant,
    /// Results of takes within a hand-over, which the next regular take reports.
    unreported: Unreported,
}

/// Results of takes within a hand-over.
#[derive(Debug, Default)]
struct Unreported {
    error: Option<io::Error>,
    /// The number of steps taken.
    steps: u64,
}

impl<R: StepRing> Intake<R> {
    fn take(&mut self, everything: bool, pauses: &mut Pauses<'_>) -> io::Result<u64> {
        let mut taken = 0;
        let axis = self.axis;
        for (index, feed) in self.feeds.iter_mut().enumerate() {
            // The order matters: the ring is complete up to `progress`, and all kernel events before `progress` are in the trace buffer, because the
            // loop wrote `progress` after them.
            let complete_until = feed.complete_until.max(axis.instant(feed.ring.readings().progress()));
            taken += feed.take_steps(axis, pauses);
            if let Some(decoder) = &self.decoder {
                let kept = &mut self.kept;
                let mut keep = |page: &[u8]| kept.as_mut().map_or(Ok(()), |kept| kept.push(index, page));
                feed.take_pages(decoder, &mut self.page, everything, pauses, &mut keep)?;
            }
            feed.complete_until = complete_until;
        }
        self.taken = Instant::now();
        Ok(taken)
    }

    /// Swaps waiting data with the empty lists, and returns per CPU the fields that its batches share.
    fn set_apart(&mut self, handed: &mut [Backlog], all: bool) -> Vec<Batch<'static>> {
        let axis = self.axis;
        let whole = |(index, (feed, handed)): (usize, (&mut CpuFeed<R>, &mut Backlog))| {
            std::mem::swap(&mut feed.waiting, handed);
            let began = feed.ring.readings().began().map(|reading| axis.instant(reading));
            let complete_until = if all { Nanos::MAX } else { feed.complete_until };
            let unstored = feed.take_unstored(axis);
            Batch { index, began, complete_until, unstored, ..Batch::default() }
        };
        self.feeds.iter_mut().zip(handed).enumerate().map(whole).collect()
    }

    fn backlog(&self) -> usize {
        self.feeds.iter().map(|feed| feed.waiting.bytes()).sum()
    }

    /// A pause within a hand-over: takes waiting data if due, and leaves the CPU to the loop.
    fn pause(&mut self, pauses: &mut Pauses<'_>) {
        if self.taken.elapsed() >= WHILE_HANDED_OVER {
            match self.take(false, pauses) {
                Ok(taken) => self.unreported.steps += taken,
                // No retry; the next regular take reports the error.
                Err(error) => (self.unreported.error, self.taken) = (Some(error), Instant::now()),
            }
        }
        pauses.rest(match self.backlog() {
            ..SHORT_PAUSES => Haste::None,
            SHORT_PAUSES..NO_PAUSES => Haste::Some,
            NO_PAUSES.. => Haste::All,
        });
    }
}

/// Collects from all CPUs, in one thread.
#[derive(Debug)]
pub struct Collector<R> {
    intake: Intake<R>,
    trace: Option<TraceDecoding>,
    /// Data being handed over, per CPU; empty between hand-overs.
    handed: Vec<Backlog>,
    /// The decoded events of one page.
    events: Vec<Event>,
    /// Counts per CPU.
    counted: Vec<CpuTrace>,
    first_broken: Broken,
    /// The windows between reads of the kernel's own counters; `None` before the first read.
    windows: Windows,
    /// When tracing ended, if it has.
    traced_until: Option<Nanos>,
}

#[derive(Debug, Default)]
struct CpuTrace {
    counts: FeedCounts,
    /// Counts to compare with the kernel's own counters.
    occurrences: Occurrences,
}

/// Decoding of the trace's pages.
#[derive(Debug)]
struct TraceDecoding {
    decoder: Decoder,
    clock: EventClock,
    translator: Translator,
}

impl TraceDecoding {
    /// Decodes a page. Events outside of the span are only counted for the comparison with the kernel's own counters.
    fn decode(
        &mut self,
        page: &[u8],
        span: &RangeInclusive<Nanos>,
        windows: &Windows,
        counted: &mut CpuTrace,
        names: &mut Names,
        events: &mut Vec<Event>,
    ) -> Result<(), DecodeError> {
        let Self { decoder, clock, translator } = self;
        let CpuTrace { counts, occurrences } = counted;
        let decoded = decoder.page(page, &mut |raw| {
            let time = clock.instant(raw.time);
            occurrences.add(&raw.what, time, windows);
            if span.contains(&time) {
                match raw.what {
                    RawHappening::Lost { .. } => counts.gaps += 1,
                    _ => counts.events += 1,
                }
                events.push(translator.translate(&raw, time, names));
            }
        });
        match decoded {
            Ok(page) => {
                counts.ignored += page.ignored;
                counts.lost_events += page.lost_events;
                Ok(())
            }
            Err(error) => {
                counts.broken_pages += 1;
                Err(error)
            }
        }
    }
}

/// The trace, with what is needed to interpret it.
#[derive(Debug)]
pub struct TraceSide {
    /// Decodes the pages of the trace.
    pub decoder: Decoder,
    /// Turns the events' time stamps into times on the run's axis.
    pub clock: EventClock,
    /// Names the events of the trace.
    pub translator: Translator,
    /// One reader per CPU, in the order of the loops.
    pub readers: Vec<PageReader>,
}

/// Parameters of a hand-over.
#[derive(Clone, Copy, Debug)]
pub struct HandOver {
    /// An anchor taken now, if one is needed.
    pub anchor: Option<Anchor>,
    /// Whether the loops have ended, so no further steps will come.
    pub all: bool,
}

impl<R: StepRing> Collector<R> {
    /// Creates a collector of these loops, in the order of their numbers in batches.
    pub fn new(loops: Vec<(CpuId, Arc<R>)>, axis: TicksToNanos, trace: Option<TraceSide>) -> Self {
        let (trace, readers) = match trace {
            Some(TraceSide { decoder, clock, translator, readers }) => {
                (Some(TraceDecoding { decoder, clock, translator }), readers)
            }
            None => (None, Vec::new()),
        };
        let page = vec![0; readers.iter().map(PageReader::page_size).max().unwrap_or(0)];
        let mut readers = readers.into_iter();
        let feed = |(cpu, ring)| CpuFeed {
            cpu,
            ring,
            reader: readers.next(),
            waiting: Backlog::with_room(STEPS_ROOM),
            repetitions: None,
            enough: false,
            complete_until: Nanos::ZERO,
            told: Nanos::ZERO,
            unstored: Unstored::default(),
            sibling: None,
            steps: 0,
        };
        let feeds: Vec<_> = loops.into_iter().map(feed).collect();
        let counted = feeds.iter().map(|_| CpuTrace::default()).collect();
        let decoder = trace.as_ref().map(|trace| trace.decoder.clone());
        let handed = feeds.iter().map(|_| Backlog::with_room(STEPS_ROOM)).collect();
        let intake =
            Intake { feeds, axis, decoder, page, kept: None, taken: Instant::now(), unreported: Unreported::default() };
        Self {
            intake,
            trace,
            handed,
            events: Vec::new(),
            counted,
            first_broken: None,
            windows: Windows::default(),
            traced_until: None,
        }
    }

    /// Keeps all pages of the trace from now on, in a spool with a buffer per loop.
    pub fn keep_pages(&mut self, spool: Spool) {
        self.intake.kept = Some(spool);
    }

    /// The pages that were kept; `None` if none were.
    pub const fn take_kept(&mut self) -> Option<Spool> {
        self.intake.kept.take()
    }

    /// Allocates this much memory for steps before the loops start, because allocating it later would take time from them.
    pub fn prepare(&mut self, bytes: usize) {
        let steps = bytes / size_of::<Step>() / self.intake.feeds.len().max(1);
        let none = Step { start: Nanos::ZERO, end: Nanos::ZERO };
        self.intake.feeds.iter_mut().for_each(|feed| feed.waiting.steps.prepare(steps, none));
    }

    /// Watches from now on whether the steps of each loop have been repeated enough, for this maximum allowable variation.
    pub fn watch_repetitions(&mut self, maiv: f64) {
        for feed in &mut self.intake.feeds {
            feed.repetitions = Some(AccumulatedMean::new(maiv));
        }
    }

    /// Whether every CPU's steps were repeated enough at some point; `false` if they are not watched.
    pub fn repeated_enough(&self) -> bool {
        self.intake.feeds.iter().all(|feed| feed.enough)
    }

    /// Stores which hardware threads share a core. With more than two per core, none explains another's time.
    pub fn pair(&mut self, core: impl Fn(CpuId) -> CpuList) {
        let cpus: Vec<CpuId> = self.intake.feeds.iter().map(|feed| feed.cpu).collect();
        for feed in &mut self.intake.feeds {
            let others = core(feed.cpu).without(&[feed.cpu].into_iter().collect());
            let other = others.iter().next().filter(|_| others.len() == 1);
            feed.sibling = other.and_then(|other| cpus.iter().position(|cpu| *cpu == other));
        }
    }

    /// Adds counts from outside of each CPU, in the order of the loops; `None` if nothing was read.
    pub fn watch(&mut self, watches: Option<Vec<Watch>>) {
        for (feed, watch) in self.intake.feeds.iter_mut().zip(watches.into_iter().flatten()) {
            feed.waiting.watches.push(watch);
        }
    }

    /// Counts events between these reads of the kernel's own counters from now on. Once the last read is known, this is called again, before any
    /// later event is decoded.
    pub fn count_between(&mut self, first: &KernelCounters, last: Option<&KernelCounters>) {
        let [interrupts, softirqs] = first.when();
        let [last_interrupts, last_softirqs] = last.map_or([None, None], KernelCounters::when);
        let window = |first: Option<_>, last| first.map(|first| Window { first, last });
        self.windows =
            Windows { interrupts: window(interrupts, last_interrupts), softirqs: window(softirqs, last_softirqs) };
    }

    /// Sets when tracing ended, if another program changed the trace. Pages taken since the previous call may then contain anything, and no more are
    /// taken. Otherwise, those pages are valid.
    pub fn trace_goes_on(&mut self, ended: Option<Nanos>) {
        self.traced_until = ended;
        for feed in &mut self.intake.feeds {
            match ended {
                Some(_) => feed.reader = None,
                None => feed.waiting.known_pages = feed.waiting.lengths.len(),
            }
        }
        if ended.is_some() {
            self.intake.unreported.error = None;
        }
    }

    /// Takes waiting data from rings and trace buffers, with pauses if there is much. Returns the number of steps taken since the last call.
    /// `everything` continues until the trace is empty, which only happens after recording has stopped. Fails if the kernel's trace cannot be read.
    pub fn take(&mut self, everything: bool, pauses: &mut Pauses<'_>) -> io::Result<u64> {
        let Unreported { error, steps } = std::mem::take(&mut self.intake.unreported);
        match error {
            Some(error) => Err(error),
            None => self.intake.take(everything, pauses).map(|taken| steps + taken),
        }
    }

    /// The bytes of raw trace and steps that wait for a hand-over.
    pub fn backlog(&self) -> usize {
        self.intake.backlog()
    }

    /// Whether every hand-over needs an anchor between the trace's clock and the loops' counter.
    pub fn needs_anchors(&self) -> bool {
        self.trace.as_ref().is_some_and(|trace| trace.clock.needs_anchors())
    }

    /// Decodes the data taken so far and gives it to the sink, CPU by CPU in small portions, with pauses in between. Data that arrives meanwhile is
    /// taken and waits for the next hand-over.
    pub fn hand_over<S: Sink>(
        &mut self,
        sink: &mut S,
        names: &mut Names,
        HandOver { anchor, all }: HandOver,
        pauses: &mut Pauses<'_>,
    ) -> Result<(), S::Error> {
        if let (Some(trace), Some(anchor)) = (&mut self.trace, anchor) {
            trace.clock.advance(anchor);
        }
        let Self { intake, trace, handed, events, counted, first_broken, windows, traced_until } = self;
        let wholes = intake.set_apart(handed, all);
        // When the loop ended, if it has; it may end long before the others.
        let end = |feed: &CpuFeed<R>| {
            let readings = feed.ring.readings();
            if all || readings.has_ended() { intake.axis.instant(readings.progress()) } else { Nanos::MAX }
        };
        let places: Vec<(CpuId, Nanos)> = intake.feeds.iter().map(|feed| (feed.cpu, end(feed))).collect();
        let siblings: Vec<Option<usize>> = intake.feeds.iter().map(|feed| feed.sibling).collect();
        let tell =
            |(feed, whole): (&mut CpuFeed<R>, &Batch<'_>)| std::mem::replace(&mut feed.told, whole.complete_until);
        let told: Vec<Nanos> = intake.feeds.iter_mut().zip(&wholes).map(tell).collect();
        let mut pause = || {
            if !all {
                intake.pause(pauses);
            }
        };
        for whole in wholes {
            let index = whole.index;
            // Data that may explain the steps comes first.
            let whole = Batch { traced_until: *traced_until, ..whole };
            let common = Batch { index, complete_until: told[index], traced_until: *traced_until, ..Batch::default() };
            sink.batch(Batch { watches: &handed[index].watches, ..common }, names, &mut pause)?;
            for sibling in siblings[index].into_iter().flat_map(|sibling| handed[sibling].steps.parts()) {
                sink.batch(Batch { sibling, ..common }, names, &mut pause)?;
                pause();
            }
            // Events before the loop's first reading and after its last are irrelevant; at both, the loop was running uninterrupted.
            let span = whole.began.unwrap_or(Nanos::MAX)..=places[index].1;
            let mut portions = Portions::new(&handed[index], whole);
            let pages = if traced_until.is_some() { handed[index].known_pages } else { usize::MAX };
            let mut pages = handed[index].raw_pages().take(pages);
            loop {
                events.clear();
                match (pages.next(), &mut *trace) {
                    (Some(page), Some(trace)) => {
                        if let Err(error) = trace.decode(page, &span, windows, &mut counted[index], names, events) {
                            first_broken.get_or_insert((places[index].0, error));
                        }
                        portions.page(events.last().map(|event| event.time));
                    }
                    _ => portions.last_page(),
                }
                let mut events = events.as_slice();
                while let Some(batch) = portions.next(&mut events) {
                    sink.batch(batch, names, &mut pause)?;
                    pause();
                }
                if portions.are_over() {
                    break;
                }
            }
        }
        // Only after all are done, because each may explain its sibling's time.
        handed.iter_mut().for_each(Backlog::clear);
        Ok(())
    }

    /// Lets the sink store the segment, with pauses that take new data.
    pub fn end_segment<S: Sink>(
        &mut self,
        sink: &mut S,
        names: &Names,
        pauses: &mut Pauses<'_>,
    ) -> Result<(), S::Error> {
        let intake = &mut self.intake;
        sink.end_segment(names, &mut || intake.pause(pauses))
    }

    /// The counts of each CPU so far, in the order of the loops.
    pub fn counts(&self) -> impl ExactSizeIterator<Item = FeedCounts> + '_ {
        self.counted
            .iter()
            .zip(&self.intake.feeds)
            .map(|(counted, feed)| FeedCounts { steps: feed.steps, ..counted.counts })
    }

    /// The occurrences of interrupts and softirqs on each CPU between the reads of the kernel's counters, in the order of the loops.
    pub fn occurrences(&self) -> impl ExactSizeIterator<Item = (CpuId, &Occurrences)> {
        self.intake.feeds.iter().zip(&self.counted).map(|(feed, counted)| (feed.cpu, &counted.occurrences))
    }

    /// The decoder of the trace, if any.
    pub fn decoder(&self) -> Option<&Decoder> {
        self.trace.as_ref().map(|trace| &trace.decoder)
    }

    /// The first page that could not be decoded, and the error.
    pub const fn first_broken(&self) -> Option<&(CpuId, DecodeError)> {
        self.first_broken.as_ref()
    }
}
