//! The collector: empties the loops' rings and the kernel's trace buffers while the loops run, and turns what it took
//! into batches on the run's axis.
//!
//! Taking is kept apart from decoding, so that where no CPU is free of loops the decoding can wait until a segment ends.

use std::io;
use std::sync::Arc;

use becalm_linux::clock::Anchor;
use becalm_linux::ftrace::{DecodeError, Decoder, PageReader, RawHappening};
use becalm_model::{Event, Step};
use becalm_units::{CpuId, Nanos, Ticks, TicksToNanos};

use crate::event_clock::EventClock;
use crate::ring::Ring;
use crate::threads::Names;
use crate::translate::Translator;
use crate::work::Repetitions;
use crate::{Batch, Sink};

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

/// One measured CPU.
#[derive(Debug)]
struct Feed {
    cpu: CpuId,
    ring: Arc<Ring>,
    pages: Option<Pages>,
    steps: Vec<Step>,
    work: Vec<u64>,
    /// Watches the steps for when they are enough.
    repetitions: Option<Repetitions>,
    enough: bool,
    complete_until: Nanos,
    counts: FeedCounts,
}

/// What the collector counted on one CPU.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct FeedCounts {
    /// Kernel events decoded.
    pub events: u64,
    /// Kernel events lost, as far as the kernel says how many.
    pub lost_events: u64,
    /// Gaps in the trace.
    pub gaps: u64,
    /// Records that are not events we asked for.
    pub ignored: u64,
    /// Pages that could not be decoded.
    pub broken_pages: u64,
    /// Steps taken from the ring.
    pub steps: u64,
}

/// Collects from all CPUs. Lives in one thread.
#[derive(Debug)]
pub struct Collector {
    feeds: Vec<Feed>,
    axis: TicksToNanos,
    decoder: Option<Decoder>,
    clock: Option<EventClock>,
    translator: Option<Translator>,
    page: Vec<u8>,
    /// The decoded events of one CPU, while they are handed over. One place for all, since on a machine of many CPUs as
    /// many of them would hold more memory than everything else.
    events: Vec<Event>,
    first_broken: Option<(CpuId, DecodeError)>,
}

/// How the trace is to be understood.
#[derive(Debug)]
pub struct TraceSide {
    /// Decodes its pages.
    pub decoder: Decoder,
    /// Times its events.
    pub clock: EventClock,
    /// Names its events.
    pub translator: Translator,
    /// One reader a CPU, in the order of the loops.
    pub readers: Vec<PageReader>,
}

impl Collector {
    /// A collector of these loops, in the order in which batches number them.
    #[must_use]
    pub fn new(loops: Vec<(CpuId, Arc<Ring>)>, axis: TicksToNanos, trace: Option<TraceSide>) -> Self {
        let (decoder, clock, translator, readers) = match trace {
            Some(trace) => (Some(trace.decoder), Some(trace.clock), Some(trace.translator), trace.readers),
            None => (None, None, None, Vec::new()),
        };
        let page = vec![0; readers.iter().map(PageReader::page_size).max().unwrap_or(0)];
        let mut readers = readers.into_iter();
        let feeds = loops.into_iter().map(|(cpu, ring)| Feed {
            cpu,
            ring,
            pages: readers.next().map(|reader| Pages { reader, bytes: Vec::new(), ends: Vec::new() }),
            steps: Vec::new(),
            work: Vec::new(),
            repetitions: None,
            enough: false,
            complete_until: Nanos::ZERO,
            counts: FeedCounts::default(),
        });
        Self { feeds: feeds.collect(), axis, decoder, clock, translator, page, events: Vec::new(), first_broken: None }
    }

    /// From now on watches the steps of each loop for when they have been repeated enough, by this maximum allowable
    /// variation.
    pub fn watch_repetitions(&mut self, maiv: f64) {
        for feed in &mut self.feeds {
            feed.repetitions = Some(Repetitions::new(maiv));
        }
    }

    /// Whether they have, at some time, on every CPU; never if they are not watched.
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
            feed.complete_until = feed.complete_until.max(axis.instant(Ticks::new(feed.ring.progress())));
            let before = feed.steps.len();
            let (keeps_work, enough) = (feed.ring.is_of_samples(), &mut feed.enough);
            feed.ring.drain_samples(|before, after, work| {
                let instant = |reading| axis.instant(Ticks::new(reading));
                feed.steps.push(Step { start: instant(before), end: instant(after) });
                if keeps_work {
                    feed.work.push(work);
                }
                if let Some(repetitions) = &mut feed.repetitions {
                    *enough |= repetitions.add(after.wrapping_sub(before) as f64);
                }
            });
            let steps = (feed.steps.len() - before) as u64;
            feed.counts.steps += steps;
            taken += steps;
            let (Some(pages), Some(decoder)) = (&mut feed.pages, &self.decoder) else { continue };
            // The first page may be the rest of one that was taken half full last time. A second one that is not full is
            // the one being written: what comes after it came after `progress`, and chasing it would not end on a CPU
            // whose own reading makes events.
            let mut partial = 0;
            while (everything || partial < 2)
                && let Some(length) = pages.reader.read_page(&mut self.page)?
            {
                let page = &self.page[..length];
                let used = decoder.used(page);
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
        let of = |feed: &Feed| feed.pages.as_ref().map_or(0, |pages| pages.bytes.len()) + feed.steps.len() * 16;
        self.feeds.iter().map(of).sum()
    }

    /// Whether anchors between the trace's clock and the loops' counter are needed at every hand-over.
    #[must_use]
    pub fn needs_anchors(&self) -> bool {
        self.clock.is_some_and(|clock| clock.needs_anchors())
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
        if let (Some(clock), Some(anchor)) = (&mut self.clock, anchor) {
            clock.advance(anchor);
        }
        let Self { feeds, axis, decoder, clock, translator, events, first_broken, .. } = self;
        for (index, feed) in feeds.iter_mut().enumerate() {
            let first_reading = feed.ring.began().map(|reading| axis.instant(Ticks::new(reading)));
            if let (Some(pages), Some(decoder), Some(clock), Some(translator)) =
                (&mut feed.pages, &*decoder, &*clock, &mut *translator)
            {
                // What happened before the loop's first reading or after its last is none of its business; at both it
                // was running, with nothing above it.
                let began = first_reading.unwrap_or(Nanos::MAX);
                let ended = if all { axis.instant(Ticks::new(feed.ring.progress())) } else { Nanos::MAX };
                let mut start = 0;
                for end in pages.ends.drain(..) {
                    let counts = &mut feed.counts;
                    let decoded = decoder.page(&pages.bytes[start..end], &mut |raw| {
                        let time = clock.instant(raw.time);
                        if time >= began && time <= ended {
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
                            first_broken.get_or_insert((feed.cpu, error));
                        }
                    }
                    start = end;
                }
                pages.bytes.clear();
            }
            let complete_until = if all { Nanos::MAX } else { feed.complete_until };
            let (steps, work) = (&feed.steps, &feed.work);
            sink.batch(Batch { index, steps, work, events, began: first_reading, complete_until }, names)?;
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
