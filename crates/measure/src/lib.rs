//! Measuring: the loops that catch detours or do work, their calibration, and the recorder, which runs one loop per measured CPU and collects the
//! data of the loops and the kernel's trace.
//!
//! The recorder hands batches to a [`Sink`], which interprets and stores them.

#![forbid(unsafe_code)]

mod clock_log;
mod error;
pub mod loops;
pub mod machine;
mod plan;
mod recorder;
mod shelf;
mod sink;
mod spool;
mod trace;
pub mod work;

pub use clock_log::ClockLog;
pub use error::RecordError;
pub use loops::StepProfile;
pub use machine::describe as describe_machine;
pub use machine::{CpuError, CpuSelection, KernelCounters, select_cpus};
pub use plan::{AfterSetUp, LoopTask, PlannedCommand, RecordPlan, Threshold, WorkPlan};
pub use recorder::{Collector, Companion, HandOver, Pauses, Progress, Recording, TraceSide, record};
pub use shelf::Shelf;
pub use sink::{Batch, Sink, Unstored};
pub use spool::Spool;
pub use trace::{
    Disturbance, Drained, EventClock, Names, RawCauses, RawTrace, SOFTIRQS, StandingTrace, TraceRequest, Tracing,
    Translator, UNTRACED_TIMER, accounted_time, function_source,
};
