//! Measuring: the loops that catch detours or do work, their calibration, and the recorder that runs one loop on every
//! measured CPU and collects what the loops and the kernel's trace say.
//!
//! What is collected goes, batch by batch, to a [`Sink`]; interpreting and storing it is the sink's affair.

#![forbid(unsafe_code)]

mod error;
pub mod loops;
pub mod machine;
mod plan;
mod recorder;
mod shelf;
mod sink;
mod trace;
pub mod work;

pub use error::RecordError;
pub use loops::StepProfile;
pub use machine::describe as describe_machine;
pub use machine::{CpuError, CpuSelection, KernelCounters, select_cpus};
pub use plan::{AfterSetUp, LoopTask, PlannedCommand, RecordPlan, Threshold, WorkPlan};
pub use recorder::{Collector, Companion, HandOver, Pauses, Progress, Recording, TraceSide, record};
pub use shelf::Shelf;
pub use sink::{Batch, Sink, Unstored};
pub use trace::{
    Disturbance, Drained, EventClock, Names, SOFTIRQS, StandingTrace, Translator, UNTRACED_TIMER, function_source,
};
