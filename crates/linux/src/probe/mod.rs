//! The operations whose cost is measured: one small file per call or kind of trap, each function as short as possible, so a measuring loop around it
//! times the kernel and not becalm.
//!
//! The crate `measure` does the timing, repeating and interpreting. Operations of only one architecture or kernel fail with an error, and never
//! return a figure.

mod child;
pub mod clocks;
mod echo;
mod error;
pub mod futex;
pub mod membarrier;
mod pages;
mod signal;
mod syscalls;

pub use child::Child;
pub(crate) use child::{BALL, END, pipe, put, take};
pub use echo::{Echo, Loopback};
pub use error::ProbeError;
pub use pages::{Pages, huge_page_bytes};
pub use signal::Handler;
pub use syscalls::{SyscallCount, getpid};
