//! Recording: combines the loops' measurements with the kernel's trace. A [`Session`] runs the loops, each CPU's [`Lane`] turns steps and kernel
//! events into detours and activities, and a [`Store`] keeps these.
//!
//! There are four stores: [`DetourStore`] writes a bundle of detours, [`SummaryStore`] their summary form, [`SampleStore`] one of samples of work,
//! and [`MemoryStore`] keeps everything in memory. Nothing here measures or interprets recordings.

#![forbid(unsafe_code)]

mod causes;
mod closing;
mod detours;
mod lane;
mod memory;
mod output;
mod resumed;
mod samples;
mod session;
mod store;
mod summary;

pub use detours::DetourStore;
pub use lane::{Lane, LanePart};
pub use memory::{MemoryLane, MemoryStore};
pub use samples::SampleStore;
pub use session::{Failure, Recorded, Session};
pub use store::Store;
pub use summary::{RecordingStore, SummaryStore};
