//! The loop that watches the counter, as a recorded loop.

use becalm_linux::clock::Counter;
use becalm_model::node::{CpuDoc, NodeDoc, SettingsDoc};
use becalm_units::{CpuId, Nanos, TickRate, Ticks, TicksToNanos};

use super::acquire::{LoopTally, acquire};
use super::event_counts::Counted;
use super::kind::{Loop, LoopCalibration, LoopError, Measured};
use super::ring::Ring;
use super::steps::StepProfile;
use crate::plan::Threshold;

/// Watches the counter and keeps the steps from a threshold on.
#[derive(Clone, Copy, Debug)]
pub struct WatchLoop {
    /// The threshold that was asked for.
    pub threshold: Threshold,
}

/// The loop's own steps, and from which length on steps are kept.
#[derive(Clone, Copy, Debug)]
pub struct Watched {
    steps: StepProfile,
    threshold: Ticks,
}

impl LoopCalibration for Watched {
    fn shortest_step(&self) -> Ticks {
        self.steps.shortest
    }
}

impl WatchLoop {
    fn threshold(&self, cpu: CpuId, rate: TickRate, steps: &StepProfile) -> Result<Ticks, LoopError> {
        let length = match self.threshold {
            Threshold::Auto => return Ok(steps.auto_threshold()),
            Threshold::Length(length) => length,
        };
        let ticks = rate.ticks_in(length);
        if ticks > steps.shortest {
            return Ok(ticks);
        }
        let t_min = Nanos::new((steps.shortest.get() as f64 * rate.tick_ns()).ceil() as i64);
        Err(LoopError::Threshold { threshold: length, t_min, cpu, least: t_min + Nanos::new(1) })
    }
}

impl Loop for WatchLoop {
    const ALLOCATES: bool = false;

    type Ring = Ring;
    type Calibration = Watched;
    /// The threshold in ticks, from which on a step is kept.
    type Ready = Ticks;

    fn check(&self) -> Result<(), LoopError> {
        Ok(())
    }

    fn prepare<C: Counter>(&self, cpu: CpuId, rate: TickRate, ring: &Ring) -> Result<(Ticks, Watched), LoopError> {
        let steps = StepProfile::measure::<C>();
        // The rehearsal loads the loop's code and resolves what the linker left for later. With a threshold of zero every
        // step is stored, so that the ring fills and ends it.
        acquire::<C>(ring, cpu, Ticks::new(C::read()), Ticks::new(0));
        ring.clear();
        let threshold = self.threshold(cpu, rate, &steps)?;
        Ok((threshold, Watched { steps, threshold }))
    }

    fn measure<C: Counter>(&self, threshold: Ticks, cpu: CpuId, ring: &Ring, start: Ticks) -> (LoopTally, Counted) {
        (acquire::<C>(ring, cpu, start, threshold), Counted::default())
    }

    fn further_threads(&self) -> u32 {
        0
    }

    fn accompany<'a, C: Counter>(&self, _: CpuId, _: &Ring, _: impl FnOnce() -> Option<&'a Watched>) -> u64 {
        0
    }

    fn variation(&self) -> Option<f64> {
        None
    }

    fn threshold_text(&self) -> String {
        self.threshold.to_string()
    }

    fn describe(&self, calibrations: &[&Watched], axis: TicksToNanos, _: TickRate, node: &mut NodeDoc) {
        let time = |ticks: Ticks| axis.duration(ticks);
        for (doc, watched) in node.cpus.iter_mut().zip(calibrations) {
            doc.t_min_ns = time(watched.steps.shortest);
            doc.median_step_ns = time(watched.steps.median);
            doc.threshold_ns = time(watched.threshold);
        }
    }

    fn conclude(&self, measured: &Measured, cpu: &mut CpuDoc, _: &mut SettingsDoc) {
        cpu.detours = measured.tally.kept_steps;
    }
}
