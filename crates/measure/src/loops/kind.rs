//! Common parts of all kinds of loops: a ring, a calibration and the measurement.

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
    /// It cannot be placed there or given its scheduling class.
    #[error(transparent)]
    Sched(#[from] SchedError),
    /// This machine cannot run its work.
    #[error(transparent)]
    Work(#[from] Unsupported),
    /// The threshold is within the range of the loop's own steps.
    #[error(
        "the threshold of {threshold} is not above the loop's own shortest step of {t_min} on CPU {cpu}: \
         give at least {least}, or auto"
    )]
    Threshold {
        /// The requested threshold.
        threshold: Nanos,
        /// The loop's shortest step.
        t_min: Nanos,
        /// The CPU to measure.
        cpu: CpuId,
        /// The smallest possible threshold.
        least: Nanos,
    },
}

impl Fault for LoopError {
    fn is_usage(&self) -> bool {
        matches!(self, Self::Threshold { .. } | Self::Work(_))
    }
}

/// Result of a loop: its readings, and the kernel's and the counters' view of it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LoopResult {
    /// The loop's own totals.
    pub tally: LoopTally,
    /// The kernel's account of the thread while it measured.
    pub usage: ThreadUsage,
    /// Iterations of the other copies of its work in the same time.
    pub others_iterations: u64,
    /// The hardware and kernel counters during the loop.
    pub counted: EventTotals,
}

/// The channel from a loop to the collector.
pub trait StepRing: Send + Sync + Sized + 'static {
    /// Allocates a ring of this size, on the given NUMA node if any.
    fn with_bytes(bytes: usize, node: Option<u32>) -> Result<Self, MemoryError>;

    /// The ring of readings only.
    fn readings(&self) -> &Ring;

    /// Whether all memory could be locked.
    fn is_locked(&self) -> bool;

    /// Takes at most this many waiting steps, the oldest first: the readings before and after, and the work done, if recorded.
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

/// Results of a loop's calibration that all kinds share.
pub trait LoopCalibration: Clone + Send + Sync + 'static {
    /// The shortest step, which is subtracted from a step to get the detour's length; 0 if all steps are kept.
    fn shortest_step(&self) -> Ticks;
}

/// A kind of loop with its parameters.
///
/// The threads of all CPUs share one value. While measuring, a loop neither allocates, nor locks, nor makes system calls.
pub trait Loop: Send + Sync + Sized + 'static {
    /// Whether preparing the loop allocates memory that must be locked.
    const ALLOCATES: bool;

    /// Receives the loop's steps.
    type Ring: StepRing;
    /// The result of the calibration.
    type Calibration: LoopCalibration;
    /// State that the loop's thread keeps from preparation on; it does not leave the thread.
    type Ready;

    /// Fails if this machine cannot run the loop.
    fn check(&self) -> Result<(), LoopError>;

    /// Prepares the loop on the current CPU, with a counter of this rate.
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

    /// The number of additional threads per CPU besides the measuring one.
    fn further_threads(&self) -> u32;

    /// Body of an additional thread: prepares, waits for the start with `calibrated` (which returns nothing if the start is canceled), and returns
    /// the iterations done until the ring's deadline.
    fn accompany<'a, C: Counter>(
        &self,
        cpu: CpuId,
        ring: &Self::Ring,
        calibrated: impl FnOnce() -> Option<&'a Self::Calibration>,
    ) -> u64;

    /// The maximum allowable variation at which the loops have repeated enough; `None` if not requested.
    fn variation(&self) -> Option<f64>;

    /// The threshold as stored in the document.
    fn threshold_text(&self) -> String;

    /// Writes the calibrations, in the order of the document's CPUs, into the document of the start.
    fn describe(&self, calibrations: &[&Self::Calibration], axis: TicksToNanos, rate: TickRate, node: &mut NodeDoc);

    /// Writes how a loop ended into its CPU's document, and its event counts into the node's.
    fn conclude(&self, measured: &LoopResult, cpu: &mut CpuDoc, settings: &mut SettingsDoc);
}
