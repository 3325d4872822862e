//! Calibration: finds how many iterations of a body take the grain (Tsafrir 2007, section 3.3).
//!
//! A trial number of iterations runs several times. The mean of the third decile of the durations is their time on a quiet CPU. Interpolation from it
//! gives the next trial number, for a few rounds.

use becalm_linux::clock::Counter;
use becalm_units::{Nanos, TickRate};

use super::body::Work;
use super::decile::third_decile_mean;

/// The amount of work in a sample of the intended length.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct WorkSize {
    /// Iterations per sample, at least 1.
    pub iterations: u64,
    /// Their duration: the mean of the third decile of the last trial, in ticks. For a grain longer than a trial may be, it is scaled up from a part
    /// of the iterations.
    pub ticks: f64,
    /// How often the last trial ran.
    pub trials: usize,
}

impl WorkSize {
    /// The duration of the iterations.
    pub fn duration(&self, rate: TickRate) -> Nanos {
        Nanos::new((self.ticks * rate.tick_ns()).round() as i64)
    }
}

/// Runs per trial: of 100 durations, ten are in the third decile.
const TRIALS: usize = 100;

/// A trial of a longer grain uses a part of it, so a calibration takes a few seconds at most.
const LONGEST_TRIAL: Nanos = Nanos::from_millis(10);

/// Further rounds do not improve the result.
const ROUNDS: usize = 5;

/// A round this close to the grain is the last one.
const CLOSE: f64 = 0.002;

/// Finds how many iterations take the grain on the current CPU, at least one. If a single iteration takes longer than the grain, the result's
/// duration says so.
pub fn calibrate<C: Counter>(work: &mut Work, grain: Nanos, rate: TickRate) -> WorkSize {
    let grain = rate.ticks_in(grain).get().max(1) as f64;
    let part = (rate.ticks_in(LONGEST_TRIAL).get() as f64).min(grain);
    let mut durations = Vec::with_capacity(TRIALS);
    // The first guess doubles the iterations, each time with the shortest of three runs, up to a quarter of a trial. This also warms up.
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

/// The approximate number of steps per quantum of fixed time.
const STEPS_A_QUANTUM: i64 = 1000;
/// Shorter steps would mostly read the counter.
const SHORTEST_STEP: Nanos = Nanos::new(250);

/// Finds how many iterations make one step of a fixed-time loop: a thousandth of the quantum, but at least 250 ns. A quantum's work is known to one
/// step.
pub fn calibrate_unit<C: Counter>(work: &mut Work, quantum: Nanos, rate: TickRate) -> WorkSize {
    let step = Nanos::new(quantum.get() / STEPS_A_QUANTUM).max(SHORTEST_STEP);
    calibrate::<C>(work, step, rate)
}

/// The number of iterations that take `wanted`, if `iterations` take `ticks`.
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
        // Other tests run meanwhile, so one of several attempts must succeed.
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
        // Other tests run meanwhile and may affect only one of the two.
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
