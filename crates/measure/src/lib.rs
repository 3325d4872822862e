//! Acquisition: the loop that catches detours, its calibration, and the recorder that runs one loop on every measured
//! CPU and collects what the loops and the kernel's trace say.
//!
//! What is collected goes, batch by batch, to a [`Sink`]; interpreting and storing it is the sink's affair.

#![forbid(unsafe_code)]

pub mod acquire;
mod collector;
mod companion;
pub mod cost;
mod counted;
mod counters;
mod error;
mod event_clock;
mod loop_thread;
pub mod machine;
mod plan;
mod preflight;
mod recorder;
pub mod ring;
mod steps;
mod threads;
mod translate;
mod warnings;
pub mod work;
mod work_loop;

pub use collector::{Collector, TraceSide};
pub use companion::Companion;
pub use counters::Snapshot as CounterSnapshot;
pub use error::RecordError;
pub use event_clock::EventClock;
pub use machine::describe as describe_machine;
pub use plan::{Plan, Threshold, WorkPlan};
pub use preflight::{CpuError, Selection as CpuSelection, select as select_cpus};
pub use recorder::{Progress, Recording, record};
pub use steps::StepProfile;
pub use threads::Names;
pub use translate::Translator;
pub use warnings::of_cpus as closing_warnings;

use becalm_model::{Event, LoopThread, NodeDoc, Step};
use becalm_units::Nanos;

/// What one CPU gave since the batch before.
#[derive(Clone, Copy, Debug)]
pub struct Batch<'a> {
    /// The position of the CPU among the loops.
    pub index: usize,
    /// The steps that reached the threshold, or the samples: the readings before and after, in order.
    pub steps: &'a [Step],
    /// The iterations done in each of the steps, of loops that do work; as many as steps then, and none otherwise.
    pub work: &'a [u64],
    /// The kernel events, in order. They may reach beyond the last step.
    pub events: &'a [Event],
    /// When the loop took its first reading; nothing before that.
    pub began: Option<Nanos>,
    /// No step that begins before this instant will come any more.
    pub complete_until: Nanos,
}

/// Takes what is recorded.
pub trait Sink {
    /// What can go wrong while taking it.
    type Error;

    /// The loops are calibrated and about to start.
    ///
    /// # Errors
    /// If nothing can be stored; the recording does not begin.
    fn begin(&mut self, node: &NodeDoc, threads: &[LoopThread], names: &mut Names) -> Result<(), Self::Error>;

    /// A CPU's part of a segment.
    ///
    /// # Errors
    /// If it cannot be taken; the recording ends.
    fn batch(&mut self, batch: Batch<'_>, names: &Names) -> Result<(), Self::Error>;

    /// Every CPU's part of the segment has been given.
    ///
    /// # Errors
    /// If it cannot be stored; the recording ends.
    fn end_segment(&mut self, names: &Names) -> Result<(), Self::Error>;
}
