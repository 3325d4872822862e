//! Spans joined with the lives of their threads or CPUs: the causes of each span, which add up to its length.
//!
//! Spans of one thread and one name that contain each other are taken apart: the outer one is without the inner ones. Spans with the same `id` are one:
//! the time of each of its threads in any of them.

use std::collections::{BTreeMap, HashSet};

use becalm_model::Label;
use becalm_model::observed::ThreadId;
use becalm_units::Named;
use becalm_units::fault::{UsageError, Wording};

use crate::causes::CauseTime;
use crate::clocks::{ClockMap, LEAST_COVERED, SpanClock, relative};
use crate::lives::Lives;
use crate::spans::ReadSpan;
use crate::subjects::{Absent, Subjects};

/// An interval of a thread or a CPU that belongs to a span.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Piece {
    /// The thread; of a recording of CPUs, the place of the CPU among them.
    pub thread: ThreadId,
    /// The start, since the origin of the recording.
    pub start: i64,
    /// The end.
    pub end: i64,
}

/// A span on the time of the recording.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PlacedSpan {
    /// Its name.
    pub name: Label,
    /// The value that groups spans.
    pub group: Label,
    /// Its intervals, in order of time; at least one.
    pub pieces: Vec<Piece>,
}

impl PlacedSpan {
    /// The length: the sum of its intervals.
    pub fn length(&self) -> i64 {
        self.pieces.iter().map(|piece| piece.end - piece.start).sum()
    }

    /// The start of the first interval.
    pub fn start(&self) -> i64 {
        self.pieces.iter().map(|piece| piece.start).min().unwrap_or_default()
    }
}

/// Spans that are not in the recording.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct LeftOutSpans {
    /// How many were not within its time.
    pub outside: u64,
    /// How far the first of these is from its start, in nanoseconds.
    pub first_outside: Option<i64>,
    /// How many were of threads that were not observed, or on CPUs that were not measured.
    pub strangers: u64,
    /// The numbers of some of these threads or CPUs.
    pub numbers: Vec<i64>,
}

impl LeftOutSpans {
    /// Fails if more than one of `count` spans in a hundred was left out.
    pub fn refuse_many(&self, count: usize, clock: SpanClock, subjects: &Subjects) -> Result<(), UsageError> {
        let Self { outside, first_outside, strangers, numbers } = self;
        if !self.are_many(count) {
            return Ok(());
        }
        if outside >= strangers {
            let first = first_outside.map_or_else(String::new, |first| format!(", the first {}", relative(first)));
            let text = Wording::new(
                "{} of {} spans are outside of the recording by the clock {}{}; give their clock with {clock}, or spans of \
                 this recording",
            );
            return Err(UsageError::new(text.with(outside).with(count).with(clock.name()).with(first)));
        }
        let numbers: Vec<String> = numbers.iter().map(ToString::to_string).collect();
        Err(UsageError::new(format!("{strangers} of {count} spans are {}", subjects.strangers(&numbers.join(", ")))))
    }

    /// Whether they are too many to explain the others of `count` spans.
    pub fn are_many(&self, count: usize) -> bool {
        (self.outside + self.strangers) as f64 > (1.0 - LEAST_COVERED) * count as f64
    }

    fn add(&mut self, absent: Absent) {
        match absent {
            Absent::Outside(from_start) => {
                self.outside += 1;
                self.first_outside.get_or_insert(from_start);
            }
            Absent::Stranger(number) => {
                self.strangers += 1;
                if !self.numbers.contains(&number) && self.numbers.len() < NAMED {
                    self.numbers.push(number);
                }
            }
        }
    }
}

/// The most numbers of unknown threads or CPUs that are named.
const NAMED: usize = 5;

/// Finds the lives and places of spans.
pub fn place(spans: &[ReadSpan], map: &ClockMap, subjects: &Subjects) -> (Vec<PlacedSpan>, LeftOutSpans) {
    let mut left_out = LeftOutSpans::default();
    let mut placed: Vec<(ReadSpan, Piece)> = Vec::with_capacity(spans.len());
    for span in spans {
        let (start, end) = (map.convert(span.start), map.convert(span.end).max(map.convert(span.start)));
        match subjects.find(span, start, end, map.error().get()) {
            Ok(thread) => placed.push((*span, Piece { thread, start, end })),
            Err(absent) => left_out.add(absent),
        }
    }
    (assembled(placed), left_out)
}

/// Takes nested spans apart, and joins those of one request.
fn assembled(placed: Vec<(ReadSpan, Piece)>) -> Vec<PlacedSpan> {
    let mut alone: BTreeMap<(ThreadId, Label), Vec<(ReadSpan, Piece)>> = BTreeMap::new();
    let mut requests: BTreeMap<Label, Vec<(ReadSpan, Piece)>> = BTreeMap::new();
    for (span, piece) in placed {
        if span.id == Label::EMPTY {
            alone.entry((piece.thread, span.name)).or_default().push((span, piece));
        } else {
            requests.entry(span.id).or_default().push((span, piece));
        }
    }
    let mut all: Vec<PlacedSpan> = alone.into_values().flat_map(apart).collect();
    for spans in requests.into_values() {
        let Some((first, _)) = spans.iter().min_by_key(|(_, piece)| (piece.start, -piece.end)).copied() else {
            continue;
        };
        let pieces = union(spans.into_iter().map(|(_, piece)| piece).collect());
        all.push(PlacedSpan { name: first.name, group: first.group, pieces });
    }
    all.sort_by_key(|span| (span.start(), span.pieces[0].thread));
    all
}

/// The spans of one thread and name, each without those within it. One that consists of others has no time of its own, and is dropped.
fn apart(mut spans: Vec<(ReadSpan, Piece)>) -> Vec<PlacedSpan> {
    spans.sort_by_key(|(_, piece)| (piece.start, std::cmp::Reverse(piece.end)));
    let mut done: Vec<PlacedSpan> = Vec::with_capacity(spans.len());
    // The spans that may contain later ones, with their ends, which decrease.
    let mut open: Vec<(usize, i64)> = Vec::new();
    for (span, piece) in spans {
        // One that ends before this one contains no later span that this one does not contain.
        while open.pop_if(|(_, end)| *end <= piece.start || *end < piece.end).is_some() {}
        if let Some((outer, _)) = open.last().copied()
            && let Some(rest) = done[outer].pieces.pop()
        {
            let around = [Piece { end: piece.start, ..rest }, Piece { start: piece.end, ..rest }];
            done[outer].pieces.extend(around);
        }
        open.push((done.len(), piece.end));
        done.push(PlacedSpan { name: span.name, group: span.group, pieces: vec![piece] });
    }
    done.retain_mut(|span| {
        if span.pieces.len() > 1 {
            span.pieces.retain(|piece| piece.end > piece.start);
        }
        !span.pieces.is_empty()
    });
    done
}

/// Intervals without overlap, by thread and time.
fn union(mut pieces: Vec<Piece>) -> Vec<Piece> {
    pieces.sort_by_key(|piece| (piece.thread, piece.start));
    let mut done: Vec<Piece> = Vec::with_capacity(pieces.len());
    for piece in pieces {
        match done.last_mut().filter(|last| last.thread == piece.thread && last.end >= piece.start) {
            Some(last) => last.end = last.end.max(piece.end),
            None => done.push(piece),
        }
    }
    done
}

/// The causes of spans.
#[derive(Clone, Debug, Default)]
pub struct SpanCauses {
    /// The first of the causes of each span, and the end of the last one's.
    firsts: Vec<usize>,
    times: Vec<CauseTime>,
}

impl SpanCauses {
    /// Finds the causes of spans.
    pub fn new(spans: &[PlacedSpan], lives: &Lives) -> Self {
        let mut found = Self { firsts: Vec::with_capacity(spans.len() + 1), times: Vec::new() };
        let mut times: Vec<CauseTime> = Vec::new();
        for span in spans {
            found.firsts.push(found.times.len());
            times.clear();
            span.pieces.iter().for_each(|piece| lives.causes_of(piece.thread, piece.start, piece.end, &mut times));
            times.sort_unstable_by_key(|time| time.cause);
            for time in times.iter().filter(|time| time.ns > 0) {
                let begin = found.firsts[found.firsts.len() - 1];
                match found.times[begin..].last_mut().filter(|last| last.cause == time.cause) {
                    Some(last) => last.ns += time.ns,
                    None => found.times.push(*time),
                }
            }
        }
        found.firsts.push(found.times.len());
        found
    }

    /// From a list of causes for each span, which add up to its length.
    pub fn from_lists(lists: Vec<Vec<CauseTime>>) -> Self {
        let mut found = Self { firsts: vec![0], times: Vec::new() };
        for list in lists {
            found.times.extend(list);
            found.firsts.push(found.times.len());
        }
        found
    }

    /// The causes of a span, one entry each, which add up to its length.
    pub fn get(&self, span: usize) -> &[CauseTime] {
        &self.times[self.firsts[span]..self.firsts[span + 1]]
    }
}

/// The threads or CPUs of spans.
pub fn threads_of(spans: &[PlacedSpan]) -> HashSet<ThreadId> {
    spans.iter().flat_map(|span| &span.pieces).map(|piece| piece.thread).collect()
}

#[cfg(test)]
mod tests {
    use becalm_bundle::ThreadRow;
    use becalm_model::Labels;
    use becalm_model::node::{ClockDoc, CpuDoc};
    use becalm_units::{CpuId, Nanos};

    use super::*;

    fn span(start: i64, end: i64, name: Label, id: Label) -> (ReadSpan, Piece) {
        let read = ReadSpan { tid: Some(1), cpu: None, start, end, name, group: name, id };
        (read, Piece { thread: ThreadId(0), start, end })
    }

    /// A counter of nanoseconds that was 1 at the origin.
    fn since_one() -> ClockMap {
        let clock = ClockDoc { origin_ticks: 1, rate_hz: 1e9, ..ClockDoc::default() };
        ClockMap::new(SpanClock::Counter, &clock).unwrap()
    }

    #[test]
    fn a_span_belongs_to_its_cpu_while_that_was_measured() {
        let cpu = |number, start, duration| CpuDoc {
            start_ns: Nanos::new(start),
            duration_ns: Nanos::new(duration),
            ..CpuDoc::new(CpuId::new(number))
        };
        let subjects = Subjects::cpus(vec![cpu(2, 0, 1_000), cpu(5, 100, 200)], Some(CpuId::new(2)));
        let read = |number: Option<u32>, start: i64, end: i64| {
            let cpu = number.map(CpuId::new);
            ReadSpan { tid: None, cpu, ..span(start + 1, end + 1, Label::EMPTY, Label::EMPTY).0 }
        };
        let spans = [
            read(Some(5), 100, 300),
            read(Some(5), 100, 301),
            read(Some(5), 99, 200),
            read(Some(2), 0, 400),
            read(Some(7), 1, 2),
            read(None, 500, 1_000),
        ];
        let (placed, left_out) = place(&spans, &since_one(), &subjects);
        let found: Vec<_> = placed.iter().map(|span| (span.pieces[0].thread.0, intervals(span))).collect();
        assert_eq!(found, [(0, vec![(0, 400)]), (1, vec![(100, 300)]), (0, vec![(500, 1_000)])]);
        let expected = LeftOutSpans { outside: 2, first_outside: Some(0), strangers: 1, numbers: vec![7] };
        assert_eq!(left_out, expected);
        let mostly = LeftOutSpans { outside: 0, ..left_out };
        let refused = mostly.refuse_many(6, SpanClock::Counter, &subjects).unwrap_err().to_string();
        assert!(refused.contains("1 of 6 spans are on CPUs that were not measured, such as 7"), "{refused}");
        assert!(refused.contains("2,5"), "{refused}");
    }

    #[test]
    fn a_span_belongs_to_the_thread_that_lived_then() {
        let map = since_one();
        // A number that two threads had in turn.
        let row = |thread, start_ns, end_ns| ThreadRow {
            thread,
            tid: 7,
            process: 7,
            parent: -1,
            name: Label::EMPTY,
            command: Label::EMPTY,
            group: Label::EMPTY,
            start_ns,
            end_ns,
            chosen: true,
            kernel: false,
        };
        let rows = [row(0, 0, 300), row(1, 500, 900)];
        let read =
            |start: i64, end: i64| ReadSpan { tid: Some(7), ..span(start + 1, end + 1, Label::EMPTY, Label::EMPTY).0 };
        let spans =
            [read(100, 200), read(600, 700), read(350, 450), read(950, 1_100), ReadSpan { tid: Some(8), ..read(1, 2) }];
        let subjects = Subjects::threads(&rows, (0, 1_000));
        let (placed, left_out) = place(&spans, &map, &subjects);
        let threads: Vec<u32> = placed.iter().map(|span| span.pieces[0].thread.0).collect();
        assert_eq!(threads, [0, 1]);
        let expected = LeftOutSpans { outside: 1, first_outside: Some(950), strangers: 2, numbers: vec![7, 8] };
        assert_eq!(left_out, expected);
        assert!(left_out.refuse_many(300, SpanClock::Counter, &subjects).is_ok());
        let refused = left_out.refuse_many(5, SpanClock::Counter, &subjects).unwrap_err().to_string();
        assert!(refused.contains("2 of 5 spans are of threads that were not observed then, such as 7, 8"), "{refused}");
    }

    fn intervals(span: &PlacedSpan) -> Vec<(i64, i64)> {
        span.pieces.iter().map(|piece| (piece.start, piece.end)).collect()
    }

    #[test]
    fn nested_spans_of_one_name_are_taken_apart() {
        let mut labels = Labels::new();
        let none = labels.intern("");
        let [outer, other] = ["f", "g"].map(|name| labels.intern(name));
        let found = assembled(vec![
            span(0, 100, outer, none),
            span(10, 30, outer, none),
            span(15, 20, outer, none),
            span(50, 60, outer, none),
            // Another name stays whole, and what only overlaps as well.
            span(5, 95, other, none),
            span(90, 120, other, none),
        ]);
        let found: Vec<_> = found.iter().map(intervals).collect();
        let expected = [
            vec![(0, 10), (30, 50), (60, 100)],
            vec![(5, 95)],
            vec![(10, 15), (20, 30)],
            vec![(15, 20)],
            vec![(50, 60)],
            vec![(90, 120)],
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn spans_of_one_request_are_one() {
        let mut labels = Labels::new();
        let none = labels.intern("");
        let [name, id] = ["request", "7"].map(|name| labels.intern(name));
        let mut far = span(20, 60, none, id);
        far.1.thread = ThreadId(1);
        let found = assembled(vec![span(0, 50, name, id), span(10, 20, none, id), span(70, 80, none, id), far]);
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].name, intervals(&found[0])), (name, vec![(0, 50), (70, 80), (20, 60)]));
        assert_eq!(found[0].length(), 100);
    }
}
