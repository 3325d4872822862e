//! Works out an observation: decodes its pages, and takes what was seen of threads to its place among the events.

use std::collections::VecDeque;

use becalm_attribute::books::{Books, ThreadCounts, ThreadIdentity};
use becalm_attribute::causes::CauseFinder;
use becalm_bundle::ObservedWriter;
use becalm_linux::clock::Anchor;
use becalm_linux::procfs::task::Schedstat;
use becalm_measure::{EventClock, Names, Spool, Translator};
use becalm_model::{Event, Labels, Pid, Tasks, ThreadState};
use becalm_units::fault::{self, Context};
use becalm_units::{CpuId, Nanos, Ticks, TicksToNanos};

use crate::look::{SeenAccount, SeenThread};
use crate::merge::{EventSource, FoundCauses, Interjection, Merge, TraceBuffer, WorkedOut};
use crate::recorder::{Observation, TraceParts};

/// An observation, worked out.
pub struct Replayed {
    /// The books.
    pub worked: WorkedOut,
    /// The kernel's accounts and those of the books, of threads that slept at both looks.
    pub compared: Vec<ComparedAccount>,
    /// The causes of activities, if they were recorded.
    pub causes: Option<FoundCauses>,
    /// Pages that could not be decoded.
    pub broken_pages: u64,
    /// The axis of all times.
    pub axis: TicksToNanos,
}

/// The growth of a thread's account.
#[derive(Clone, Copy, Debug)]
pub struct ComparedAccount {
    /// By the kernel.
    pub kernel: Schedstat,
    /// By the books.
    pub books: Schedstat,
}

/// The result of a look.
enum Look<'a> {
    Thread(&'a SeenThread),
    /// An account, and whether it is the last one.
    Account(&'a SeenAccount, bool),
}

/// The decoding of pages: what stays from one page to the next.
pub struct Decoding {
    translators: Vec<Translator>,
    clocks: Vec<EventClock>,
    names: Names,
    /// Pages that could not be decoded.
    broken_pages: u64,
}

impl Decoding {
    /// For these traces, with the clocks of this anchor on this axis.
    pub fn new(traces: &[TraceParts], is_native: bool, axis: TicksToNanos, anchor: Anchor) -> Self {
        let mut names = Names::for_file();
        let translators = traces.iter().map(|parts| {
            Translator::new(
                &parts.decoder,
                parts.symbols.clone(),
                &parts.strings,
                parts.untraced_timer,
                &mut names.labels,
            )
        });
        let translators = translators.collect();
        let clocks = traces.iter().map(|parts| EventClock::new(parts.clock, is_native, axis, anchor)).collect();
        Self { translators, clocks, names, broken_pages: 0 }
    }

    /// The events of the next pages came before this anchor.
    pub fn advance(&mut self, anchor: Anchor) {
        self.clocks.iter_mut().for_each(|clock| clock.advance(anchor));
    }

    /// The names in the events so far.
    pub fn labels(&mut self) -> &mut Labels {
        &mut self.names.labels
    }
}

/// Reads and decodes the pages of a spool.
pub struct Pages<'a> {
    spool: &'a Spool,
    buffers: &'a [TraceBuffer],
    traces: &'a [TraceParts],
    decoding: &'a mut Decoding,
    /// The next page of each buffer.
    next: Vec<usize>,
    page: Vec<u8>,
}

impl<'a> Pages<'a> {
    /// All pages of these buffers.
    pub fn new(
        spool: &'a Spool,
        buffers: &'a [TraceBuffer],
        traces: &'a [TraceParts],
        decoding: &'a mut Decoding,
    ) -> Self {
        Self { spool, buffers, traces, decoding, next: vec![0; buffers.len()], page: Vec::new() }
    }
}

impl EventSource for Pages<'_> {
    fn more(&mut self, buffer: usize, pass: &mut impl FnMut(Event)) -> fault::Result<bool> {
        let Self { spool, buffers, traces, decoding, next, page } = self;
        let Decoding { translators, clocks, names, broken_pages } = &mut **decoding;
        let is_page = spool.read(buffer, next[buffer], page).context("cannot read the raw trace again")?;
        if !is_page {
            return Ok(false);
        }
        next[buffer] += 1;
        let which = buffers[buffer].holds as usize;
        let decoded = traces[which].decoder.page(page, &mut |raw| {
            pass(translators[which].translate(&raw, clocks[which].instant(raw.time), names));
        });
        *broken_pages += u64::from(decoded.is_err());
        Ok(true)
    }

    fn labels(&mut self) -> &mut Labels {
        self.decoding.labels()
    }

    fn names(&mut self) -> (&Tasks, &mut Labels) {
        let Names { tasks, labels, .. } = &mut self.decoding.names;
        (tasks, labels)
    }
}

/// Works out an observation, and writes its tables with `writer`.
pub fn work_out(observation: &Observation, writer: Option<&mut ObservedWriter>) -> fault::Result<Replayed> {
    let axis = TicksToNanos::new(observation.anchors.0.ticks, observation.rate);
    let instant = |ticks: u64| axis.instant(Ticks::new(ticks));
    let mut decoding = Decoding::new(&observation.traces, observation.is_native, axis, observation.anchors.0);
    decoding.advance(observation.anchors.1);
    let throttled: Vec<String> = observation
        .throttled
        .iter()
        .filter(|group| group.grown.throttled > 0)
        .map(|group| group.group.clone())
        .collect();
    let choose = Box::new(observation.choice.clone().function());
    let mut books = Books::new(choose, &throttled, observation.traces[0].has_calls, decoding.labels());
    let finder = observation.tracing.causes.as_ref().map(|_| finder(observation, &mut decoding.names));
    let mut pages = Pages::new(&observation.spool, &observation.buffers, &observation.traces, &mut decoding);
    let span = (instant(observation.books.0), instant(observation.books.1));
    let mut compared = Comparison::default();
    let enter = |look, at, books: &mut Books, labels: &mut Labels| match look {
        Look::Thread(seen) => meet(seen, &observation.own, at, books, labels),
        // A thread that did not sleep all the while may have changed its account.
        Look::Account(seen, is_last) => {
            compared.take(seen, is_last, axis.instant(Ticks::new(seen.read.0)), at, books);
        }
    };
    let interjections = interjections(observation, instant);
    let mut merge = Merge::new(&observation.buffers, interjections, writer);
    if let Some(finder) = finder {
        merge = merge.finding_causes(finder);
    }
    merge.feed(&mut pages, None, enter, &mut books)?;
    let missing = merge.missing();
    let causes = merge.into_causes();
    let Decoding { names, broken_pages, .. } = decoding;
    let worked = WorkedOut { books, labels: names.labels, missing, span };
    Ok(Replayed { worked, compared: compared.accounts, causes, broken_pages, axis })
}

/// Finds the causes of activities on all CPUs. Names the threads that were seen, because a request does not name who made it.
fn finder(observation: &Observation, names: &mut Names) -> CauseFinder {
    for seen in &observation.seen {
        names.set_kernel(Pid(seen.stat.pid), seen.stat.kthread);
        names.see(Pid(seen.stat.pid), seen.stat.comm.as_bytes());
    }
    let own: Vec<Pid> = observation.own.iter().copied().map(Pid).collect();
    CauseFinder::new(None, &own, &mut names.labels)
}

/// Looks, accounts, and the start and the end of the books, in order of time.
fn interjections(
    observation: &Observation,
    instant: impl Fn(u64) -> Nanos,
) -> VecDeque<(Nanos, Interjection<Look<'_>>)> {
    let fact = |at: u64, look| (instant(at), Interjection::Fact(look));
    let account = |seen: &'_ SeenAccount| seen.read.1;
    let mut all: Vec<(Nanos, Interjection<Look<'_>>)> =
        observation.seen.iter().map(|seen| fact(seen.at, Look::Thread(seen))).collect();
    all.push((instant(observation.books.0), Interjection::Open));
    all.extend(observation.accounts.iter().map(|seen| fact(account(seen), Look::Account(seen, false))));
    all.extend(observation.last_accounts.iter().map(|seen| fact(account(seen), Look::Account(seen, true))));
    all.push((instant(observation.books.1), Interjection::Close));
    // Stable: the books open before the first account and close after the last one.
    all.sort_by_key(|(at, _)| *at);
    all.into()
}

/// Gives the books a thread that was seen; `own` are the numbers of becalm's own.
pub fn meet(seen: &SeenThread, own: &[i32], at: Nanos, books: &mut Books, labels: &mut Labels) {
    let pid = Pid(seen.stat.pid);
    let identity = ThreadIdentity {
        process: Pid(seen.process),
        name: labels.intern(&seen.stat.comm),
        command: labels.intern(&seen.command),
        group: labels.intern(&seen.group),
        is_kernel: seen.stat.kthread,
        is_becalm: own.contains(&seen.stat.pid) || own.contains(&seen.process),
        ..ThreadIdentity::unknown(pid)
    };
    let state = ThreadState::from_letter(seen.stat.state).unwrap_or(ThreadState::SLEEPING);
    books.meet(pid, &identity, Some((state, CpuId::new(seen.stat.cpu))), at, labels);
}

/// The accounts at the first look, and those that were compared.
#[derive(Default)]
struct Comparison {
    first: Vec<(SeenAccount, ThreadCounts)>,
    accounts: Vec<ComparedAccount>,
}

impl Comparison {
    /// Takes an account, read from `began` to `at`, of a thread that slept meanwhile.
    fn take(&mut self, seen: &SeenAccount, is_last: bool, began: Nanos, at: Nanos, books: &Books) {
        let slept = |counts: &ThreadCounts| counts.asleep_since.is_some_and(|since| since <= began);
        let Some(counts) = books.counts(Pid(seen.tid), at).filter(slept) else { return };
        if !is_last {
            self.first.push((*seen, counts));
        } else if let Some((before, first)) = self.first.iter().find(|(_, first)| first.thread == counts.thread) {
            let (one, other) = (before.account, seen.account);
            self.accounts.push(ComparedAccount {
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
