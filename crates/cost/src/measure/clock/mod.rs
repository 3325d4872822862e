//! Every way to read the time: its cost, its resolution, whether it runs backwards, and whether it enters the kernel (B07 section 3.1, the
//! cost of reading the timer).

use std::hint::black_box;
use std::time::{Duration, Instant};

use becalm_linux::clock::Counter;
use becalm_linux::probe::clocks::{self, ClockId};
use becalm_linux::probe::{SyscallCount, getpid};
use becalm_linux::procfs::cpuinfo::CpuInfo;
use becalm_stats::median_high;

use crate::documents::{
    BY_SYSCALL, ClockCosts, ClockWayDoc, CostSamples, CrossDoc, ProbeSamples, ReadBy, SuccessiveDoc,
};

mod successive;
mod time_way;
mod turns;

use self::successive::successive;
use self::time_way::{OverReading, TimeWay};
use self::turns::{Turns, turns};
use super::bench::{Bench, CostProgress, ForCounter, run_at, undisturbed};
use super::{CostError, Site};

/// The readings of the clock in one sample.
const BATCH: u32 = 64;
/// The samples of one round.
const SAMPLES: usize = 50;
/// The number of steps to look for.
const STEPS: usize = 10_000;
/// The time limit of that search: five periods of a coarse clock at 100 Hz.
const STEPS_TIME: Duration = Duration::from_millis(50);
/// Number of other CPUs to compare a clock with.
const OTHERS: usize = 4;
/// Readings on each CPU of a pair.
const TURNS: u64 = 500;
/// The time limit of a pair.
const TURNS_TIME: Duration = Duration::from_millis(20);
/// Readings for counting system calls.
const COUNTED: u64 = 100;

/// Steps of a clock from one reading to the next.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct ClockSteps {
    readings: u64,
    /// The smallest nonzero step; `None` if the clock did not move in 50 ms.
    smallest_ps: Option<i64>,
    /// The median nonzero step.
    median_ps: Option<i64>,
    /// Readings that were smaller than the one before.
    backwards: u64,
}

/// A way to read the time, with samples of that way and of a raw system call.
type Way = (ClockWayDoc, Vec<Vec<i64>>, Option<Vec<Vec<i64>>>);

/// Measures every way to read the time and returns the document and samples. Takes about half a second. Fails if the CPU cannot be used, or
/// no counter runs.
pub fn clocks(site: &Site, progress: &mut CostProgress<'_>) -> Result<(ClockCosts, CostSamples), CostError> {
    let (instrument, ReadWays { ways, not_counted, successive }) = run_at(site, ClockReadings(progress))?;
    let mut costs = ClockCosts { instrument: Some(instrument), not_counted, clocks: Vec::new(), successive };
    let mut samples = CostSamples::new();
    for (way, rounds, by_syscall) in ways {
        samples.extend(by_syscall.map(|rounds| (format!("{}{BY_SYSCALL}", way.name), rounds)));
        samples.insert(way.name.clone(), rounds);
        costs.clocks.push(way);
    }
    Ok((costs, samples))
}

/// The ways to read the time, measured.
struct ReadWays {
    ways: Vec<Way>,
    /// The reason if system calls could not be counted and were found by their time.
    not_counted: Option<String>,
    /// Successive readings of the measuring counter; `None` if a signal came before.
    successive: Option<SuccessiveDoc>,
}

struct ClockReadings<'a, 'b>(&'a mut CostProgress<'b>);

impl ForCounter for ClockReadings<'_, '_> {
    type Out = ReadWays;

    fn run<C: Counter>(self, bench: &Bench<C>) -> Self::Out {
        let root = bench.site.root();
        let processor = CpuInfo::read(root).unwrap_or_default();
        let ways = TimeWay::all(|flag| processor.has(flag));
        // Opened and closed before anything is timed, because it slows every system call.
        let (counts, not_counted) = match SyscallCount::open(root).and_then(|count| count_calls(&count, &ways)) {
            Ok(counts) => (Some(counts), None),
            Err(error) => (None, Some(error.to_string())),
        };
        let trap = undisturbed(&cost(bench, || getpid().cast_unsigned().into()));
        let mut measured = Vec::with_capacity(ways.len());
        for (at, way) in ways.iter().enumerate() {
            if !(self.0)(at, ways.len(), &way.name()) {
                break;
            }
            measured.push(measure(bench, *way, counts.as_ref().map(|counts| counts[at]), trap));
        }
        let all = measured.len() == ways.len();
        let successive = all.then(|| successive::<C>(bench.rate.tick_ns() * 1_000.0));
        ReadWays { ways: measured, not_counted, successive }
    }
}

fn measure<C: Counter>(bench: &Bench<C>, way: TimeWay, calls: Option<u64>, trap_ps: i64) -> Way {
    let cost = way.run(ReadingCost(bench));
    let raw = way.run_raw(ReadingCost(bench));
    let path = match calls {
        _ if way.is_instruction() => ReadBy::Instruction,
        Some(calls) if calls >= COUNTED / 2 => ReadBy::Syscall,
        Some(_) => ReadBy::Vdso,
        None if enters_kernel(undisturbed(&cost), raw.as_ref().map(undisturbed), trap_ps) => ReadBy::Syscall,
        None => ReadBy::Vdso,
    };
    // The kernel's readings are in nanoseconds, those of instructions in ticks.
    let unit_ps = if way.is_instruction() { bench.rate.tick_ns() * 1_000.0 } else { 1_000.0 };
    let own = way.clock() == Some(ClockId::THREAD_CPUTIME);
    let others = if own { &[] } else { &bench.site.others[..bench.site.others.len().min(OTHERS)] };
    let cross = others.iter().map(|other| way.run(Turn(bench.site.cpu, *other))).reduce(Turns::and);
    let steps = way.run(LookForSteps { unit_ps });
    let (by_syscall, raw_rounds) = raw.map(|raw| (raw.series, raw.rounds)).unzip();
    let doc = ClockWayDoc {
        name: way.name(),
        path,
        series: cost.series,
        by_syscall,
        stated_ns: way.clock().and_then(clocks::resolution_ns),
        readings: steps.readings,
        smallest_step_ps: steps.smallest_ps,
        median_step_ps: steps.median_ps,
        backwards: steps.backwards,
        cross: cross.map(|turns| CrossDoc {
            compared: turns.compared,
            backwards: turns.backwards,
            largest_ps: (turns.largest as f64 * unit_ps).round() as i64,
        }),
    };
    (doc, cost.rounds, raw_rounds)
}

/// Whether a call enters the kernel, judged by comparison with the same reading by a raw system call. Reading the counter, which both
/// include, may itself be slow, so use the difference: a call that saves less than half a trap (a `getpid`) enters the kernel. Without a
/// raw call, use the call's own time.
fn enters_kernel(call_ps: i64, raw_ps: Option<i64>, trap_ps: i64) -> bool {
    match raw_ps {
        Some(raw) => raw - call_ps < trap_ps / 2,
        None => call_ps > trap_ps / 2,
    }
}

/// The number of system calls in `COUNTED` readings, for each way.
fn count_calls(count: &SyscallCount, ways: &[TimeWay]) -> Result<Vec<u64>, becalm_linux::probe::ProbeError> {
    struct Calls<'a>(&'a SyscallCount);
    impl OverReading for Calls<'_> {
        type Out = Result<u64, becalm_linux::probe::ProbeError>;

        fn run_with(self, read: impl Fn() -> u64 + Copy + Send + Sync) -> Self::Out {
            self.0.during(|| {
                for _ in 0..COUNTED {
                    black_box(read());
                }
            })
        }
    }
    ways.iter().map(|way| way.run(Calls(count))).collect()
}

fn cost<C: Counter>(bench: &Bench<C>, read: impl Fn() -> u64 + Copy) -> ProbeSamples {
    let round = |samples: &mut [u64]| {
        Bench::<C>::time_each(samples, |_| {
            for _ in 0..BATCH {
                black_box(read());
            }
        });
        Ok(())
    };
    bench.series(BATCH, SAMPLES, round).expect("a round of readings cannot fail")
}

struct ReadingCost<'a, 'b, C>(&'a Bench<'b, C>);

impl<C: Counter> OverReading for ReadingCost<'_, '_, C> {
    type Out = ProbeSamples;

    fn run_with(self, read: impl Fn() -> u64 + Copy + Send + Sync) -> ProbeSamples {
        cost(self.0, read)
    }
}

struct Turn(becalm_units::CpuId, becalm_units::CpuId);

impl OverReading for Turn {
    type Out = Turns;

    fn run_with(self, read: impl Fn() -> u64 + Copy + Send + Sync) -> Turns {
        turns(self.0, self.1, TURNS, TURNS_TIME, read)
    }
}

/// Reads the clock repeatedly until there are enough steps or time is up.
struct LookForSteps {
    unit_ps: f64,
}

impl OverReading for LookForSteps {
    type Out = ClockSteps;

    fn run_with(self, read: impl Fn() -> u64 + Copy + Send + Sync) -> ClockSteps {
        let mut steps = vec![1_u64; STEPS];
        let (mut found, mut readings, mut backwards) = (0, 0_u64, 0);
        let end = Instant::now() + STEPS_TIME;
        let mut previous = read();
        while found < steps.len() {
            let now = read();
            readings += 1;
            if now > previous {
                steps[found] = now - previous;
                found += 1;
            } else if now < previous {
                backwards += 1;
            }
            // Checks the time only occasionally. The step that includes the check is longer, which changes neither figure.
            if readings.is_multiple_of(1024) && Instant::now() > end {
                break;
            }
            previous = now;
        }
        let steps = &mut steps[..found];
        let picos = |step: u64| (step as f64 * self.unit_ps).round() as i64;
        let smallest_ps = steps.iter().copied().min().map(picos);
        ClockSteps { readings, smallest_ps, median_ps: median_high(steps).map(picos), backwards }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;
    use std::sync::atomic::{AtomicU64, Ordering};

    #[test]
    fn a_call_that_saves_a_trap_does_not_enter_the_kernel() {
        assert!(!enters_kernel(20_000, Some(150_000), 100_000));
        assert!(enters_kernel(140_000, Some(150_000), 100_000));
        // Reading the counter takes 2 us here, as under some hypervisors.
        assert!(!enters_kernel(2_000_000, Some(2_110_000), 100_000));
        assert!(!enters_kernel(5_000, None, 100_000) && enters_kernel(110_000, None, 100_000));
    }

    #[test]
    fn steps_and_backward_steps_are_told_apart() {
        let count = AtomicU64::new(0);
        // Two readings at each multiple of 10, and one leap back in a thousand.
        let read = || {
            let n = count.fetch_add(1, Ordering::Relaxed);
            if n % 1000 == 999 { 1 } else { n / 2 * 10 + 10 }
        };
        let steps = LookForSteps { unit_ps: 500.0 }.run_with(read);
        assert_eq!((steps.smallest_ps, steps.median_ps), (Some(5_000), Some(5_000)));
        let expected = steps.readings / 1000;
        assert!(steps.backwards.abs_diff(expected) <= 1, "{steps:?}");
    }

    #[test]
    fn a_clock_that_stands_still_has_no_step() {
        thread_local!(static READS: Cell<u64> = const { Cell::new(0) });
        let steps = LookForSteps { unit_ps: 1.0 }.run_with(|| {
            READS.set(READS.get() + 1);
            7
        });
        assert_eq!((steps.smallest_ps, steps.median_ps, steps.backwards), (None, None, 0));
        assert_eq!(steps.readings + 1, READS.get());
    }
}
