//! The measuring loops: fixed work with measured time (FWQ) and fixed time with counted work (FTQ, Sottile and Minnich 2004).
//!
//! Samples are contiguous: each starts at the reading that ended the previous one. The cost of storing a sample is part of the next, so no time is
//! lost.

use std::hint::black_box;

use becalm_linux::clock::Counter;

use crate::work::Work;

/// Receives a loop's samples.
pub trait KeepSample {
    /// A sample: the counter before and after, and the iterations done. Returns whether to continue.
    fn keep(&mut self, before: u64, after: u64, iterations: u64) -> bool;
}

impl<F: FnMut(u64, u64, u64) -> bool> KeepSample for F {
    fn keep(&mut self, before: u64, after: u64, iterations: u64) -> bool {
        self(before, after, iterations)
    }
}

/// When a loop ends, unless its [`KeepSample`] ends it earlier.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stop {
    /// The loop ends after this many samples.
    pub samples: u64,
    /// The loop ends with the first sample that ends at this reading of the counter or later.
    pub deadline: u64,
}

/// Result of a loop, in ticks of the counter.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SamplingResult {
    /// The counter at the start of the first sample.
    pub first: u64,
    /// The counter at the end of the last sample.
    pub last: u64,
    /// The number of samples taken.
    pub samples: u64,
    /// The result of the work; returning it keeps the compiler from removing the work.
    pub result: u64,
}

/// Fixed work: repeats `iterations` from the reading `start` on.
#[inline(never)]
pub fn fixed_work<C: Counter>(
    work: &mut Work,
    iterations: u64,
    start: u64,
    stop: Stop,
    keep: &mut impl KeepSample,
) -> SamplingResult {
    let first = wait::<C>(start);
    let mut sampled = SamplingResult { first, last: first, samples: 0, result: 0 };
    while sampled.samples < stop.samples {
        sampled.result = sampled.result.wrapping_add(black_box(work.run::<C>(iterations)));
        let now = C::read();
        let goes_on = keep.keep(sampled.last, now, iterations);
        sampled.last = now;
        sampled.samples += 1;
        if !goes_on || now >= stop.deadline {
            break;
        }
    }
    sampled
}

/// The quanta of a fixed-time loop.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Quanta {
    /// The length of one, in ticks.
    pub ticks: u64,
    /// Iterations between two reads of the counter.
    pub step: u64,
}

/// Fixed time: does steps of iterations from the reading `start` on, and counts them per quantum.
///
/// Quantum k ends with the first step that ends at or after `first + (k + 1) * ticks`, so the grid does not drift. A detour that covers the ends of
/// several quanta yields one long sample for all of them, and all the lost work is missing from it.
#[inline(never)]
pub fn fixed_time<C: Counter>(
    work: &mut Work,
    quanta: Quanta,
    start: u64,
    stop: Stop,
    keep: &mut impl KeepSample,
) -> SamplingResult {
    let first = wait::<C>(start);
    let mut sampled = SamplingResult { first, last: first, samples: 0, result: 0 };
    let ticks = quanta.ticks.max(1);
    let mut end = first.wrapping_add(ticks);
    let mut iterations = 0;
    while sampled.samples < stop.samples {
        sampled.result = sampled.result.wrapping_add(black_box(work.run::<C>(quanta.step)));
        iterations += quanta.step;
        let now = C::read();
        if now < end {
            continue;
        }
        let goes_on = keep.keep(sampled.last, now, iterations);
        sampled.last = now;
        sampled.samples += 1;
        iterations = 0;
        // To the next future end on the grid.
        end = end.wrapping_add(ticks * (1 + (now - end) / ticks));
        if !goes_on || now >= stop.deadline {
            break;
        }
    }
    sampled
}

fn wait<C: Counter>(start: u64) -> u64 {
    loop {
        let now = C::read();
        if now >= start {
            return now;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::work::Body;
    use becalm_units::CpuId;
    use std::cell::RefCell;
    use std::collections::VecDeque;
    use std::path::Path;

    thread_local! {
        static READINGS: RefCell<VecDeque<u64>> = const { RefCell::new(VecDeque::new()) };
    }

    /// A counter that gives prepared readings.
    struct PreparedCounter;

    impl Counter for PreparedCounter {
        const NAME: &'static str = "prepared";
        fn read() -> u64 {
            READINGS.with_borrow_mut(|readings| readings.pop_front().expect("the loop ends in time"))
        }
    }

    fn sum() -> Work {
        Work::new(Body::Sum, Path::new("/"), CpuId::new(0)).unwrap()
    }

    fn prepare(readings: &[u64]) {
        READINGS.with_borrow_mut(|queue| *queue = readings.iter().copied().collect());
    }

    const NEVER: Stop = Stop { samples: u64::MAX, deadline: u64::MAX };

    #[test]
    fn samples_of_fixed_work_lie_end_to_end() {
        prepare(&[90, 101, 205, 300, 402]);
        let mut kept = Vec::new();
        let mut keep = |before, after, iterations| {
            kept.push((before, after, iterations));
            true
        };
        let stop = Stop { samples: 3, ..NEVER };
        let sampled = fixed_work::<PreparedCounter>(&mut sum(), 4, 100, stop, &mut keep);
        assert_eq!(sampled, SamplingResult { first: 101, last: 402, samples: 3, result: 18 });
        assert_eq!(kept, [(101, 205, 4), (205, 300, 4), (300, 402, 4)]);
    }

    #[test]
    fn it_ends_at_the_deadline_or_when_told() {
        prepare(&[100, 200, 300, 400]);
        let stop = Stop { deadline: 300, ..NEVER };
        let sampled = fixed_work::<PreparedCounter>(&mut sum(), 1, 0, stop, &mut |_, _, _| true);
        assert_eq!((sampled.last, sampled.samples), (300, 2));
        prepare(&[100, 200, 300]);
        let sampled = fixed_work::<PreparedCounter>(&mut sum(), 1, 0, NEVER, &mut |_, _, _| false);
        assert_eq!((sampled.last, sampled.samples), (200, 1));
        prepare(&[100]);
        let stop = Stop { samples: 0, ..NEVER };
        assert_eq!(fixed_work::<PreparedCounter>(&mut sum(), 1, 0, stop, &mut |_, _, _| true).samples, 0);
    }

    #[test]
    fn quanta_stay_on_their_grid() {
        // Quanta of 100 from 1000. A detour over the ends of two more delays the end of the second.
        prepare(&[1000, 1040, 1080, 1120, 1160, 1430, 1470, 1510]);
        let mut kept = Vec::new();
        let mut keep = |before, after, iterations| {
            kept.push((before, after, iterations));
            true
        };
        let quanta = Quanta { ticks: 100, step: 7 };
        let stop = Stop { samples: 3, ..NEVER };
        let sampled = fixed_time::<PreparedCounter>(&mut sum(), quanta, 0, stop, &mut keep);
        assert_eq!(kept, [(1000, 1120, 21), (1120, 1430, 14), (1430, 1510, 14)]);
        assert_eq!((sampled.first, sampled.last, sampled.samples), (1000, 1510, 3));
    }
}
