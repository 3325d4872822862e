//! Kernel tracing: becalm's own tracefs instance, and the decoding of its raw data.
//!
//! There are two layers. The pure one takes bytes and returns values: `format` reads the kernel's descriptions of its records, `page` walks a raw
//! sub-buffer, [`Decoder`] turns its records into [`RawEvent`]s. The other one uses the machine: [`Tracefs`], [`Instance`] and [`PageReader`]; each
//! takes its root directory, so tests can use a fake tree. [`synth`] replaces the kernel in tests and benchmarks.
//!
//! Times are those of the trace clock, uncalibrated; names are bytes as the kernel wrote them. The caller maps events to a run's time axis and labels
//! them.

mod changes;
mod decoder;
mod error;
mod event;
mod event_cost;
mod format;
mod instance;
mod leftover;
mod marks;
mod page;
mod plan;
mod reader;
mod stats;
pub mod synth;
mod tracefs;
mod wanted;

pub use decoder::{DecodeError, Decoder, PageSummary};
pub use error::TracefsError;
pub use event::{Callback, OwnWork, RawEvent, RawHappening, VectorName};
pub use format::{EventFormat, EventFormatError, HeaderPage};
pub use instance::{Faults, Instance, InstanceConfig, TraceClock};
pub use leftover::{InstanceName, Leftovers, remove_dead};
pub use marks::Marks;
pub use reader::PageReader;
pub use stats::CpuStats;
pub use tracefs::{Tracefs, clocks, mount_point, printk_formats};
pub use wanted::{
    CALLS, CARRIED, Discovery, EventFilter, EventGroup, EventPath, FUNCTIONS, HOST, LIVES, MissingEvent, OWN_WORK,
    REQUESTERS, REQUESTS, WANTED, discover, discover_among,
};
