//! The collector: empties the loops' rings and the kernel's trace buffers while the loops run, and turns what it took
//! into batches on the run's axis.
//!
//! Taking is kept apart from decoding, so that where no CPU is free of loops the decoding can wait until a segment ends.

use std::io;
use std::ops::RangeInclusive;
use std::sync::Arc;

use becalm_linux::clock::Anchor;
use becalm_linux::ftrace::{DecodeError, Decoder, PageReader, RawHappening};
use becalm_model::{Event, Step};
use becalm_units::{CpuId, Nanos, Ticks, TicksToNanos};

use crate::loops::StepRing;
use crate::sink::{Batch, Sink};
use crate::trace::{EventClock, Names, Translator};
use crate::work::AccumulatedMean;

/// No record of ours takes more bytes; a page with more room than that at its end is not full.
const LONGEST_RECORD: usize = 256;

/// The trace side of one CPU.
#[derive(Debug)]
struct Pages {
    reader: PageReader,
    /// Raw pages, each cut to what it carries, one behind the other.
    bytes: Vec<u8>,
    /// Where each page ends in `bytes`.
    ends: Vec<usize>,
}

/// What is taken from one measured CPU, until it is handed over.
#[derive(Debug)]
struct CpuFeed<R> {
    cpu: CpuId,
    ring: Arc<R>,
    pages: Option<Pages>,
    steps: Vec<Step>,
    work: Vec<u64>,
    /// Watches the steps for when they are enough.
    repetitions: Option<AccumulatedMean>,
    enough: bool,
    complete_until: Nanos,
    /// The steps that the loop had only counted when it was last asked, and their sum.
    unstored: (u64, Nanos),
    counts: FeedCounts,
}

/// What the collector counted on one CPU.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct FeedCounts {
    /// The number of kernel events that were decoded.
    pub events: u64,
    /// Kernel events lost, as far as the kernel says how many.
    pub lost_events: u64,
    /// The places in the trace where events were lost.
    pub gaps: u64,
    /// Records that are not events we asked for.
    pub ignored: u64,
    /// Pages that could not be decoded.
    pub broken_pages: u64,
    /// Steps taken from the ring.
    pub steps: u64,
}

impl<R: StepRing> CpuFeed<R> {
    /// The steps that the loop only counted since the last call, and their sum.
    fn take_unstored(&mut self, axis: TicksToNanos) -> (u64, Nanos) {
        let classes = self.ring.readings().unstored().by_length();
        let total = axis.duration(Ticks::new(classes.iter().map(|class| class.total.get()).sum()));
        let so_far = (classes.iter().map(|class| class.steps).sum(), total);
        let (steps, total) = std::mem::replace(&mut self.unstored, so_far);
        (so_far.0 - steps, so_far.1 - total)
    }
}

/// Collects from all CPUs. Lives in one thread.
#[derive(Debug)]
pub struct Collector<R> {
    feeds: Vec<CpuFeed<R>>,
    axis: TicksToNanos,
    trace: Option<TraceDecoding>,
    page: Vec<u8>,
    /// The decoded events of one CPU, while they are handed over. One place for all, since on a machine of many CPUs as
    /// many of them would hold more memory than everything else.
    events: Vec<Event>,
    first_broken: Option<(CpuId, DecodeError)>,
}

/// How the pages of the trace are read.
#[derive(Debug)]
struct TraceDecoding {
    decoder: Decoder,
    clock: EventClock,
    translator: Translator,
}

impl TraceDecoding {
    /// Decodes all pages of a CPU and empties them. Events outside of the span are left out. Returns the first error.
    fn decode(
        &mut self,
        pages: &mut Pages,
        span: &RangeInclusive<Nanos>,
        counts: &mut FeedCounts,
        names: &mut Names,
        events: &mut Vec<Event>,
    ) -> Option<DecodeError> {
        let Self { decoder, clock, translator } = self;
        let mut first_broken = None;
        let mut start = 0;
        for end in pages.ends.drain(..) {
            let decoded = decoder.page(&pages.bytes[start..end], &mut |raw| {
                let time = clock.instant(raw.time);
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
                }
                Err(error) => {
                    counts.broken_pages += 1;
                    first_broken.get_or_insert(error);
                }
            }
            start = end;
        }
        pages.bytes.clear();
        first_broken
    }
}

/// How the trace is to be understood.
#[derive(Debug)]
pub struct TraceSide {
    /// Decodes the pages of the trace.
    pub decoder: Decoder,
    /// Turns the events' time stamps into times on the run's axis.
    pub clock: EventClock,
    /// Gives the events of the trace their names.
    pub translator: Translator,
    /// One reader a CPU, in the order of the loops.
    pub readers: Vec<PageReader>,
}

impl<R: StepRing> Collector<R> {
    /// A collector of these loops, in the order in which batches number them.
    #[must_use]
    pub fn new(loops: Vec<(CpuId, Arc<R>)>, axis: TicksToNanos, trace: Option<TraceSide>) -> Self {
        let (trace, readers) = match trace {
            Some(TraceSide { decoder, clock, translator, readers }) => {
                (Some(TraceDecoding { decoder, clock, translator }), readers)
            }
            None => (None, Vec::new()),
        };
        let page = vec![0; readers.iter().map(PageReader::page_size).max().unwrap_or(0)];
        let mut readers = readers.into_iter();
        let feeds = loops.into_iter().map(|(cpu, ring)| CpuFeed {
            cpu,
            ring,
            pages: readers.next().map(|reader| Pages { reader, bytes: Vec::new(), ends: Vec::new() }),
            steps: Vec::new(),
            work: Vec::new(),
            repetitions: None,
            enough: false,
            complete_until: Nanos::ZERO,
            unstored: (0, Nanos::ZERO),
            counts: FeedCounts::default(),
        });
        Self { feeds: feeds.collect(), axis, trace, page, events: Vec::new(), first_broken: None }
    }

    /// From now on watches the steps of each loop for when they have been repeated enough, by this maximum allowable
    /// variation.
    pub fn watch_repetitions(&mut self, maiv: f64) {
        for feed in &mut self.feeds {
            feed.repetitions = Some(AccumulatedMean::new(maiv));
        }
    }

    /// Whether the steps of every CPU have been repeated enough at some time; never if they are not watched.
    #[must_use]
    pub fn repeated_enough(&self) -> bool {
        self.feeds.iter().all(|feed| feed.enough)
    }

    /// Takes what waits in rings and trace buffers. Returns how many steps were taken. `everything` goes on until the
    /// trace is empty, which ends only where nothing is recorded any more.
    ///
    /// # Errors
    /// If the kernel's trace cannot be read.
    pub fn take(&mut self, everything: bool) -> io::Result<u64> {
        let mut taken = 0;
        let axis = self.axis;
        for feed in &mut self.feeds {
            // In this order: what is in the ring is complete up to `progress`, and every kernel event before
            // `progress` is in the trace buffer by now, since the loop wrote `progress` after it.
            feed.complete_until = feed.complete_until.max(axis.instant(feed.ring.readings().progress()));
            let before = feed.steps.len();
            let enough = &mut feed.enough;
            feed.ring.take_all(|before, after, work| {
                feed.steps.push(Step { start: axis.instant(before), end: axis.instant(after) });
                feed.work.extend(work);
                if let Some(repetitions) = &mut feed.repetitions {
                    *enough |= repetitions.add((after - before).get() as f64);
                }
            });
            let steps = (feed.steps.len() - before) as u64;
            feed.counts.steps += steps;
            taken += steps;
            let (Some(pages), Some(trace)) = (&mut feed.pages, &self.trace) else { continue };
            // The first page may be the rest of one that was taken half full last time. A second one that is not full is
            // the one being written: what comes after it came after `progress`, and chasing it would not end on a CPU
            // whose own reading makes events.
            let mut partial = 0;
            while (everything || partial < 2)
                && let Some(length) = pages.reader.read_page(&mut self.page)?
            {
                let page = &self.page[..length];
                let used = trace.decoder.used(page);
                partial += u32::from(used + LONGEST_RECORD < length);
                pages.bytes.extend_from_slice(&page[..used]);
                pages.ends.push(pages.bytes.len());
            }
        }
        Ok(taken)
    }

    /// The bytes of raw trace and steps that wait to be handed on.
    #[must_use]
    pub fn backlog(&self) -> usize {
        let waiting =
            |feed: &CpuFeed<R>| feed.pages.as_ref().map_or(0, |pages| pages.bytes.len()) + feed.steps.len() * 16;
        self.feeds.iter().map(waiting).sum()
    }

    /// Whether anchors between the trace's clock and the loops' counter are needed at every hand-over.
    #[must_use]
    pub fn needs_anchors(&self) -> bool {
        self.trace.as_ref().is_some_and(|trace| trace.clock.needs_anchors())
    }

    /// Decodes what was taken and gives it to the sink, CPU by CPU.
    ///
    /// `anchor` is of now, where one is needed. After `all`, no step will come any more.
    ///
    /// # Errors
    /// What the sink answers.
    pub fn hand_over<S: Sink>(
        &mut self,
        sink: &mut S,
        names: &mut Names,
        anchor: Option<Anchor>,
        all: bool,
    ) -> Result<(), S::Error> {
        let Self { feeds, axis, trace, events, first_broken, .. } = self;
        if let (Some(trace), Some(anchor)) = (&mut *trace, anchor) {
            trace.clock.advance(anchor);
        }
        for (index, feed) in feeds.iter_mut().enumerate() {
            let began = feed.ring.readings().began().map(|reading| axis.instant(reading));
            if let (Some(pages), Some(trace)) = (&mut feed.pages, &mut *trace) {
                // What happened before the loop's first reading or after its last is none of its business; at both it
                // was running, with nothing above it.
                let ended = if all { axis.instant(feed.ring.readings().progress()) } else { Nanos::MAX };
                let span = began.unwrap_or(Nanos::MAX)..=ended;
                if let Some(error) = trace.decode(pages, &span, &mut feed.counts, names, events) {
                    first_broken.get_or_insert((feed.cpu, error));
                }
            }
            let complete_until = if all { Nanos::MAX } else { feed.complete_until };
            let unstored = feed.take_unstored(*axis);
            let (steps, work) = (&feed.steps, &feed.work);
            sink.batch(Batch { index, steps, work, events, began, complete_until, unstored }, names)?;
            feed.steps.clear();
            feed.work.clear();
            events.clear();
        }
        Ok(())
    }

    /// What was counted on each CPU so far, in the order of the loops.
    pub fn counts(&self) -> impl ExactSizeIterator<Item = FeedCounts> + '_ {
        self.feeds.iter().map(|feed| feed.counts)
    }

    /// The first page that could not be decoded, and why.
    #[must_use]
    pub const fn first_broken(&self) -> Option<&(CpuId, DecodeError)> {
        self.first_broken.as_ref()
    }
}
