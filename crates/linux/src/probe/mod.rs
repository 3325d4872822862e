//! What a cost is measured of: one small file a call or a kind of trap, each function as short as it can be, so that a
//! measuring loop around it times the kernel and not becalm.
//!
//! Timing, repeating and interpreting are the work of the crate `measure`. What only one architecture or kernel has
//! says so by its error, never by a figure.

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
