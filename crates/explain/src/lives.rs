//! The lives of threads and CPUs as segments, each of them divided among causes.
//!
//! The segments of a thread follow each other without gap, and the times of a segment's causes add up to it. So the causes of any interval of a thread
//! add up to its length.
//!
//! A thread that sleeps until another observed thread wakes it waits for that thread: what delayed the waker delayed the sleeper. So the causes of the
//! waker meanwhile are those of the sleep, one step far.

use std::collections::{HashMap, HashSet};

use becalm_bundle::{ObservedTables, ThreadRow};
use becalm_model::observed::{LifePart, OwnedActivity, Owner, Stay, ThreadId};
use becalm_model::{Kind, Label, Labels};
use becalm_observe::words::{TakerNames, taker_names, taker_thread};
use becalm_units::fault;

use crate::causes::{Cause, CauseTime, Causes, Class};

mod cpus;

pub use cpus::{MeasuredCpu, OwnThreads};

/// The segments of a thread or a CPU.
#[derive(Clone, Debug, Default)]
struct Life {
    /// The start of each segment, rising; the last is the end of the life.
    starts: Vec<i64>,
    /// The first of the causes of each segment, and the end of the last one's.
    firsts: Vec<usize>,
}

/// The lives of some threads of a recording.
#[derive(Clone, Debug)]
pub struct Lives {
    /// The causes.
    pub causes: Causes,
    lives: HashMap<ThreadId, Life>,
    times: Vec<CauseTime>,
    unknown: u32,
    /// Interruptions that are in no part of a life to which they can belong.
    pub unplaced: u64,
}

/// A wait or an interruption, with its causes.
#[derive(Clone, Copy, Debug)]
struct Interruption {
    start: i64,
    length: i64,
    first: usize,
    count: usize,
    is_host: bool,
}

/// A segment that is being made.
#[derive(Clone, Copy, Debug)]
struct Draft {
    end: i64,
    what: What,
    /// The part of it that the hypervisor had.
    host: i64,
}

#[derive(Clone, Copy, Debug)]
enum What {
    /// All of it goes to one cause.
    One(u32),
    /// Sleep, with the observed thread that ended it.
    Sleep(u32, Option<ThreadId>),
    /// The causes of an interruption.
    Rows(Interruption),
}

impl Lives {
    /// Reads the lives of the threads that are wanted. Fails if a table is missing, damaged, or contradicts itself.
    pub fn read(
        tables: &ObservedTables,
        threads: &[ThreadRow],
        wanted: &HashSet<ThreadId>,
        labels: &mut Labels,
    ) -> fault::Result<Self> {
        let mut stays: HashMap<ThreadId, Vec<Stay>> = HashMap::new();
        let mut wakers: HashSet<ThreadId> = HashSet::new();
        tables.stays(labels, &mut |stay, _| {
            if wanted.contains(&stay.thread) {
                wakers.extend(stay.by.filter(|by| !wanted.contains(by) && is_chosen(*by, threads)));
                stays.entry(stay.thread).or_default().push(*stay);
            }
        })?;
        if !wakers.is_empty() {
            tables.stays(labels, &mut |stay, _| {
                if wakers.contains(&stay.thread) {
                    stays.entry(stay.thread).or_default().push(*stay);
                }
            })?;
        }
        let mut causes = Causes::default();
        let texts = labels.clone();
        let names = taker_names(threads, &texts);
        let mut rows: Vec<CauseTime> = Vec::new();
        let mut known: HashMap<(Owner, Kind, Label, Option<ThreadId>), u32> = HashMap::new();
        let mut interruptions: HashMap<ThreadId, Vec<Interruption>> = HashMap::new();
        tables.detours(labels, &mut |detour, activities, labels| {
            if !stays.contains_key(&detour.thread) {
                return;
            }
            interruptions.entry(detour.thread).or_default().push(Interruption {
                start: detour.start.get(),
                length: detour.duration.get(),
                first: rows.len(),
                count: activities.len(),
                is_host: activities.first().is_some_and(|row| row.owner == Owner::Host),
            });
            for row in activities {
                let key = (row.owner, row.kind, row.source, row.thread);
                let number = *known.entry(key).or_insert_with(|| causes.number(taker(row, threads, &names, labels)));
                rows.push(CauseTime { cause: number, ns: row.time.get() });
            }
        })?;
        Self::assembled(stays, interruptions, rows, causes, wanted, threads, labels)
    }

    /// Makes the segments of all threads, and follows the sleep of the wanted ones.
    fn assembled(
        stays: HashMap<ThreadId, Vec<Stay>>,
        mut interruptions: HashMap<ThreadId, Vec<Interruption>>,
        mut rows: Vec<CauseTime>,
        mut causes: Causes,
        wanted: &HashSet<ThreadId>,
        threads: &[ThreadRow],
        labels: &Labels,
    ) -> fault::Result<Self> {
        let unknown = causes.number(Cause::new(Class::Unknown, Owner::Unknown, ""));
        let mut alone = Self { causes, lives: HashMap::new(), times: Vec::new(), unknown, unplaced: 0 };
        let mut drafts: HashMap<ThreadId, (i64, Vec<Draft>)> = HashMap::new();
        for (thread, stays) in stays {
            let mut found = interruptions.remove(&thread).unwrap_or_default();
            found.sort_by_key(|interruption| interruption.start);
            let start = stays.first().map_or(0, |stay| stay.start.get());
            let mut maker = Maker {
                threads,
                labels,
                causes: &mut alone.causes,
                rows: &mut rows,
                unknown,
                drafts: Vec::new(),
                now: start,
                unplaced: 0,
            };
            maker.make(&stays, &found)?;
            let (made, unplaced) = (maker.drafts, maker.unplaced);
            alone.unplaced += unplaced;
            alone.keep(thread, start, &made, &rows, None);
            drafts.insert(thread, (start, made));
        }
        let causes = std::mem::take(&mut alone.causes);
        let mut lives = Self { causes, lives: HashMap::new(), times: Vec::new(), unknown, unplaced: alone.unplaced };
        let mut follower = Follower { alone: &alone, threads, labels, known: HashMap::new(), found: Vec::new() };
        for (thread, (start, drafts)) in drafts.iter().filter(|(thread, _)| wanted.contains(thread)) {
            lives.keep(*thread, *start, drafts, &rows, Some(&mut follower));
        }
        Ok(lives)
    }

    /// Keeps the segments of a thread. With a follower, sleep has the causes of the thread that ended it.
    fn keep(
        &mut self,
        thread: ThreadId,
        start: i64,
        drafts: &[Draft],
        rows: &[CauseTime],
        mut follower: Option<&mut Follower<'_>>,
    ) {
        let host = self.causes.number(Cause::new(Class::Host, Owner::Host, "hypervisor"));
        let mut life = Life::default();
        let mut since = start;
        for draft in drafts {
            life.starts.push(since);
            life.firsts.push(self.times.len());
            let length = draft.end - since;
            match draft.what {
                What::Sleep(cause, Some(waker)) if follower.is_some() => {
                    if let Some(follower) = &mut follower {
                        follower.follow(cause, waker, (since, draft.end), &mut self.causes, &mut self.times);
                    }
                }
                What::One(cause) | What::Sleep(cause, _) => {
                    if length > draft.host {
                        self.times.push(CauseTime { cause, ns: length - draft.host });
                    }
                    if draft.host > 0 {
                        self.times.push(CauseTime { cause: host, ns: draft.host });
                    }
                }
                What::Rows(Interruption { first, count, .. }) => {
                    scaled(&rows[first..first + count], length, &mut self.times)
                }
            }
            since = draft.end;
        }
        life.starts.push(since);
        life.firsts.push(self.times.len());
        self.lives.insert(thread, life);
    }

    /// Adds the causes of an interval of a thread, which add up to its length. Outside of its life, the cause is not known.
    pub fn causes_of(&self, thread: ThreadId, start: i64, end: i64, into: &mut Vec<CauseTime>) {
        let mut add_unknown = |ns: i64| {
            if ns > 0 {
                into.push(CauseTime { cause: self.unknown, ns });
            }
        };
        let Some(life) = self.lives.get(&thread) else { return add_unknown(end - start) };
        let (first, last) = (life.starts[0], life.starts[life.starts.len() - 1]);
        add_unknown(start.min(first).max(end.min(first)) - start.min(first));
        add_unknown(end.max(last) - start.max(last));
        let mut segment = life.starts.partition_point(|begin| *begin <= start).saturating_sub(1);
        while segment + 1 < life.starts.len() && life.starts[segment] < end {
            let (from, to) = (life.starts[segment].max(start), life.starts[segment + 1].min(end));
            if to > from {
                scaled(&self.times[life.firsts[segment]..life.firsts[segment + 1]], to - from, into);
            }
            segment += 1;
        }
    }

    /// The segments of an interval of a thread: end and the cause with most of the time.
    pub fn segments_of(&self, thread: ThreadId, start: i64, end: i64) -> Vec<(i64, u32)> {
        let Some(life) = self.lives.get(&thread) else { return vec![(end, self.unknown)] };
        let mut found: Vec<(i64, u32)> = Vec::new();
        let mut segment = life.starts.partition_point(|begin| *begin <= start).saturating_sub(1);
        while segment + 1 < life.starts.len() && life.starts[segment] < end {
            let most = self.times[life.firsts[segment]..life.firsts[segment + 1]].iter().max_by_key(|time| time.ns);
            let cause = most.map_or(self.unknown, |time| time.cause);
            let until = life.starts[segment + 1].min(end);
            match found.last_mut().filter(|last| last.1 == cause) {
                Some(last) => last.0 = until,
                None => found.push((until, cause)),
            }
            segment += 1;
        }
        found
    }
}

/// Adds these causes with times in the same ratios that add up to `length`. The largest remainders get the nanoseconds left by rounding.
fn scaled(times: &[CauseTime], length: i64, into: &mut Vec<CauseTime>) {
    let whole: i64 = times.iter().map(|time| time.ns).sum();
    if whole == length {
        into.extend_from_slice(times);
        return;
    }
    let begin = into.len();
    let mut rest = length;
    let mut remainders: Vec<(i128, usize)> = Vec::with_capacity(times.len());
    for time in times {
        let product = i128::from(time.ns) * i128::from(length);
        let ns = (product / i128::from(whole.max(1))) as i64;
        rest -= ns;
        remainders.push((product % i128::from(whole.max(1)), into.len()));
        into.push(CauseTime { ns, ..*time });
    }
    remainders.sort_by_key(|(remainder, place)| (std::cmp::Reverse(*remainder), *place));
    for (_, place) in remainders.iter().take(usize::try_from(rest).unwrap_or(0)) {
        into[*place].ns += 1;
    }
    debug_assert_eq!(into[begin..].iter().map(|time| time.ns).sum::<i64>(), if times.is_empty() { 0 } else { length });
}

/// The cause for a taker of the CPU.
fn taker(row: &OwnedActivity, threads: &[ThreadRow], names: &TakerNames<'_>, labels: &Labels) -> Cause {
    let thread = row.thread.and_then(|thread| threads.get(thread.0 as usize));
    let class = match row.owner {
        Owner::Quota => Class::Quota,
        Owner::Host => Class::Host,
        _ => Class::Queued,
    };
    Cause {
        kind: Some(row.kind),
        process: thread.filter(|thread| !thread.kernel).map(|thread| thread.process),
        ..Cause::new(class, row.owner, &names.source(row.owner, labels.text(row.source), thread.map(taker_thread)))
    }
}

/// Whether a thread was observed.
fn is_chosen(thread: ThreadId, threads: &[ThreadRow]) -> bool {
    threads.get(thread.0 as usize).is_some_and(|row| row.chosen)
}

/// Follows sleep to the thread that ended it: its causes meanwhile are those of the sleep.
struct Follower<'a> {
    /// The lives with sleep as such.
    alone: &'a Lives,
    threads: &'a [ThreadRow],
    labels: &'a Labels,
    /// The causes of sleepers by those of their wakers.
    known: HashMap<(u32, ThreadId), Option<u32>>,
    found: Vec<CauseTime>,
}

impl Follower<'_> {
    /// Adds the causes of sleep from `start` to `end`. While the waker slept itself, or its life is not known, the sleep stays what it is.
    fn follow(
        &mut self,
        sleep: u32,
        waker: ThreadId,
        (start, end): (i64, i64),
        causes: &mut Causes,
        into: &mut Vec<CauseTime>,
    ) {
        self.found.clear();
        self.alone.causes_of(waker, start, end, &mut self.found);
        let begin = into.len();
        for CauseTime { cause, ns } in self.found.drain(..) {
            let followed = *self.known.entry((cause, waker)).or_insert_with(|| {
                let name = self.threads.get(waker.0 as usize).map_or("", |row| self.labels.text(row.name));
                causes.get(cause).of_waker(name).map(|cause| causes.number(cause))
            });
            let cause = followed.unwrap_or(sleep);
            match into[begin..].iter_mut().find(|time| time.cause == cause) {
                Some(time) => time.ns += ns,
                None => into.push(CauseTime { cause, ns }),
            }
        }
    }
}

/// Makes the segments of a thread.
struct Maker<'a> {
    threads: &'a [ThreadRow],
    labels: &'a Labels,
    causes: &'a mut Causes,
    rows: &'a mut [CauseTime],
    unknown: u32,
    drafts: Vec<Draft>,
    /// The end of the last segment.
    now: i64,
    /// Interruptions that have no place.
    unplaced: u64,
}

impl Maker<'_> {
    /// Makes the segments, from the start of the first stay. Fails if the stays do not follow each other.
    fn make(&mut self, stays: &[Stay], interruptions: &[Interruption]) -> fault::Result<()> {
        let start = self.now;
        let mut begin = start;
        let mut rest = interruptions.iter().filter(|found| !found.is_host).peekable();
        for (number, stay) in stays.iter().enumerate() {
            fault::ensure!(
                stay.start.get() == begin,
                "the table of stays is damaged: the parts of the life of thread {} do not follow each other at {begin} ns",
                self.threads.get(stay.thread.0 as usize).map_or(0, |row| row.tid)
            );
            let end = begin + stay.duration.get();
            while rest.next_if(|found| found.start < begin).is_some() {
                self.unplaced += 1;
            }
            let context = self.labels.text(stay.context);
            let cause = match stay.part {
                LifePart::Ran => {
                    let program = self.causes.number(Cause::running(context));
                    while let Some(found) = rest.next_if(|found| found.start < end) {
                        self.on_top(*found);
                        self.add(found.start, What::One(program));
                        self.add((found.start + found.length).min(end), What::Rows(*found));
                    }
                    program
                }
                LifePart::Queued | LifePart::Quota => {
                    if let Some(found) = rest.next_if(|found| found.start == begin) {
                        // All parts of the wait.
                        self.add(begin + found.length, What::Rows(*found));
                    }
                    self.unknown
                }
                LifePart::OnTheWay => self.causes.number(Cause::new(Class::OnTheWay, Owner::Kernel, "")),
                LifePart::Asleep => {
                    let waker = stays.get(number + 1).and_then(|next| next.by);
                    let waker = waker.filter(|waker| is_chosen(*waker, self.threads));
                    let name = waker.map_or("", |waker| self.labels.text(self.threads[waker.0 as usize].name));
                    let cause = self.causes.number(Cause::asleep(context, stay.reason.name(), name));
                    self.add(end, What::Sleep(cause, waker));
                    cause
                }
                LifePart::Stopped => self.causes.number(Cause::new(Class::Stopped, Owner::Unknown, "")),
                LifePart::Unknown => self.unknown,
            };
            self.add(end, What::One(cause));
            begin = end;
        }
        self.unplaced += rest.count() as u64;
        let hosts = interruptions.iter().filter(|found| found.is_host);
        hosts.for_each(|found| self.give_to_host(start, found.start + found.length, found.length));
        Ok(())
    }

    /// Makes the causes of an interruption those of one on top of the thread.
    fn on_top(&mut self, found: Interruption) {
        for row in &mut self.rows[found.first..found.first + found.count] {
            let cause = self.causes.get(row.cause);
            if cause.class == Class::Queued {
                row.cause = self.causes.number(Cause { class: Class::OnTop, ..cause.clone() });
            }
        }
    }

    /// Adds a segment until `end`, unless there is one already.
    fn add(&mut self, end: i64, what: What) {
        if end > self.now {
            self.drafts.push(Draft { end, what, host: 0 });
            self.now = end;
        }
    }

    /// Gives time of the program to the hypervisor, backward from the instant at which the kernel accounted for it.
    fn give_to_host(&mut self, start: i64, at: i64, mut length: i64) {
        let program = self.causes.number(Cause::running(""));
        let mut place = self.drafts.partition_point(|draft| draft.end < at);
        loop {
            if let Some(draft) = self.drafts.get(place)
                && matches!(draft.what, What::One(cause) if cause == program)
            {
                let begin = place.checked_sub(1).map_or(start, |before| self.drafts[before].end);
                let taken = length.min(draft.end.min(at) - begin - draft.host).max(0);
                self.drafts[place].host += taken;
                length -= taken;
            }
            if place == 0 || length == 0 {
                return;
            }
            place -= 1;
        }
    }
}

#[cfg(test)]
mod tests;
