//! A recorded loop that watches the counter.

use std::num::NonZeroU64;

use becalm_linux::clock::Counter;
use becalm_model::node::{CpuDoc, NodeDoc, SettingsDoc};
use becalm_units::{CpuId, Nanos, TickRate, Ticks, TicksToNanos};

use super::acquire::{Lengths, LoopTally, acquire};
use super::event_counts::EventTotals;
use super::kind::{Loop, LoopCalibration, LoopError, LoopResult};
use super::ring::Ring;
use super::steps::{StepProfile, step_after_store};
use crate::plan::Threshold;

/// How long the loop counts steps before it measures, to load its code.
const REHEARSAL: Nanos = Nanos::from_micros(100);

/// Watches the counter and keeps steps of at least the threshold.
#[derive(Clone, Copy, Debug)]
pub struct WatchLoop {
    /// The requested threshold.
    pub threshold: Threshold,
    /// The loop of each CPU ends after storing this many detours; `None` means no limit.
    pub detours: Option<NonZeroU64>,
}

/// The loop's own steps, and the threshold.
#[derive(Clone, Copy, Debug)]
pub struct WatchCalibration {
    steps: StepProfile,
    threshold: Ticks,
}

impl LoopCalibration for WatchCalibration {
    fn shortest_step(&self) -> Ticks {
        self.steps.shortest
    }
}

impl WatchLoop {
    /// `after_store` is the length of a step after a stored one. An automatic threshold is above it, so storing a detour does not cause another one.
    fn threshold(
        &self,
        cpu: CpuId,
        rate: TickRate,
        steps: &StepProfile,
        after_store: Option<Ticks>,
    ) -> Result<Ticks, LoopError> {
        let length = match self.threshold {
            Threshold::Auto => {
                let least = after_store.map_or(0, |ticks| ticks.get() + 1);
                return Ok(steps.auto_threshold().max(Ticks::new(least)));
            }
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
    type Calibration = WatchCalibration;
    /// The lengths that decide which steps are kept.
    type Ready = Lengths;

    fn check(&self) -> Result<(), LoopError> {
        Ok(())
    }

    fn prepare<C: Counter>(
        &self,
        cpu: CpuId,
        rate: TickRate,
        ring: &Ring,
    ) -> Result<(Lengths, WatchCalibration), LoopError> {
        let steps = StepProfile::measure::<C>(rate);
        let every_step = Lengths::until_full(Ticks::new(0), rate);
        let after_store = step_after_store::<C>(ring, cpu, rate);
        // The rehearsal loads the loop's code and resolves lazily bound symbols. With a threshold of zero every step is stored until the ring is
        // full, which ends the rehearsal; after that every step is counted.
        acquire::<C>(ring, cpu, Ticks::new(C::read()), every_step);
        ring.set_deadline(Ticks::new(C::read() + rate.ticks_in(REHEARSAL).get()));
        acquire::<C>(ring, cpu, Ticks::new(0), Lengths { always_stored: Ticks::new(u64::MAX), ..every_step });
        ring.clear();
        let threshold = self.threshold(cpu, rate, &steps, after_store)?;
        let most = self.detours.map_or(u64::MAX, NonZeroU64::get);
        Ok((Lengths { most, ..Lengths::new(threshold, rate) }, WatchCalibration { steps, threshold }))
    }

    fn measure<C: Counter>(&self, lengths: Lengths, cpu: CpuId, ring: &Ring, start: Ticks) -> (LoopTally, EventTotals) {
        (acquire::<C>(ring, cpu, start, lengths), EventTotals::default())
    }

    fn further_threads(&self) -> u32 {
        0
    }

    fn accompany<'a, C: Counter>(&self, _: CpuId, _: &Ring, _: impl FnOnce() -> Option<&'a WatchCalibration>) -> u64 {
        0
    }

    fn variation(&self) -> Option<f64> {
        None
    }

    fn threshold_text(&self) -> String {
        self.threshold.to_string()
    }

    fn describe(&self, calibrations: &[&WatchCalibration], axis: TicksToNanos, _: TickRate, node: &mut NodeDoc) {
        node.settings.detours = self.detours.map(NonZeroU64::get);
        let time = |ticks: Ticks| axis.duration(ticks);
        for (doc, watched) in node.cpus.iter_mut().zip(calibrations) {
            doc.t_min_ns = time(watched.steps.shortest);
            doc.median_step_ns = time(watched.steps.median);
            doc.threshold_ns = time(watched.threshold);
        }
    }

    fn conclude(&self, measured: &LoopResult, cpu: &mut CpuDoc, _: &mut SettingsDoc) {
        cpu.detours = measured.tally.kept_steps;
    }
}
