//! What other programs measured, read from their files: a file a format.
//!
//! What is read is one of the forms in which becalm keeps what it measured itself:
//!
//! - Lists of detours, each with its begin, are detours: [`DetourList`], a list a CPU.
//!
//! What a file does not say is `None`, and stays unknown: no begin, share or length of a run is made up.

mod detours;
mod error;
mod format;
mod lines;
mod recognize;
pub mod selfish;
mod time;

pub use detours::DetourList;
pub use error::ReadError;
pub use format::Format;
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
