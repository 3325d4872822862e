//! Calibration: how many iterations of a body take the grain (Tsafrir 2007, section 3.3).
//!
//! A trial number of iterations is run some times; the mean of the third decile of the durations is what it takes on a
//! quiet CPU; from that the number is interpolated, tried again, and settled after a few rounds.

use becalm_linux::clock::Counter;
use becalm_units::{Nanos, TickRate};

use super::body::Work;
use super::decile::third_decile_mean;

/// Amount of work that makes a sample of the wanted length.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct WorkSize {
    /// Iterations a sample, at least 1.
    pub iterations: u64,
    /// What they take: the mean of the third decile of the last trial, in ticks. Of a grain longer than a trial may be,
    /// it is scaled up from a part of the iterations.
    pub ticks: f64,
    /// How many times the last trial ran.
    pub trials: usize,
}

impl WorkSize {
    /// What the iterations take, as time.
    pub fn duration(&self, rate: TickRate) -> Nanos {
        Nanos::new((self.ticks * rate.tick_ns()).round() as i64)
    }
}

/// How often a trial is run: of 100 durations, ten make the third decile.
const TRIALS: usize = 100;

/// A trial of a longer grain is of a part of it, so that a calibration stays within some seconds.
const LONGEST_TRIAL: Nanos = Nanos::from_millis(10);

/// After this many rounds what was found is as good as it gets.
const ROUNDS: usize = 5;

/// A round that comes this close to the grain is the last one.
const CLOSE: f64 = 0.002;

/// Finds how many iterations take the grain on the current CPU. At least one; where a single iteration takes longer
/// than the grain, the result's duration says how long.
pub fn calibrate<C: Counter>(work: &mut Work, grain: Nanos, rate: TickRate) -> WorkSize {
    let grain = rate.ticks_in(grain).get().max(1) as f64;
    let part = (rate.ticks_in(LONGEST_TRIAL).get() as f64).min(grain);
    let mut durations = Vec::with_capacity(TRIALS);
    // A first guess by doubling, each step the shortest of three, up to a quarter of a trial. It warms up, too.
    let mut iterations = 1_u64;
    let mut ticks = loop {
        let ticks = (0..3).map(|_| timed::<C>(work, iterations)).min().unwrap_or(1).max(1) as f64;
        if ticks >= part / 4.0 || iterations >= 1 << 60 {
            break ticks;
        }
        iterations *= 2;
    };
    for _ in 0..ROUNDS {
        let next = interpolated(iterations, ticks, part);
        let settled = next == iterations || (ticks / part - 1.0).abs() < CLOSE;
        if settled && !durations.is_empty() {
            break;
        }
        iterations = next;
        durations.clear();
        durations.extend((0..TRIALS).map(|_| timed::<C>(work, iterations)));
        ticks = third_decile_mean(&mut durations).unwrap_or(1.0).max(1.0);
    }
    if part < grain {
        let whole = interpolated(iterations, ticks, grain);
        ticks *= whole as f64 / iterations as f64;
        iterations = whole;
    }
    WorkSize { iterations, ticks, trials: TRIALS }
}

/// A quantum of fixed time is worked through in about this many steps.
const STEPS_A_QUANTUM: i64 = 1000;
/// Steps shorter than this would consist of reading the counter.
const SHORTEST_STEP: Nanos = Nanos::new(250);

/// Finds how many iterations make one step of a fixed-time loop: a thousandth of the quantum, but at least 250 ns. To the
/// step is what the work of a quantum is known.
pub fn calibrate_unit<C: Counter>(work: &mut Work, quantum: Nanos, rate: TickRate) -> WorkSize {
    let step = Nanos::new(quantum.get() / STEPS_A_QUANTUM).max(SHORTEST_STEP);
    calibrate::<C>(work, step, rate)
}

/// The number of iterations that takes `wanted`, if `iterations` take `ticks`.
fn interpolated(iterations: u64, ticks: f64, wanted: f64) -> u64 {
    ((iterations as f64 * wanted / ticks).round() as u64).max(1)
}

fn timed<C: Counter>(work: &mut Work, iterations: u64) -> u64 {
    let before = C::read();
    std::hint::black_box(work.run::<C>(iterations));
    C::read().wrapping_sub(before)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::work::Body;
    use becalm_linux::clock::MonotonicRaw;
    use becalm_units::CpuId;
    use std::path::Path;

    const RATE: f64 = 1e9;

    fn calibrated(body: Body, grain: Nanos) -> (Work, WorkSize) {
        let mut work = Work::new(body, Path::new("/"), CpuId::new(0)).unwrap();
        let found = calibrate::<MonotonicRaw>(&mut work, grain, TickRate::from_hz(RATE));
        (work, found)
    }

    #[test]
    fn the_grain_is_met() {
        // Other tests run meanwhile, so of several attempts one must meet it.
        let grain = Nanos::from_millis(1);
        let met = (0..10).any(|_| {
            let (mut work, found) = calibrated(Body::Lcg, grain);
            let mut durations: Vec<u64> =
                (0..100).map(|_| timed::<MonotonicRaw>(&mut work, found.iterations)).collect();
            let third = third_decile_mean(&mut durations).unwrap();
            (third / grain.get() as f64 - 1.0).abs() < 0.02 && (found.ticks / grain.get() as f64 - 1.0).abs() < 0.02
        });
        assert!(met);
    }

    #[test]
    fn a_grain_below_one_iteration_is_one_iteration() {
        let (_, found) = calibrated(Body::Sort, Nanos::new(100));
        assert_eq!(found.iterations, 1);
        assert!(found.duration(TickRate::from_hz(RATE)) > Nanos::from_micros(100));
    }

    #[test]
    fn a_long_grain_is_scaled_up() {
        // Other tests run meanwhile: they may take the CPU in one of the two and not in the other.
        becalm_testing::attempts(10, || {
            let (_, short) = calibrated(Body::Lcg, Nanos::from_millis(1));
            let (_, long) = calibrated(Body::Lcg, Nanos::from_secs(10));
            let ratio = long.iterations as f64 / short.iterations as f64;
            let is_met = (5_000.0..20_000.0).contains(&ratio) && (long.ticks / 10e9 - 1.0).abs() < 0.2;
            if is_met { Ok(()) } else { Err(format!("{ratio}; {long:?}")) }
        });
    }

    #[test]
    fn interpolation_is_proportional_and_never_nothing() {
        assert_eq!(interpolated(1_000, 500.0, 1_000.0), 2_000);
        assert_eq!(interpolated(3, 1e9, 1.0), 1);
    }
}
