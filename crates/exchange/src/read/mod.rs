//! What other programs measured, read from their files: a file a format.
//!
//! What is read is one of the forms in which becalm keeps what it measured itself:
//!
//! - Lists of detours, each with its begin, are detours: [`DetourList`], a list a CPU.
//!
//! - Traces of a kernel's events are neither: what becomes of them is found out by whoever attributes them. [`trace_dat`] gives the
//!   pages that the kernel wrote.
//!
//! What a file does not say is `None`, and stays unknown: no begin, share or length of a run is made up.

mod binary;
mod detours;
mod error;
mod format;
mod kernel_formats;
pub mod kernel_text;
mod lines;
pub mod perf_script;
mod recognize;
pub mod selfish;
mod time;
pub mod trace_dat;

pub use detours::DetourList;
pub use error::ReadError;
pub use format::Format;
pub use kernel_formats::KernelFormats;
pub use recognize::recognize;
pub use time::TimeUnit;

/// A file that is read, or a part of one that holds all of it.
#[derive(Clone, Copy, Debug)]
pub struct Source<'a> {
    /// Its name, without the folders: some formats say in it which CPU was measured.
    pub name: &'a str,
    /// What it holds.
    pub bytes: &'a [u8],
}
