//! The core's speed in cycles per second, if no hardware counter counts cycles.
//!
//! A clock such as the TSC ticks at its own rate, independent of the core. A register addition that depends on the previous sum takes one cycle on
//! every x86-64 and AArch64 processor, so a known number of them takes as many cycles. This cannot detect whether the core changes its speed later in
//! the run.

use becalm_linux::clock::Counter;
use becalm_linux::instructions::{A_PASS, Instructions};
use becalm_model::node::CoreClockDoc;
use becalm_units::TickRate;

use super::body::Body;
use super::decile::third_decile_mean;

/// Runs per trial.
const TRIALS: usize = 100;

/// Passes per trial: some 20,000 cycles, so the cost of reading the counter is negligible and few trials are interrupted.
const PASSES: u64 = 40;

/// The current core's speed, for a body of known instructions; `None` for others.
pub fn core_clock<C: Counter>(body: Body, rate: TickRate) -> Option<CoreClockDoc> {
    let instructions = body.instructions()?;
    let mut durations = Vec::with_capacity(TRIALS);
    for _ in 0..TRIALS {
        let before = C::read();
        std::hint::black_box(Instructions::Add.run(PASSES, 1)?);
        durations.push(C::read().wrapping_sub(before));
    }
    from_trials(instructions, &mut durations, rate)
}

/// The document of trials with these durations in ticks; `None` if the counter did not advance in one that counts.
fn from_trials(instructions: u64, durations: &mut [u64], rate: TickRate) -> Option<CoreClockDoc> {
    let cycles = PASSES as f64 * f64::from(A_PASS);
    let hz = |ticks: f64| (ticks > 0.0).then(|| (cycles / (ticks * rate.tick_ns()) * 1e9).round() as u64);
    let middle = third_decile_mean(durations)?;
    // The call above has sorted them.
    let at = |part: usize| durations[(durations.len() - 1) * part / 100] as f64;
    Some(CoreClockDoc { instructions, hz: hz(middle)?, low_hz: hz(at(95))?, high_hz: hz(at(5))? })
}

#[cfg(test)]
mod tests {
    use super::*;
    use becalm_linux::clock::MonotonicRaw;

    #[test]
    fn cycles_a_second_are_those_of_the_additions() {
        // 20,480 cycles in 10,240 ns; a tenth of the trials is slightly faster, a tenth interrupted.
        let mut durations = vec![10_240; 80];
        durations.extend([10_000; 10]);
        durations.extend([20_480; 10]);
        let found = from_trials(514, &mut durations, TickRate::from_hz(1e9)).unwrap();
        let expected =
            CoreClockDoc { instructions: 514, hz: 2_000_000_000, low_hz: 1_000_000_000, high_hz: 2_048_000_000 };
        assert_eq!(found, expected);
        assert_eq!(from_trials(514, &mut [0; 100], TickRate::from_hz(1e9)), None);
        assert_eq!(from_trials(514, &mut [], TickRate::from_hz(1e9)), None);
    }

    #[test]
    fn this_core_has_a_speed_and_other_bodies_have_no_instructions() {
        assert_eq!(core_clock::<MonotonicRaw>(Body::Sort, TickRate::from_hz(1e9)), None);
        let found = core_clock::<MonotonicRaw>(Body::Div, TickRate::from_hz(1e9));
        assert_eq!(found.is_some(), Instructions::SUPPORTED);
        if let Some(CoreClockDoc { instructions, hz, low_hz, high_hz }) = found {
            assert_eq!(instructions, 514);
            assert!(low_hz <= hz && hz <= high_hz, "{low_hz} {hz} {high_hz}");
            // Emulators and unoptimized builds can be slower than any processor, but not faster.
            assert!((1_000_000..20_000_000_000).contains(&hz), "{hz}");
        }
    }
}
