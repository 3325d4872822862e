//! The noise of a rank's own CPU, from the acquisition loop (Beckman et al. 2007, section 3.2), simultaneously on all ranks.

use becalm_linux::clock::Counter;
use becalm_measure::StepProfile;
use becalm_measure::loops::acquire::{End, Lengths, acquire};
use becalm_measure::loops::ring::Ring;
use becalm_scale::{NoiseTrace, TraceError};
use becalm_units::fault::{self, Result};
use becalm_units::{Nanos, Ticks};
use mpi::traits::CommunicatorCollectives;

use crate::job::Job;
use crate::node::Seat;

/// The capacity for detours.
const STEPS: usize = 1 << 18;

/// The time lost by a CPU since the start of the measurement.
#[derive(Clone, PartialEq, Debug)]
pub struct OwnNoise {
    length: Nanos,
    detours: Vec<(Nanos, Nanos)>,
}

impl OwnNoise {
    /// The noise as numbers, for a message.
    pub fn numbers(&self) -> Vec<i64> {
        let detours = self.detours.iter().flat_map(|(start, length)| [start.get(), length.get()]);
        std::iter::once(self.length.get()).chain(detours).collect()
    }

    /// The noise from [`Self::numbers`], which must not be empty.
    pub fn from_numbers(numbers: &[i64]) -> Self {
        let detour = |pair: &[i64]| (Nanos::new(pair[0]), Nanos::new(pair[1]));
        Self { length: Nanos::new(numbers[0]), detours: numbers[1..].chunks_exact(2).map(detour).collect() }
    }

    /// The noise as a periodic trace for replay. Fails if the CPU was lost for the whole time.
    pub fn trace(&self) -> Result<NoiseTrace, TraceError> {
        NoiseTrace::from_window(Nanos::ZERO, self.length, self.detours.iter().copied())
    }

    /// The share of time lost.
    pub fn ratio(&self) -> f64 {
        let lost = self.detours.iter().fold(0, |sum, (_, length)| sum + length.get());
        lost as f64 / self.length.get() as f64
    }
}

/// Measures the noise of this rank's CPU for this time, simultaneously with all other ranks. If ranks share a CPU, the first one measures,
/// and the others sleep and get `None`: they would be noise. Fails if there is no memory for the detours, or too many of them.
pub fn measure<C: Counter>(seat: &Seat, time: Nanos, job: &Job) -> Result<Option<OwnNoise>> {
    let ring = job.agree(Ring::new(STEPS).map_err(Into::into))?;
    let profile = StepProfile::measure::<C>(seat.rate);
    // Load the loop's code: with a threshold of zero every step is stored, until the ring is full.
    acquire::<C>(&ring, seat.cpu, Ticks::new(C::read()), Lengths::until_full(Ticks::new(0), seat.rate));
    ring.clear();
    job.world.barrier();
    if !seat.first_on_cpu {
        // Polling for the others would be work on their CPUs.
        std::thread::sleep(time.to_std());
        job.meet_asleep();
        return job.agree(Ok(None));
    }
    let start = C::read();
    ring.set_deadline(Ticks::new(start + seat.rate.ticks_in(time).get()));
    let tally =
        acquire::<C>(&ring, seat.cpu, Ticks::new(start), Lengths::until_full(profile.auto_threshold(), seat.rate));
    job.meet_asleep();
    let ended = match tally.end {
        // Loops with a maximum number of detours are not used here.
        End::Deadline | End::Enough => Ok(()),
        End::Full => Err(fault::Error::new(format!("more than {STEPS} detours of CPU {} in {time}", seat.cpu))),
        End::Moved => Err(fault::Error::new(format!("the kernel took this rank off CPU {}", seat.cpu))),
    };
    job.agree(ended)?;
    let instant = |reading| seat.axis.instant(reading) - seat.axis.instant(tally.first);
    let mut detours = Vec::new();
    ring.drain(|before, after| {
        let length = instant(after) - instant(before) - seat.axis.duration(profile.shortest);
        detours.push((instant(before), length.max(Nanos::ZERO)));
    });
    Ok(Some(OwnNoise { length: instant(tally.last).max(Nanos::new(1)), detours }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_the_same_noise() {
        let own = OwnNoise {
            length: Nanos::from_millis(1),
            detours: vec![(Nanos::new(10), Nanos::new(5_000)), (Nanos::new(700_000), Nanos::new(45_000))],
        };
        assert_eq!(OwnNoise::from_numbers(&own.numbers()), own);
        assert!((own.ratio() - 0.05).abs() < 1e-12);
        assert!((own.trace().unwrap().noise_ratio() - 0.05).abs() < 1e-12);
    }
}
