//! Noise traces: the detours of one CPU over a stretch of time, closed to a circle.
//!
//! A rank that replays a trace starts at some offset and goes round. The circle is validated on construction, so everything else can rely on it. The
//! source of the detours (a bundle, a file, a formula) does not matter here.

use std::ops::Range;

use becalm_units::Nanos;

/// The longest circle, 2^60 ns (36 years): positions and a lap can be added without a check.
pub const LENGTH_LIMIT: Nanos = Nanos::new(1 << 60);

/// Why detours are not a valid noise trace. Indices count from 0 in the order given.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TraceError {
    /// An impossible length of a circle.
    #[error("a noise trace cannot be {0} long: it must be longer than 0 and at most {LENGTH_LIMIT}")]
    Length(Nanos),
    /// A detour that starts outside.
    #[error("detour {index} starts at {start}, outside the trace, which is {length} long")]
    Outside {
        /// The number of the detour, from 0.
        index: usize,
        /// Its start, from the start of the trace.
        start: Nanos,
        /// The length of the trace.
        length: Nanos,
    },
    /// A detour of negative duration.
    #[error("detour {index} at {start} has the negative duration {duration}")]
    Negative {
        /// The number of the detour, from 0.
        index: usize,
        /// Its start, from the start of the trace.
        start: Nanos,
        /// Its given duration.
        duration: Nanos,
    },
    /// A detour that starts before the previous one.
    #[error("detour {index} starts at {start}, before the start of the one in front of it, at {previous}")]
    Unordered {
        /// The number of the detour, from 0.
        index: usize,
        /// Its start, from the start of the trace.
        start: Nanos,
        /// The start of the previous one.
        previous: Nanos,
    },
    /// A detour that starts within the previous one.
    #[error("detour {index} starts at {start}, before the end of detour {earlier}, at {end}{}", if *wrapped { " of the lap before" } else { "" })]
    Overlap {
        /// The number of the detour, from 0.
        index: usize,
        /// Its start, from the start of the trace.
        start: Nanos,
        /// The number of the one that lasts too long.
        earlier: usize,
        /// Its end, within the trace.
        end: Nanos,
        /// Whether that one extends over the end of the trace.
        wrapped: bool,
    },
    /// The detours take all of the trace's length, or more, and leave no time for work.
    #[error("the detours take {0} of a trace of {1}: under 100 % noise no work is ever done")]
    Full(Nanos, Nanos),
    /// The detour with this number ends too late.
    #[error("detour {0} ends later than times can hold")]
    Overflow(usize),
    /// No trace at all.
    #[error("there is no noise trace: no CPU was recorded")]
    NoTraces,
    /// CPUs of one node with circles of different lengths.
    #[error("the CPUs of node {node} have traces of {first} and {other}; recorded together they have one length")]
    Lengths {
        /// The name of the node.
        node: String,
        /// The length of its first CPU's trace.
        first: Nanos,
        /// The length of another CPU's trace.
        other: Nanos,
    },
}

becalm_units::fault::faultless!(TraceError);

/// The detours of one CPU on a circle: in order, not touching, and together shorter than the circle.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NoiseTrace {
    length: i64,
    noise: i64,
    starts: Vec<i64>,
    durations: Vec<i64>,
    /// The noise of a lap before each detour.
    before: Vec<i64>,
}

/// The detours that a rank meets that starts to work at a position on a circle. Detours are numbered through the laps: number `len()` is the first
/// one again, a lap later, and number -1 the last one, a lap before.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct MetDetours {
    pub first: i64,
    /// The first one after it that is not met.
    pub after: i64,
    /// The part of the first that was over at the start.
    pub into: i64,
    /// The time of those met from the start on, in nanoseconds.
    pub delay: i64,
}

/// The number of detours checked one by one before the search for the last one met takes longer steps.
const LOOKED_AT: usize = 8;

impl NoiseTrace {
    /// A circle of the given length with detours `(start, duration)` in rising order.
    ///
    /// A detour may start exactly where the one before ends (they are merged), and the last may extend over the end, into the time before the first.
    /// Detours of no duration are dropped anywhere.
    pub fn new<I>(length: Nanos, detours: I) -> Result<Self, TraceError>
    where
        I: IntoIterator<Item = (Nanos, Nanos)>,
    {
        if length <= Nanos::ZERO || length > LENGTH_LIMIT {
            return Err(TraceError::Length(length));
        }
        let mut trace =
            Self { length: length.get(), noise: 0, starts: Vec::new(), durations: Vec::new(), before: Vec::new() };
        let mut previous = Nanos::ZERO;
        let mut end = Nanos::ZERO;
        let mut last = 0;
        let mut first = 0;
        let mut noise = 0_i64;
        for (index, (start, duration)) in detours.into_iter().enumerate() {
            if start < Nanos::ZERO || start >= length {
                return Err(TraceError::Outside { index, start, length });
            }
            if duration < Nanos::ZERO {
                return Err(TraceError::Negative { index, start, duration });
            }
            if start < previous {
                return Err(TraceError::Unordered { index, start, previous });
            }
            previous = start;
            if duration == Nanos::ZERO {
                continue;
            }
            if start < end {
                return Err(TraceError::Overlap { index, start, earlier: last, end, wrapped: false });
            }
            let touching = !trace.starts.is_empty() && start == end;
            end = start.checked_add(duration).ok_or(TraceError::Overflow(index))?;
            noise = noise.checked_add(duration.get()).ok_or(TraceError::Overflow(index))?;
            last = index;
            if touching {
                *trace.durations.last_mut().expect("there is one that ends here") += duration.get();
            } else {
                if trace.starts.is_empty() {
                    first = index;
                }
                trace.starts.push(start.get());
                trace.durations.push(duration.get());
            }
        }
        if noise >= length.get() {
            return Err(TraceError::Full(Nanos::new(noise), length));
        }
        let over = end.get() - length.get();
        if over >= 0 && !trace.starts.is_empty() {
            let start = trace.starts[0];
            if over > start {
                return Err(TraceError::Overlap {
                    index: first,
                    start: Nanos::new(start),
                    earlier: last,
                    end: Nanos::new(over),
                    wrapped: true,
                });
            }
            // A last detour that reaches the first is merged with it. One that ends exactly with the circle stays.
            if over == start && trace.starts.len() > 1 {
                let duration = trace.durations.remove(0);
                trace.starts.remove(0);
                *trace.durations.last_mut().expect("a second detour") += duration;
            }
        }
        trace.starts.shrink_to_fit();
        trace.durations.shrink_to_fit();
        trace.before.reserve_exact(trace.durations.len());
        let mut before = 0;
        for duration in &trace.durations {
            trace.before.push(before);
            before += duration;
        }
        trace.noise = noise;
        Ok(trace)
    }

    /// A circle without detours.
    pub fn silent(length: Nanos) -> Result<Self, TraceError> {
        Self::new(length, [])
    }

    /// The detours of a recording that lasted from `begin` for `length`: parts outside are cut off, so a detour under way at either end counts with
    /// the part inside.
    pub fn from_window<I>(begin: Nanos, length: Nanos, detours: I) -> Result<Self, TraceError>
    where
        I: IntoIterator<Item = (Nanos, Nanos)>,
    {
        if length <= Nanos::ZERO || length > LENGTH_LIMIT {
            return Err(TraceError::Length(length));
        }
        let mut bad = None;
        let cut = detours.into_iter().enumerate().map_while(|(index, (start, duration))| {
            let end = start.checked_add(duration).and_then(|end| end.checked_sub(begin));
            let start = start.checked_sub(begin);
            let (Some(start), Some(end)) = (start, end) else {
                bad = Some(TraceError::Overflow(index));
                return None;
            };
            if duration < Nanos::ZERO {
                bad = Some(TraceError::Negative { index, start: start + begin, duration });
                return None;
            }
            let (from, to) = (start.max(Nanos::ZERO), end.min(length));
            // Nothing is left outside of the window; the order is still checked, at the nearer edge.
            let last = length - Nanos::new(1);
            Some((from.min(last), if to > from { to - from } else { Nanos::ZERO }))
        });
        let trace = Self::new(length, cut);
        bad.map_or(trace, Err)
    }

    /// A part of the circle, from a position on.
    pub(super) fn cut(&self, from: Nanos, length: Nanos) -> Result<Self, TraceError> {
        // A detour over the end of the circle continues at its start.
        let over = self.detours().last().map(|(start, duration)| start + duration - self.length());
        let first = over.filter(|over| *over > Nanos::ZERO).map(|over| (Nanos::ZERO, over));
        Self::from_window(from, length, first.into_iter().chain(self.detours()))
    }

    /// The length of the circle.
    pub fn length(&self) -> Nanos {
        Nanos::new(self.length)
    }

    /// The number of detours; touching ones count as one.
    pub fn len(&self) -> usize {
        self.starts.len()
    }

    /// Whether there are no detours.
    pub fn is_empty(&self) -> bool {
        self.starts.is_empty()
    }

    /// The time that the detours take in one lap.
    pub fn noise(&self) -> Nanos {
        Nanos::new(self.noise)
    }

    /// The share of time that they take, between 0 and 1.
    pub fn noise_ratio(&self) -> f64 {
        self.noise as f64 / self.length as f64
    }

    /// The detours `(start, duration)` in rising order.
    pub fn detours(&self) -> impl ExactSizeIterator<Item = (Nanos, Nanos)> + '_ {
        self.starts.iter().zip(&self.durations).map(|(start, duration)| (Nanos::new(*start), Nanos::new(*duration)))
    }

    pub(crate) fn starts_ns(&self) -> &[i64] {
        &self.starts
    }

    pub(crate) fn durations_ns(&self) -> &[i64] {
        &self.durations
    }

    pub(crate) fn length_ns(&self) -> i64 {
        self.length
    }

    /// Work done in one lap.
    pub(crate) fn work_ns(&self) -> i64 {
        self.length - self.noise
    }

    /// The first detour, in laps of `len()`, that ends after the position on the circle. One that extends over the end of the lap before counts as
    /// number -1.
    pub(crate) fn first_ending_after(&self, position: i64) -> i64 {
        self.first_ending_near(position, 0..self.starts.len())
    }

    /// The same, given that no detour before these starts after the position, and all after them do.
    fn first_ending_near(&self, position: i64, near: Range<usize>) -> i64 {
        let Some(last) = self.starts.len().checked_sub(1) else { return 0 };
        if self.starts[last] + self.durations[last] - self.length > position {
            return -1;
        }
        // Ends rise with starts, because detours do not overlap.
        let index = near.start + self.starts[near].partition_point(|start| *start <= position);
        match index.checked_sub(1) {
            Some(before) if self.starts[before] + self.durations[before] > position => before as i64,
            _ => index as i64,
        }
    }

    /// The detours that a rank meets that starts at a position on the circle and has this much work to do, at least 1 ns and at most a lap's. Takes
    /// time logarithmic in the number of detours.
    pub(crate) fn meet(&self, position: i64, work: i64) -> MetDetours {
        self.meet_from(position, 0..self.starts.len(), work)
    }

    /// The same, given that no detour before these starts after the position, and all after them do.
    pub(crate) fn meet_from(&self, position: i64, near: Range<usize>, work: i64) -> MetDetours {
        let count = self.starts.len() as i64;
        if count == 0 {
            return MetDetours { first: 0, after: 0, into: 0, delay: 0 };
        }
        let first = self.first_ending_near(position, near);
        let (lap, slot) = (first.div_euclid(count), first.rem_euclid(count) as usize);
        let start = self.starts[slot] + lap * self.length;
        let into = (position - start).max(0);
        // On the axis of work a detour is a point; the rank is at or before that of its first one.
        let point = start - self.before[slot] - lap * self.noise;
        let goal = point - (start - position).max(0) + work;
        let (mut next, mut next_lap) = (self.first_beyond(slot, goal - lap * self.work_ns()), lap);
        if next == self.starts.len() {
            next_lap = lap + 1;
            next = self.first_beyond(0, goal - next_lap * self.work_ns());
        }
        let noise_before =
            |slot: usize, lap: i64| self.before.get(slot).copied().unwrap_or(self.noise) + lap * self.noise;
        let delay = noise_before(next, next_lap) - noise_before(slot, lap) - into;
        MetDetours { first, after: next_lap * count + next as i64, into, delay }
    }

    /// The first detour of a lap, from `from` on, that ends after the position; `len()` if none does.
    pub(crate) fn first_ending_from(&self, from: usize, position: i64) -> usize {
        // Of detours that do not overlap, all but the last that has started are over.
        let begun = from + self.starts[from..].partition_point(|start| *start <= position);
        match begun.checked_sub(1).filter(|last| *last >= from) {
            Some(last) if self.starts[last] + self.durations[last] > position => last,
            _ => begun,
        }
    }

    /// The noise of a lap before each detour.
    pub(crate) fn before_ns(&self) -> &[i64] {
        &self.before
    }

    /// The first detour of a lap, from `from` on, that comes after at least this much of the lap's work.
    pub(crate) fn first_beyond(&self, from: usize, work: i64) -> usize {
        let before = |slot: usize| self.starts[slot] - self.before[slot] < work;
        let count = self.starts.len();
        let near = (from + LOOKED_AT).min(count);
        if let Some(found) = (from..near).find(|slot| !before(*slot)) {
            return found;
        }
        let (mut low, mut step) = (near, LOOKED_AT);
        while low + step < count && before(low + step) {
            low += step + 1;
            step *= 2;
        }
        let (mut low, mut high) = (low, (low + step).min(count));
        while low < high {
            let middle = low + (high - low) / 2;
            if before(middle) { low = middle + 1 } else { high = middle }
        }
        low
    }

    /// The time when a rank at the position, anywhere on the unrolled circle, has done the work: the first time when W(t), the time outside of
    /// detours, has grown by it. No work takes no time, even within a detour.
    ///
    /// `None` if the time does not fit.
    pub fn finish(&self, position: Nanos, work: Nanos) -> Option<Nanos> {
        if work <= Nanos::ZERO || self.is_empty() {
            return position.checked_add(work.max(Nanos::ZERO));
        }
        // Whole laps first, so at least 1 ns and at most a lap of work is left.
        let laps = (work.get() - 1) / self.work_ns();
        let mut left = work.get() - laps * self.work_ns();
        let base = i128::from(position.get().div_euclid(self.length)) + i128::from(laps);
        let mut now = position.get().rem_euclid(self.length);
        let mut index = self.first_ending_after(now);
        let count = self.starts.len() as i64;
        loop {
            let (lap, slot) = (index.div_euclid(count), index.rem_euclid(count) as usize);
            let start = self.starts[slot] + lap * self.length;
            if start - now >= left {
                let end = base * i128::from(self.length) + i128::from(now + left);
                return i64::try_from(end).ok().map(Nanos::new);
            }
            left -= (start - now).max(0);
            now = start + self.durations[slot];
            index += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn trace(length: i64, detours: &[(i64, i64)]) -> Result<NoiseTrace, TraceError> {
        NoiseTrace::new(Nanos::new(length), detours.iter().map(|(s, d)| (Nanos::new(*s), Nanos::new(*d))))
    }

    #[test]
    fn joins_what_touches_and_wraps_what_goes_over_the_end() {
        assert_eq!(trace(100, &[(10, 5), (15, 5), (30, 0)]).unwrap(), trace(100, &[(10, 10)]).unwrap());
        assert_eq!(trace(100, &[(0, 5), (90, 10)]).unwrap(), trace(100, &[(90, 15)]).unwrap());
        assert_eq!(trace(100, &[(5, 5), (90, 15)]).unwrap(), trace(100, &[(90, 20)]).unwrap());
        assert_eq!(trace(100, &[(90, 99)]).unwrap().noise(), Nanos::new(99));
    }

    #[test]
    fn refuses_what_is_no_trace_and_says_where() {
        for (length, detours, why) in [
            (0, vec![], "cannot be 0ns long"),
            (i64::MAX, vec![], "cannot be"),
            (100, vec![(100, 1)], "detour 0 starts at 100ns, outside"),
            (100, vec![(-1, 1)], "detour 0 starts at -1ns, outside"),
            (100, vec![(1, 1), (5, -1)], "detour 1 at 5ns has the negative duration -1ns"),
            (100, vec![(9, 1), (5, 1)], "detour 1 starts at 5ns, before the start of the one in front of it, at 9ns"),
            (100, vec![(5, 5), (9, 1)], "detour 1 starts at 9ns, before the end of detour 0, at 10ns"),
            (
                100,
                vec![(5, 5), (90, 16)],
                "detour 0 starts at 5ns, before the end of detour 1, at 6ns of the lap before",
            ),
            (100, vec![(0, 50), (50, 50)], "100 % noise"),
            (100, vec![(7, 100)], "100 % noise"),
            (100, vec![(7, i64::MAX)], "ends later than times can hold"),
        ] {
            let error = trace(length, &detours).unwrap_err().to_string();
            assert!(error.contains(why), "{detours:?}: {error}");
        }
    }

    #[test]
    fn a_window_cuts_what_lies_outside() {
        let rows = [(0, 50), (95, 10), (150, 20), (195, 30), (300, 5)].map(|(s, d)| (Nanos::new(s), Nanos::new(d)));
        let cut = NoiseTrace::from_window(Nanos::new(100), Nanos::new(100), rows).unwrap();
        assert_eq!(cut, trace(100, &[(0, 5), (50, 20), (95, 5)]).unwrap());
        let far = [(Nanos::new(i64::MAX - 1), Nanos::new(5))];
        assert!(NoiseTrace::from_window(Nanos::ZERO, Nanos::new(5), far).is_err());
    }

    /// W(t) by counting nanoseconds.
    fn finish_by_counting(trace: &NoiseTrace, position: i64, mut work: i64) -> i64 {
        let mut now = position;
        while work > 0 {
            let at = now.rem_euclid(trace.length);
            let noisy =
                trace.detours().any(|(start, duration)| (at - start.get()).rem_euclid(trace.length) < duration.get());
            work -= i64::from(!noisy);
            now += 1;
        }
        now
    }

    #[test]
    fn half_noise_doubles_the_work() {
        let half = trace(10, &[(0, 5)]).unwrap();
        let done = half.finish(Nanos::ZERO, Nanos::from_millis(100)).unwrap();
        assert_eq!(done, Nanos::from_millis(200));
        assert_eq!(half.finish(Nanos::new(2), Nanos::ZERO), Some(Nanos::new(2)));
        assert_eq!(half.finish(Nanos::ZERO, Nanos::MAX), None);
    }

    proptest! {
        #[test]
        fn finish_counts_the_nanoseconds_outside_of_detours(
            noisy in proptest::collection::vec(any::<bool>(), 2..40), position in -50_i64..90, work in 0_i64..120,
        ) {
            let detours: Vec<(i64, i64)> =
                noisy.iter().enumerate().filter(|(_, on)| **on).map(|(at, _)| (at as i64, 1)).collect();
            prop_assume!(detours.len() < noisy.len());
            let trace = trace(noisy.len() as i64, &detours).unwrap();
            prop_assert_eq!(
                trace.finish(Nanos::new(position), Nanos::new(work)),
                Some(Nanos::new(finish_by_counting(&trace, position, work)))
            );
        }

        #[test]
        fn construction_never_panics(length: i64, detours: Vec<(i64, i64)>) {
            let _ = trace(length, &detours);
            let rows = detours.iter().map(|(s, d)| (Nanos::new(*s), Nanos::new(*d)));
            let _ = NoiseTrace::from_window(Nanos::new(length / 2), Nanos::new(length), rows);
        }
    }
}
