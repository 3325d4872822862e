//! Recording: where what the loops measured and what the kernel's trace says meet. A [`Session`] lets the loops run, each
//! CPU's [`Lane`] turns steps and kernel events into detours and activities, and a [`Store`] keeps these.
//!
//! There are four stores: [`DetourStore`] writes a bundle of detours, [`SummaryStore`] their summary form, [`SampleStore`] one of samples of work, and [`MemoryStore`]
//! keeps everything for who looks at it at once. Nothing here measures, and nothing says what a recording means.

#![forbid(unsafe_code)]

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
