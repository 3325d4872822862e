//! The acquisition loop: reads the counter as fast as possible and keeps every step that reaches the threshold
//! (Beckman et al. 2007, section 3.2).

use becalm_linux::clock::Counter;
use becalm_linux::sched;
use becalm_units::{CpuId, Nanos, TickRate, Ticks};

use super::ring::Ring;

/// Steps of this length or more are stored even if the ring is nearly full. Published noise ratios count these as detours (Beckman et al. 2007), and
/// no machine's loop varies that much by itself.
pub const ALWAYS_STORED: Nanos = Nanos::from_micros(1);

/// A thread that was migrated lost its CPU for longer than this. Asking for the current CPU costs at most a system call, which takes far less than
/// this, so the step after the question does not trigger another one.
const MAY_HAVE_MOVED: Nanos = Nanos::from_micros(5);

/// Thresholds that decide what a loop does with a step, and the limit of stored detours.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Lengths {
    /// Steps of at least this length are detours.
    pub threshold: Ticks,
    /// Detours of at least this length are stored, or end the loop if the ring is full. Shorter ones are only counted while the ring is nearly full.
    pub always_stored: Ticks,
    /// After steps of at least this length, the loop checks that it still runs on its CPU.
    pub may_have_moved: Ticks,
    /// The loop ends after storing this many detours; `u64::MAX` means no limit.
    pub most: u64,
}

impl Lengths {
    /// For a recording, which must survive a storm of short detours.
    pub fn new(threshold: Ticks, rate: TickRate) -> Self {
        Self { always_stored: rate.ticks_in(ALWAYS_STORED), ..Self::until_full(threshold, rate) }
    }

    /// For loops that need every detour: they end when the ring is full.
    pub fn until_full(threshold: Ticks, rate: TickRate) -> Self {
        Self { threshold, always_stored: threshold, may_have_moved: rate.ticks_in(MAY_HAVE_MOVED), most: u64::MAX }
    }
}

/// Totals of a loop.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LoopTally {
    /// The counter at the loop's first reading.
    pub first: Ticks,
    /// The last reading. `last - first` is the sum of all steps: `below`, `kept` and the ring's unstored steps.
    pub last: Ticks,
    /// The number of steps, one per reading except the first.
    pub iterations: u64,
    /// The length of the shortest step.
    pub shortest: Ticks,
    /// The sum of the steps below the threshold.
    pub below: Ticks,
    /// The sum of the steps that were kept.
    pub kept: Ticks,
    /// The number of steps that were kept.
    pub kept_steps: u64,
    /// How often the counter ran backwards. Such a step reduces `below`.
    pub backwards: u64,
    /// Why the loop ended.
    pub end: End,
}

impl LoopTally {
    /// The tally after the first reading.
    pub(super) const fn new(first: Ticks) -> Self {
        Self {
            first,
            last: first,
            iterations: 0,
            shortest: Ticks::new(u64::MAX),
            below: Ticks::new(0),
            kept: Ticks::new(0),
            kept_steps: 0,
            backwards: 0,
            end: End::Deadline,
        }
    }
}

/// Why a loop ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum End {
    /// The deadline passed, or the collector stopped the loop.
    Deadline,
    /// The loop stored its maximum number of detours, see [`Lengths::most`].
    Enough,
    /// The ring was full. The step that did not fit is not part of the tally.
    Full,
    /// The kernel moved the thread off its CPU, which went offline or left the cgroup's cpuset.
    Moved,
}

/// The number of steps between two progress messages to the collector; a power of two.
const PROGRESS_STEPS: u64 = 1024;

/// Runs the loop on the current CPU from the reading `start` until the ring's deadline.
///
/// Nothing in here allocates or locks, and a long step causes at most one system call, see [`Lengths::may_have_moved`]. The cost of storing a step is
/// part of the next step, which starts at the reading that ended the stored one, so no time is lost.
#[inline(never)]
pub fn acquire<C: Counter>(ring: &Ring, cpu: CpuId, start: Ticks, lengths: Lengths) -> LoopTally {
    let (start, threshold) = (start.get(), lengths.threshold.get());
    let mut previous = C::read();
    while previous < start {
        previous = C::read();
    }
    ring.set_began(Ticks::new(previous));
    let mut tally = LoopTally::new(Ticks::new(previous));
    // Locals, to keep them in registers.
    let (mut iterations, mut shortest, mut below) = (0_u64, u64::MAX, 0_u64);
    loop {
        let now = C::read();
        let step = now.wrapping_sub(previous);
        if step >= threshold {
            if let Some(end) = keep(ring, cpu, (previous, now), lengths, &mut tally) {
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
    ring.set_ended();
    tally.last = Ticks::new(previous);
    tally.iterations = iterations;
    tally.shortest = Ticks::new(shortest);
    tally.below = Ticks::new(below);
    tally
}

/// Stores or counts a step, and returns whether the loop must end. A separate function keeps the loop small enough for the branch predictor.
#[cold]
#[inline(never)]
pub(super) fn keep(
    ring: &Ring,
    cpu: CpuId,
    (before, after): (u64, u64),
    lengths: Lengths,
    tally: &mut LoopTally,
) -> Option<End> {
    let step = after.wrapping_sub(before);
    if (step as i64) < 0 {
        tally.backwards += 1;
        return None;
    }
    if step < lengths.always_stored.get() && ring.is_nearly_full() {
        ring.unstored().add(Ticks::new(step));
        return None;
    }
    if !ring.push(Ticks::new(before), Ticks::new(after)) {
        return Some(End::Full);
    }
    tally.kept = Ticks::new(tally.kept.get() + step);
    tally.kept_steps += 1;
    if step >= lengths.may_have_moved.get() && sched::current_cpu().is_some_and(|now| now != cpu) {
        return Some(End::Moved);
    }
    (tally.kept_steps >= lengths.most).then_some(End::Enough)
}

/// The reference for [`acquire`]: only reads the counter, and sorts the steps into buckets of one tick (longer steps go into the last one).
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
    use proptest::prelude::*;
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

    /// Stores every step of ten ticks and more.
    const ALL: Lengths = Lengths {
        threshold: Ticks::new(10),
        always_stored: Ticks::new(10),
        may_have_moved: Ticks::new(1_000),
        most: u64::MAX,
    };

    fn run_on(cpu: CpuId, ring: &Ring, readings: &[u64], deadline: u64, lengths: Lengths) -> LoopTally {
        READINGS.with_borrow_mut(|queue| *queue = readings.iter().copied().collect());
        ring.set_deadline(Ticks::new(deadline));
        acquire::<PreparedCounter>(ring, cpu, Ticks::new(100), lengths)
    }

    fn run(readings: &[u64], capacity: usize, deadline: u64) -> (LoopTally, Vec<(u64, u64)>) {
        let ring = Ring::new(capacity).unwrap();
        let cpu = sched::current_cpu().unwrap();
        sched::pin_current_thread(cpu).unwrap();
        let tally = run_on(cpu, &ring, readings, deadline, ALL);
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
        let (tally, steps) = run(&[50, 99, 101, 103, 110, 111, 141, 200, 202, 999], 16, 202);
        assert_eq!(steps, [(111, 141), (141, 200)]);
        assert_eq!((tally.first, tally.last, tally.iterations), (Ticks::new(101), Ticks::new(202), 6));
        let steps = (tally.shortest, tally.below, tally.kept, tally.kept_steps);
        assert_eq!(steps, (Ticks::new(1), Ticks::new(12), Ticks::new(89), 2));
        assert_eq!(tally.last - tally.first, both(&tally));
        assert_eq!(tally.end, End::Deadline);
    }

    #[test]
    fn a_full_ring_ends_the_loop_before_the_step_that_does_not_fit() {
        let (tally, steps) = run(&[100, 200, 300, 301, 400, 401, 500], 2, 1000);
        assert_eq!(steps, [(100, 200), (200, 300)]);
        assert_eq!((tally.end, tally.last), (End::Full, Ticks::new(301)));
        assert_eq!(tally.last - tally.first, both(&tally));
    }

    #[test]
    fn with_the_last_detour_that_is_wanted_the_loop_ends_and_no_time_vanishes() {
        let ring = Ring::new(16).unwrap();
        let cpu = sched::current_cpu().unwrap();
        sched::pin_current_thread(cpu).unwrap();
        assert!(!ring.has_ended());
        let lengths = Lengths { most: 2, ..ALL };
        let tally = run_on(cpu, &ring, &[100, 103, 150, 151, 190, 191, 300, 301], 9_000, lengths);
        assert_eq!((tally.end, tally.last, tally.iterations, tally.kept_steps), (End::Enough, Ticks::new(190), 4, 2));
        assert_eq!(tally.last - tally.first, both(&tally));
        assert_eq!((ring.waiting(), ring.progress(), ring.has_ended()), (2, tally.last, true));
        ring.clear();
        assert!(!ring.has_ended());
    }

    #[test]
    fn a_counter_that_runs_backwards_is_counted_and_stored_nowhere() {
        let (tally, steps) = run(&[100, 150, 140, 141, 142, 300], 16, 300);
        assert_eq!(tally.backwards, 1);
        assert_eq!(steps, [(100, 150), (142, 300)]);
        assert_eq!(tally.last - tally.first, both(&tally));
    }

    #[test]
    fn where_the_loop_runs_is_asked_after_long_steps_alone() {
        // CPU 4,000 does not exist, so the check finds the thread moved.
        let nowhere = CpuId::new(4_000);
        let ring = Ring::new(16).unwrap();
        let tally = run_on(nowhere, &ring, &[100, 200, 201, 1_200, 1_201, 2_201, 2_202], 9_000, ALL);
        assert_eq!((tally.end, tally.last, tally.kept_steps), (End::Moved, Ticks::new(2_201), 3));
    }

    #[test]
    fn short_detours_do_not_fill_a_ring_that_nobody_empties() {
        let lengths = Lengths { always_stored: Ticks::new(1_000), ..ALL };
        let ring = Ring::new(8).unwrap();
        // Forty of 10 to 49 ticks, then two that must be stored, of 1,000 and 3,000.
        let mut readings: Vec<u64> = std::iter::successors(Some(100), |last| Some(last + 10)).take(2).collect();
        readings.extend((11..50).scan(110, |now, step| {
            *now += step;
            Some(*now)
        }));
        let short = *readings.last().unwrap();
        readings.extend([short + 1_000, short + 4_000]);
        let cpu = sched::current_cpu().unwrap();
        let tally =
            run_on(cpu, &ring, &readings, short + 4_000, Lengths { may_have_moved: Ticks::new(9_000), ..lengths });
        assert_eq!((tally.end, tally.iterations, tally.kept_steps), (End::Deadline, 42, 8));
        let classes = ring.unstored().length_classes();
        let found: Vec<_> = classes.iter().map(|class| (class.from.get(), class.steps, class.total.get())).collect();
        // The first six are stored, of 10 to 15 ticks.
        assert_eq!(found, [(16, 16, (16..32).sum()), (32, 18, (32..50).sum())]);
        let mut stored = Vec::new();
        ring.drain(|before, after| stored.push((after - before).get()));
        assert_eq!(stored, [10, 11, 12, 13, 14, 15, 1_000, 3_000]);
    }

    proptest! {
        #[test]
        fn books_close_whatever_is_stored(
            steps in proptest::collection::vec(prop_oneof![0_u64..40, 0_u64..5_000, Just(1_000_u64)], 1..400),
            capacity in 2_usize..64,
            always_stored in 10_u64..3_000,
        ) {
            let ring = Ring::new(capacity).unwrap();
            let readings: Vec<u64> = steps.iter().scan(100, |now, step| { *now += step; Some(*now) }).collect();
            let all: Vec<u64> = std::iter::once(100).chain(readings).collect();
            let lengths = Lengths {
                threshold: Ticks::new(10),
                always_stored: Ticks::new(always_stored),
                may_have_moved: Ticks::new(u64::MAX),
                most: u64::MAX,
            };
            let tally = run_on(CpuId::new(0), &ring, &all, *all.last().unwrap(), lengths);
            let classes = ring.unstored().length_classes();
            let unstored: u64 = classes.iter().map(|class| class.total.get()).sum();
            let counted: u64 = classes.iter().map(|class| class.steps).sum();
            prop_assert_eq!(tally.last - tally.first, Ticks::new(both(&tally).get() + unstored));
            // Steps until the loop's end are stored, counted or below the threshold, each in its own class.
            let made = &steps[..tally.iterations as usize];
            let detours = made.iter().filter(|step| **step >= 10).count() as u64;
            prop_assert_eq!(detours, tally.kept_steps + counted);
            let mut stored = Vec::new();
            ring.drain(|before, after| stored.push((after - before).get()));
            let long = |steps: &[u64]| steps.iter().copied().filter(|step| *step >= always_stored).collect::<Vec<_>>();
            prop_assert_eq!(long(&stored), long(made));
            prop_assert!(tally.end == End::Deadline || long(made).len() as u64 * 4 >= ring.capacity());
        }
    }
}
