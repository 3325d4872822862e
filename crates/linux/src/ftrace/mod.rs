//! Kernel tracing: becalm's own tracefs instance, and the decoding of what the kernel writes there.
//!
//! Three layers. The pure ones take bytes and return values: `format` reads the kernel's descriptions of its records,
//! `page` walks a raw sub-buffer, [`Decoder`] turns its records into [`RawEvent`]s. The ones that touch the machine
//! are [`Tracefs`], [`Instance`] and [`PageReader`]; each takes its root folder, so that a fake tree tests it. [`synth`]
//! stands in for the kernel in tests and benchmarks.
//!
//! Times here are those of the trace clock, uncalibrated; names are bytes as the kernel wrote them. Placing events on a
//! run's time axis and giving them labels is left to the caller.

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
pub use event::{Callback, RawEvent, RawHappening, VectorName};
pub use format::{EventFormat, EventFormatError, HeaderPage};
pub use instance::{Faults, Instance, InstanceConfig, TraceClock};
pub use leftover::{InstanceName, Leftovers, remove_dead};
pub use marks::Marks;
pub use reader::PageReader;
pub use stats::CpuStats;
pub use tracefs::{Tracefs, clocks, mount_point, printk_formats};
pub use wanted::{CARRIED, Discovery, EventGroup, EventPath, MissingEvent, WANTED, discover, discover_among};
