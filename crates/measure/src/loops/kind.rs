//! What every kind of loop has: a ring, a calibration, and the measuring itself.

use becalm_linux::clock::Counter;
use becalm_linux::memory::MemoryError;
use becalm_linux::sched::{SchedError, ThreadUsage};
use becalm_model::node::{CpuDoc, NodeDoc, SettingsDoc};
use becalm_units::fault::Fault;
use becalm_units::{CpuId, Nanos, TickRate, Ticks, TicksToNanos};

use super::acquire::LoopTally;
use super::event_counts::EventTotals;
use super::ring::Ring;
use crate::work::Unsupported;

/// Why a loop cannot measure on a CPU.
#[derive(Debug, thiserror::Error)]
pub enum LoopError {
    /// It cannot be placed there, or not get its scheduling class.
    #[error(transparent)]
    Sched(#[from] SchedError),
    /// Its work cannot be done on this machine.
    #[error(transparent)]
    Work(#[from] Unsupported),
    /// The threshold lies within the loop's own steps.
    #[error(
        "the threshold of {threshold} is not above the loop's own shortest step of {t_min} on CPU {cpu}: \
         give at least {least}, or auto"
    )]
    Threshold {
        /// The threshold that was asked for.
        threshold: Nanos,
        /// The loop's shortest step.
        t_min: Nanos,
        /// The CPU that was to be measured.
        cpu: CpuId,
        /// The smallest threshold that can be had.
        least: Nanos,
    },
}

impl Fault for LoopError {
    fn is_usage(&self) -> bool {
        matches!(self, Self::Threshold { .. } | Self::Work(_))
    }
}

/// Result of a loop: its own readings, and what the kernel and the counters saw of it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LoopResult {
    /// What the loop itself says of its readings.
    pub tally: LoopTally,
    /// The kernel's account of the thread while it measured.
    pub usage: ThreadUsage,
    /// Iterations that the other copies of its work did meanwhile.
    pub others_iterations: u64,
    /// What the processor's counters say of the loop.
    pub counted: EventTotals,
}

/// A way from a loop to the collector.
pub trait StepRing: Send + Sync + Sized + 'static {
    /// Makes a ring that takes so much memory, of a NUMA node where one is given.
    fn with_bytes(bytes: usize, node: Option<u32>) -> Result<Self, MemoryError>;

    /// The ring of the readings alone.
    fn readings(&self) -> &Ring;

    /// Whether all of the memory could be locked.
    fn is_locked(&self) -> bool;

    /// Takes at most so many of the steps that wait, the oldest first: the readings before and after, and the work done, if it
    /// is kept.
    fn take_some(&self, most: u64, take: impl FnMut(Ticks, Ticks, Option<u64>));
}

impl StepRing for Ring {
    fn with_bytes(bytes: usize, node: Option<u32>) -> Result<Self, MemoryError> {
        Self::for_node(bytes / 16, node)
    }

    fn readings(&self) -> &Ring {
        self
    }

    fn is_locked(&self) -> bool {
        self.is_locked()
    }

    fn take_some(&self, most: u64, mut take: impl FnMut(Ticks, Ticks, Option<u64>)) {
        self.drain_slots(most, |_, before, after| take(before, after, None));
    }
}

/// What a loop found out about itself before the start, as far as all kinds have it.
pub trait LoopCalibration: Clone + Send + Sync + 'static {
    /// How long the shortest step is, which every detour is shorter by than its step; 0 if all steps are kept.
    fn shortest_step(&self) -> Ticks;
}

/// A kind of loop, with all that was asked of it.
///
/// One value is shared by the threads of all CPUs. While it measures, a loop neither allocates, nor locks, nor calls the
/// kernel.
pub trait Loop: Send + Sync + Sized + 'static {
    /// Whether preparing the loop takes memory that is to be locked.
    const ALLOCATES: bool;

    /// Takes what the loop finds.
    type Ring: StepRing;
    /// What the loop finds out about itself before the start.
    type Calibration: LoopCalibration;
    /// What the loop's thread holds from then on; it stays in the thread.
    type Ready;

    /// Whether the loop can be on this machine.
    fn check(&self) -> Result<(), LoopError>;

    /// Prepares the loop on the current CPU, whose counter runs at this rate.
    fn prepare<C: Counter>(
        &self,
        cpu: CpuId,
        rate: TickRate,
        ring: &Self::Ring,
    ) -> Result<(Self::Ready, Self::Calibration), LoopError>;

    /// Measures from the reading `start` until the ring's deadline.
    fn measure<C: Counter>(
        &self,
        ready: Self::Ready,
        cpu: CpuId,
        ring: &Self::Ring,
        start: Ticks,
    ) -> (LoopTally, EventTotals);

    /// How many further threads run on each CPU beside the one that measures.
    fn further_threads(&self) -> u32;

    /// What a further thread does: gets ready, waits for the start with `calibrated`, which answers nothing if there is
    /// none, and returns the iterations that it did until the ring's deadline.
    fn accompany<'a, C: Counter>(
        &self,
        cpu: CpuId,
        ring: &Self::Ring,
        calibrated: impl FnOnce() -> Option<&'a Self::Calibration>,
    ) -> u64;

    /// The maximum allowable variation by which the loops have repeated enough; `None` if nobody asked for that.
    fn variation(&self) -> Option<f64>;

    /// The threshold as the document has it.
    fn threshold_text(&self) -> String;

    /// Enters the calibrations into the document of the start. They are in the order of the document's CPUs.
    fn describe(&self, calibrations: &[&Self::Calibration], axis: TicksToNanos, rate: TickRate, node: &mut NodeDoc);

    /// Enters how a loop ended into its CPU's document, and what it counted into that of the node.
    fn conclude(&self, measured: &LoopResult, cpu: &mut CpuDoc, settings: &mut SettingsDoc);
}
