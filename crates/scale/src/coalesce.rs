//! Noise coalescing (Beckman et al. 2007, section 7): interrupts are masked for a while, on all CPUs at the same instants, and delivered together
//! when unmasked.
//!
//! Windows of one length follow each other. A detour that starts within a window is postponed to its end, where all come back to back. The windows of
//! all ranks end at the same instants, so ranks differ only in the amount of noise, not in its times. The noise ratio stays the same.

use becalm_units::Nanos;

use crate::noise::{LENGTH_LIMIT, Noise, NoiseTrace, TraceError};
use crate::spec::{DRAWN_LIMIT, queue};

/// Minimum number of windows of a circle that cannot be both whole laps and whole windows, unless it would have too many detours.
const WINDOWS: i64 = 1 << 10;

impl NoiseTrace {
    /// The same detours, postponed to the end of the window of their start; the first window starts with the circle.
    ///
    /// The new circle is as many laps as give whole windows. If those have more than a million detours, it is cut to the last whole window of one
    /// lap, or of as many as give a thousand windows. Fails for a window of 0 or above the limit of a circle; [`TraceError::Full`] if only noise is
    /// left after the cut.
    pub fn coalesced(&self, window: Nanos) -> Result<Self, TraceError> {
        let (length, window_ns) = (self.length_ns(), window.get());
        if window_ns <= 0 || window > LENGTH_LIMIT {
            return Err(TraceError::Length(window));
        }
        let CoalescedCircle { laps, length: circle } = laps(length, window_ns, self.len() as i64)?;
        let mut arrivals: Vec<(i64, i64)> = Vec::new();
        let all = (0..laps).flat_map(|lap| {
            self.starts_ns()
                .iter()
                .zip(self.durations_ns())
                .map(move |(start, duration)| (lap * length + start, *duration))
        });
        for (start, duration) in all.take_while(|(start, _)| *start < circle) {
            let end = (start / window_ns + 1) * window_ns % circle;
            match arrivals.last_mut() {
                Some((last, sum)) if *last == end => *sum += duration,
                _ => arrivals.push((end, duration)),
            }
        }
        queue::circle(Nanos::new(circle), arrivals)
    }
}

/// The circle of coalesced noise: whole windows.
struct CoalescedCircle {
    /// The number of laps of the noise in it.
    laps: i64,
    length: i64,
}

/// The circle for noise of this length.
fn laps(length: i64, window: i64, detours: i64) -> Result<CoalescedCircle, TraceError> {
    let too_long = || TraceError::Length(Nanos::new(window));
    let whole = window / greatest_common_divisor(length, window);
    let fits = |laps: i64| laps.checked_mul(detours).is_some_and(|detours| detours <= DRAWN_LIMIT as i64);
    let all = length.checked_mul(whole).filter(|circle| *circle <= LENGTH_LIMIT.get());
    if let (Some(circle), true) = (all, fits(whole)) {
        return Ok(CoalescedCircle { laps: whole, length: circle });
    }
    let enough = window.checked_mul(WINDOWS).map_or(1, |wanted| (wanted / length).max(1));
    let laps = if fits(enough) { enough } else { (window / length + 1).max(1) };
    let circle = length.checked_mul(laps).filter(|circle| *circle <= LENGTH_LIMIT.get()).ok_or_else(too_long)?;
    match circle - circle % window {
        0 => Err(too_long()),
        length => Ok(CoalescedCircle { laps, length }),
    }
}

pub(crate) const fn greatest_common_divisor(a: i64, b: i64) -> i64 {
    if b == 0 { a } else { greatest_common_divisor(b, a % b) }
}

impl Noise {
    /// Coalesces in windows of this length, which end on all ranks at the same instants, whatever part of the noise each replays.
    pub fn coalesced(&self, window: Nanos) -> Result<Self, TraceError> {
        self.with_traces(Some(window), |trace| trace.coalesced(window))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::predict::{Prediction, Question};
    use crate::spec::NoiseSpec;
    use proptest::prelude::*;

    /// A CPU simulated nanosecond by nanosecond: work that arrives in a window waits for its end. Runs laps of the new circle until the state
    /// repeats.
    fn busy_by_counting(trace: &NoiseTrace, window: i64, circle: i64) -> Vec<bool> {
        let mut busy = vec![false; circle as usize];
        let (mut masked, mut waiting) = (0, 0);
        for _ in 0..3 {
            for (at, busy) in busy.iter_mut().enumerate() {
                if at as i64 % window == 0 {
                    waiting += std::mem::take(&mut masked);
                }
                let on_circle = Nanos::new(at as i64 % trace.length_ns());
                masked +=
                    trace.detours().filter(|(start, _)| *start == on_circle).map(|(_, long)| long.get()).sum::<i64>();
                *busy = waiting > 0;
                waiting -= i64::from(*busy);
            }
        }
        busy
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(1_000))]
        #[test]
        fn what_begins_in_a_window_comes_at_its_end(
            noisy in proptest::collection::vec(any::<bool>(), 2..30), window in 1_i64..40,
        ) {
            let detours = noisy.iter().enumerate().filter(|(_, on)| **on).map(|(at, _)| (Nanos::new(at as i64), Nanos::new(1)));
            let detours: Vec<_> = detours.collect();
            prop_assume!(detours.len() < noisy.len());
            let trace = NoiseTrace::new(Nanos::new(noisy.len() as i64), detours).unwrap();
            let made = trace.coalesced(Nanos::new(window)).unwrap();
            prop_assert_eq!(made.length_ns() % window, 0);
            prop_assert_eq!(made.noise().get() * trace.length_ns(), trace.noise().get() * made.length_ns());
            let mut found = vec![false; made.length_ns() as usize];
            for (start, duration) in made.detours() {
                for at in start.get()..(start + duration).get() {
                    found[(at % made.length_ns()) as usize] = true;
                }
            }
            prop_assert_eq!(found, busy_by_counting(&trace, window, made.length_ns()));
        }
    }

    #[test]
    fn circles_that_fit_no_windows_are_cut_to_whole_ones() {
        let drawn = "poisson:rate=10Hz,detour=50us".parse::<NoiseSpec>().unwrap().trace(1).unwrap();
        let made = drawn.coalesced(Nanos::new(9_999_991)).unwrap();
        assert_eq!(made.length_ns() % 9_999_991, 0);
        assert!((made.noise_ratio() / drawn.noise_ratio() - 1.0).abs() < 1e-3);
        for window in [Nanos::ZERO, Nanos::new(-1), Nanos::MAX] {
            assert!(drawn.coalesced(window).is_err(), "{window}");
        }
    }

    fn slowdown(noise: &Noise, collective: &str, ranks: u64) -> f64 {
        let question = Question {
            grain: Nanos::from_millis(1),
            phases: 500,
            collective: collective.parse().unwrap(),
            network: "infiniband".parse().unwrap(),
            bytes: 8,
            per_node: 1,
            synchronized: false,
            seed: 1,
            replicas: 2,
        };
        Prediction::new(noise, question).unwrap().slowdown(ranks).unwrap().unwrap().mean
    }

    /// Ranks with simultaneous noise lose it once, however many they are; otherwise each of them is the latest in its turn.
    #[test]
    fn the_windows_of_all_ranks_end_together() {
        let spec: NoiseSpec = "periodic:interval=10ms,detour=100us".parse().unwrap();
        let apart = Noise::apart("apart", spec.trace(1).unwrap());
        let together = apart.coalesced(Nanos::from_millis(20)).unwrap();
        for collective in ["ideal", "barrier"] {
            let slowdowns = |noise| [1, 4_096].map(|ranks| slowdown(noise, collective, ranks));
            let ([one, many], [one_apart, many_apart]) = (slowdowns(&together), slowdowns(&apart));
            assert!(
                (many - one).abs() < 1e-3 && (one - one_apart).abs() < 2e-3,
                "{collective}: {one} {many} {one_apart}"
            );
            assert!(many_apart > 1.05 && many < 1.012, "{collective}: {many} {many_apart}");
        }
    }
}
