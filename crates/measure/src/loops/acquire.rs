//! The acquisition loop: reads the counter as fast as possible and keeps every step that reaches the threshold
//! (Beckman et al. 2007, section 2).

use becalm_linux::clock::Counter;
use becalm_linux::sched;
use becalm_units::{CpuId, Ticks};

use super::ring::Ring;

/// What a loop says of itself at its end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LoopTally {
    /// The counter at the loop's first reading.
    pub first: Ticks,
    /// The last reading. `last - first` is the sum of all steps: `below + kept`.
    pub last: Ticks,
    /// The number of steps, one for each reading but the first.
    pub iterations: u64,
    /// The length of the shortest step.
    pub shortest: Ticks,
    /// The sum of the steps below the threshold.
    pub below: Ticks,
    /// The sum of the steps that were kept.
    pub kept: Ticks,
    /// The number of steps that were kept.
    pub kept_steps: u64,
    /// How often the counter ran backwards. Such a step is part of `below`, which makes it smaller.
    pub backwards: u64,
    /// What ended the loop.
    pub end: End,
}

/// What ended a loop.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum End {
    /// The deadline was reached, or the collector asked for it.
    Deadline,
    /// The ring was full. The step that did not fit is not part of the tally.
    Full,
    /// The kernel took the thread off its CPU, which went offline or left the cgroup's cpuset.
    Moved,
}

/// How many steps lie between two messages of progress to the collector; a power of two.
const PROGRESS_STEPS: u64 = 1024;

/// Runs the loop on the current CPU from the reading `start` until the ring's deadline.
///
/// Nothing in here allocates, locks or calls the kernel. What storing a step costs is part of
/// the step after it, since that one begins at the reading that ended the stored one: no time vanishes.
#[inline(never)]
pub fn acquire<C: Counter>(ring: &Ring, cpu: CpuId, start: Ticks, threshold: Ticks) -> LoopTally {
    let (start, threshold) = (start.get(), threshold.get());
    let mut previous = C::read();
    while previous < start {
        previous = C::read();
    }
    ring.set_began(Ticks::new(previous));
    let mut tally = LoopTally {
        first: Ticks::new(previous),
        last: Ticks::new(previous),
        iterations: 0,
        shortest: Ticks::new(u64::MAX),
        below: Ticks::new(0),
        kept: Ticks::new(0),
        kept_steps: 0,
        backwards: 0,
        end: End::Deadline,
    };
    // Locals, so that they live in registers.
    let (mut iterations, mut shortest, mut below) = (0_u64, u64::MAX, 0_u64);
    loop {
        let now = C::read();
        let step = now.wrapping_sub(previous);
        if step >= threshold {
            if let Some(end) = keep(ring, cpu, previous, now, &mut tally) {
                tally.end = end;
                if end != End::Full {
                    iterations += 1;
                    previous = now;
                }
                break;
            }
            if (step as i64) < 0 {
                below = below.wrapping_add(step);
            }
        } else {
            below = below.wrapping_add(step);
            shortest = shortest.min(step);
        }
        iterations += 1;
        previous = now;
        if iterations % PROGRESS_STEPS == 0 {
            ring.set_progress(Ticks::new(now));
        }
        if now >= ring.deadline().get() {
            break;
        }
    }
    ring.set_progress(Ticks::new(previous));
    tally.last = Ticks::new(previous);
    tally.iterations = iterations;
    tally.shortest = Ticks::new(shortest);
    tally.below = Ticks::new(below);
    tally
}

/// Stores a step; tells whether the loop must end. Apart from the loop, which stays small enough for the processor to
/// predict whole.
#[cold]
#[inline(never)]
fn keep(ring: &Ring, cpu: CpuId, before: u64, after: u64, tally: &mut LoopTally) -> Option<End> {
    let step = after.wrapping_sub(before);
    if (step as i64) < 0 {
        tally.backwards += 1;
        return None;
    }
    if !ring.push(Ticks::new(before), Ticks::new(after)) {
        return Some(End::Full);
    }
    tally.kept = Ticks::new(tally.kept.get() + step);
    tally.kept_steps += 1;
    // Only a thread that lost the CPU can have been moved, and that takes a step of some length.
    match sched::current_cpu() {
        Some(now) if now != cpu => Some(End::Moved),
        _ => None,
    }
}

/// The loop with which [`acquire`] is compared: it only reads the counter, and sorts the steps into buckets of one tick
/// (the last one takes all longer ones).
#[inline(never)]
pub fn only_read<C: Counter>(steps: u64, buckets: &mut [u32]) -> u64 {
    let longest = buckets.len() - 1;
    let first = C::read();
    let mut previous = first;
    for _ in 0..steps {
        let now = C::read();
        let step = now.wrapping_sub(previous);
        buckets[usize::try_from(step).unwrap_or(longest).min(longest)] += 1;
        previous = now;
    }
    previous.wrapping_sub(first)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;
    use std::collections::VecDeque;

    thread_local! {
        static READINGS: RefCell<VecDeque<u64>> = const { RefCell::new(VecDeque::new()) };
    }

    /// A counter that gives prepared readings.
    struct PreparedCounter;

    impl Counter for PreparedCounter {
        const NAME: &'static str = "prepared";
        fn read() -> u64 {
            READINGS.with_borrow_mut(|readings| readings.pop_front().expect("the loop ends at the deadline"))
        }
    }

    fn run(readings: &[u64], capacity: usize, deadline: u64, threshold: u64) -> (LoopTally, Vec<(u64, u64)>) {
        READINGS.with_borrow_mut(|queue| *queue = readings.iter().copied().collect());
        let ring = Ring::new(capacity).unwrap();
        ring.set_deadline(Ticks::new(deadline));
        let cpu = sched::current_cpu().unwrap();
        sched::pin_current_thread(cpu).unwrap();
        let tally = acquire::<PreparedCounter>(&ring, cpu, Ticks::new(100), Ticks::new(threshold));
        let mut steps = Vec::new();
        ring.drain(|before, after| steps.push((before.get(), after.get())));
        (tally, steps)
    }

    /// The sum of all steps, as the loop accounts for them.
    fn both(tally: &LoopTally) -> Ticks {
        Ticks::new(tally.below.get().wrapping_add(tally.kept.get()))
    }

    #[test]
    fn keeps_what_reaches_the_threshold_and_no_time_vanishes() {
        let (tally, steps) = run(&[50, 99, 101, 103, 110, 111, 141, 200, 202, 999], 16, 202, 10);
        assert_eq!(steps, [(111, 141), (141, 200)]);
        assert_eq!((tally.first, tally.last, tally.iterations), (Ticks::new(101), Ticks::new(202), 6));
        let steps = (tally.shortest, tally.below, tally.kept, tally.kept_steps);
        assert_eq!(steps, (Ticks::new(1), Ticks::new(12), Ticks::new(89), 2));
        assert_eq!(tally.last - tally.first, both(&tally));
        assert_eq!(tally.end, End::Deadline);
    }

    #[test]
    fn a_full_ring_ends_the_loop_before_the_step_that_does_not_fit() {
        let (tally, steps) = run(&[100, 200, 300, 301, 400, 401, 500], 2, 1000, 10);
        assert_eq!(steps, [(100, 200), (200, 300)]);
        assert_eq!((tally.end, tally.last), (End::Full, Ticks::new(301)));
        assert_eq!(tally.last - tally.first, both(&tally));
    }

    #[test]
    fn a_counter_that_runs_backwards_is_counted_and_stored_nowhere() {
        let (tally, steps) = run(&[100, 150, 140, 141, 142, 300], 16, 300, 10);
        assert_eq!(tally.backwards, 1);
        assert_eq!(steps, [(100, 150), (142, 300)]);
        assert_eq!(tally.last - tally.first, both(&tally));
    }
}
