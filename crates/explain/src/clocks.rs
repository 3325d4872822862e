//! Clocks: from the times of a file of spans to those of a recording.
//!
//! A recording has readings of the counter and of the kernel's clocks at one instant each, about one per second. In between, both are taken to advance
//! evenly. The error of a conversion is at most the width of a reading, plus by how much more or less the two clocks diverged until the next reading
//! than around it.

use becalm_model::node::{ClockDoc, ClockPair};
use becalm_observe::document::ObservedDoc;
use becalm_units::fault::{self, UsageError, Wording};
use becalm_units::{Named, Nanos};
use serde::{Deserialize, Serialize};

use crate::spans::{ReadSpan, Spans};

/// At least this share of the spans must be on threads and within the time of the recording.
pub const LEAST_COVERED: f64 = 0.99;

/// A clock that puts this share of the spans into the recording is theirs.
const MOST_OF_THEM: f64 = 0.5;

/// The clock of the times in a file of spans.
#[derive(
    Clone,
    Copy,
    PartialEq,
    Eq,
    Debug,
    Serialize,
    Deserialize,
    strum::IntoStaticStr,
    strum::VariantArray,
    clap::ValueEnum,
)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum SpanClock {
    /// `CLOCK_MONOTONIC`, in nanoseconds: Python's `time.monotonic_ns`, Java's `System.nanoTime`, C++'s `steady_clock`
    Monotonic,
    /// `CLOCK_REALTIME`, in nanoseconds since 1970
    Realtime,
    /// `CLOCK_BOOTTIME`, in nanoseconds
    Boottime,
    /// Ticks of the counter of the recording, such as the TSC
    Counter,
}

impl SpanClock {
    /// The clock with this name. Fails if there is none.
    pub fn parse(name: &str) -> Result<Self, String> {
        let known = Self::ALL.iter().copied().find(|clock| clock.name() == name);
        known.ok_or_else(|| format!("'{name}' is no clock: monotonic, realtime, boottime and counter are"))
    }

    fn reading(self, pair: &ClockPair) -> Option<i64> {
        let value = match self {
            Self::Monotonic => pair.monotonic_ns,
            Self::Realtime => pair.realtime_ns,
            Self::Boottime => pair.boottime_ns,
            Self::Counter => return None,
        };
        i64::try_from(value).ok()
    }
}

/// A clock, and how its times become times of the recording.
#[derive(Clone, Debug)]
pub struct ClockMap {
    clock: SpanClock,
    /// The clock's time, and that of the recording, both rising.
    knots: Vec<(i64, i64)>,
    /// The nanoseconds per unit of the clock outside of these.
    slope: f64,
    /// The largest error of a conversion.
    error: Nanos,
}

impl ClockMap {
    /// The map of a clock for a recording; `None` if the recording has no readings of it.
    pub fn new(clock: SpanClock, doc: &ClockDoc) -> Option<Self> {
        if clock == SpanClock::Counter {
            return Self::of_counter(doc);
        }
        let mut knots: Vec<(i64, i64)> = Vec::new();
        let mut error = Nanos::ZERO;
        // By how much the clocks diverged between readings.
        let mut divergences: Vec<i64> = Vec::new();
        for pair in &doc.pairs {
            let (from, to) = (clock.reading(pair)?, pair.at_ns.get());
            error = error.max(pair.width_ns);
            if let Some((last_from, last_to)) = knots.last().copied() {
                if from <= last_from || to <= last_to {
                    // The wall clock was set back: times in between are ambiguous.
                    error = error.max(Nanos::new((last_from - from).max(last_to - to)));
                    continue;
                }
                divergences.push((from - last_from) - (to - last_to));
            }
            knots.push((from, to));
        }
        // A steady divergence does no harm; an uneven one may have come at any instant between two readings.
        let uneven = (0..divergences.len()).map(|at| {
            let neighbors = [at.checked_sub(1), Some(at + 1)];
            let known = neighbors.into_iter().flatten().filter_map(|other| divergences.get(other));
            known.map(|other| (divergences[at] - other).abs()).min().unwrap_or(divergences[at].abs())
        });
        error += Nanos::new(uneven.max().unwrap_or(0));
        (!knots.is_empty()).then_some(Self { clock, knots, slope: 1.0, error })
    }

    /// `None` if the counter's value at the origin is not known.
    fn of_counter(doc: &ClockDoc) -> Option<Self> {
        let origin = i64::try_from(doc.origin_ticks).ok().filter(|origin| *origin > 0)?;
        let slope = 1e9 / doc.rate_hz;
        let map = Self { clock: SpanClock::Counter, knots: vec![(origin, 0)], slope, error: Nanos::ZERO };
        (slope.is_finite() && slope > 0.0).then_some(map)
    }

    /// The clock.
    pub const fn clock(&self) -> SpanClock {
        self.clock
    }

    /// The largest error of a conversion.
    pub const fn error(&self) -> Nanos {
        self.error
    }

    /// The time of the recording, in nanoseconds since its origin.
    pub fn convert(&self, time: i64) -> i64 {
        let next = self.knots.partition_point(|(from, _)| *from <= time);
        let (Some(before), Some(after)) = (next.checked_sub(1).map(|last| self.knots[last]), self.knots.get(next))
        else {
            let (from, to) = self.knots[if next == 0 { 0 } else { next - 1 }];
            let ticks = time.saturating_sub(from);
            let length = if self.slope == 1.0 { ticks } else { (ticks as f64 * self.slope) as i64 };
            return to.saturating_add(length);
        };
        let (length, whole) = (i128::from(time - before.0), i128::from(after.0 - before.0));
        before.1 + (length * i128::from(after.1 - before.1) / whole) as i64
    }

    /// The share of spans between the start and the end of a recording.
    fn covered(&self, spans: &[ReadSpan], (start, end): (i64, i64)) -> f64 {
        let (start, end) = (start - self.error.get(), end + self.error.get());
        let is_inside = |span: &&ReadSpan| self.convert(span.start) >= start && self.convert(span.end) <= end;
        spans.iter().filter(is_inside).count() as f64 / spans.len().max(1) as f64
    }
}

/// The start and the end of a recording's books.
pub fn span_of(doc: &ObservedDoc) -> (i64, i64) {
    (doc.start_ns.get(), doc.start_ns.get().saturating_add(doc.duration_ns.get()))
}

/// The clock of a file's spans, and whether it was found out: the requested one, that of the format, or the first that puts the spans into the
/// recording, which is between `books`. Fails if the recording does not have the clock, or none puts them there.
pub fn choose(
    wanted: Option<SpanClock>,
    spans: &Spans,
    doc: &ClockDoc,
    books: (i64, i64),
) -> fault::Result<(ClockMap, bool)> {
    if let Some(clock) = wanted.or(spans.clock) {
        let map = ClockMap::new(clock, doc);
        let map = map.ok_or_else(|| {
            UsageError::new(format!(
                "the recording has no readings of the clock {}; write spans with another clock, or record again",
                clock.name()
            ))
        })?;
        return Ok((map, false));
    }
    let maps: Vec<ClockMap> = SpanClock::ALL.iter().filter_map(|clock| ClockMap::new(*clock, doc)).collect();
    let shares: Vec<f64> = maps.iter().map(|map| map.covered(&spans.all, books)).collect();
    let first_best = (0..maps.len()).rev().max_by(|one, other| shares[*one].total_cmp(&shares[*other]));
    // The others of a clock that fits most of the spans are counted as outside of the recording.
    if let Some(best) = first_best.filter(|best| shares[*best] >= MOST_OF_THEM) {
        return Ok((maps[best].clone(), true));
    }
    if maps.is_empty() {
        let text = "the recording has no readings of any clock, so no times can be compared with it; record again";
        return Err(UsageError::new(text).into());
    }
    let first = spans.all.iter().map(|span| span.start).min().unwrap_or_default();
    let (start, end) = books;
    let places: Vec<String> = maps
        .iter()
        .map(|map| format!("by {} they start {}", map.clock.name(), relative(map.convert(first).saturating_sub(start))))
        .collect();
    let text = Wording::new(
        "no clock puts the spans into the recording, which took {}: {}; give the clock with {clock}, or spans of this recording",
    );
    Err(UsageError::new(text.with(Nanos::new(end - start)).with(places.join(", "))).into())
}

/// A time relative to the start of the recording, in words.
pub fn relative(ns: i64) -> String {
    let side = if ns < 0 { "before" } else { "after" };
    format!("{} {side} its start", Nanos::new(ns.saturating_abs()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair(at: i64, monotonic: u64, realtime: u64) -> ClockPair {
        ClockPair {
            at_ns: Nanos::new(at),
            monotonic_ns: monotonic,
            realtime_ns: realtime,
            boottime_ns: monotonic + 7,
            width_ns: Nanos::new(50),
        }
    }

    fn doc(pairs: Vec<ClockPair>) -> ClockDoc {
        ClockDoc { origin_ticks: 1_000, rate_hz: 2e9, pairs, ..ClockDoc::default() }
    }

    fn map(clock: SpanClock, pairs: Vec<ClockPair>) -> ClockMap {
        ClockMap::new(clock, &doc(pairs)).unwrap()
    }

    const SECOND: i64 = 1_000_000_000;
    const BOOKS: (i64, i64) = (0, 2 * SECOND);

    #[test]
    fn times_between_two_readings_are_interpolated() {
        let pairs = vec![pair(0, 5_000, 1 << 60), pair(SECOND, 1_000_005_200, (1 << 60) + 1_000_000_000)];
        let monotonic = map(SpanClock::Monotonic, pairs.clone());
        assert_eq!(monotonic.convert(5_000), 0);
        assert_eq!(monotonic.convert(1_000_005_200), SECOND);
        // 200 ns of divergence are spread evenly; half of the second has half of it.
        assert_eq!(monotonic.convert(500_005_100), SECOND / 2);
        assert_eq!(monotonic.convert(4_000), -1_000);
        assert_eq!(monotonic.convert(1_000_006_200), SECOND + 1_000);
        assert_eq!(monotonic.error(), Nanos::new(250));
        assert_eq!(map(SpanClock::Realtime, pairs.clone()).error(), Nanos::new(50));
        assert_eq!(map(SpanClock::Boottime, pairs.clone()).convert(5_007), 0);
        let counter = map(SpanClock::Counter, pairs);
        assert_eq!((counter.convert(1_000), counter.convert(3_000)), (0, 1_000));
    }

    #[test]
    fn a_wall_clock_that_was_set_widens_the_error() {
        let pairs = vec![pair(0, 0, 10 * SECOND as u64), pair(SECOND, SECOND as u64, 9 * SECOND as u64)];
        assert!(map(SpanClock::Realtime, pairs).error() >= Nanos::from_secs(1));
        let pairs = vec![pair(0, 0, 10 * SECOND as u64), pair(SECOND, SECOND as u64, 14 * SECOND as u64)];
        assert!(map(SpanClock::Realtime, pairs).error() >= Nanos::from_secs(3));
    }

    #[test]
    fn the_clock_is_found_by_where_it_puts_the_spans() {
        let doc = doc(vec![pair(0, 500 * SECOND as u64, 1 << 60)]);
        let spans = |start: i64| {
            let (name, group, id) = Default::default();
            let span = ReadSpan { tid: Some(1), cpu: None, start, end: start + 10, name, group, id };
            Spans { all: vec![span; 100], ..Spans::default() }
        };
        let (found, was_guessed) = choose(None, &spans((1 << 60) + SECOND), &doc, BOOKS).unwrap();
        assert_eq!((found.clock(), was_guessed), (SpanClock::Realtime, true));
        assert_eq!(choose(None, &spans(501 * SECOND), &doc, BOOKS).unwrap().0.clock(), SpanClock::Monotonic);
        let error = choose(None, &spans(400 * SECOND), &doc, BOOKS).unwrap_err().to_string();
        assert!(error.contains("by monotonic they start 100s before its start"), "{error}");
        let (given, was_guessed) = choose(Some(SpanClock::Boottime), &spans(0), &doc, BOOKS).unwrap();
        assert_eq!((given.clock(), was_guessed), (SpanClock::Boottime, false));
        // Recordings may lack the readings, and the counter's value at their origin.
        let unread = ClockDoc { origin_ticks: 0, pairs: Vec::new(), ..doc };
        for (clock, why) in [(Some(SpanClock::Monotonic), "of the clock monotonic"), (None, "of any clock")] {
            let error = choose(clock, &spans(0), &unread, BOOKS).unwrap_err().to_string();
            assert!(error.contains(why), "{error}");
        }
    }
}
