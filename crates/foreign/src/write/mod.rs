//! What becalm recorded, as other programs read it.
//!
//! Writers take values one after the other and hand them on, so that a run of any length needs little memory.

pub mod chrome;
pub mod csv;
pub mod folded;
mod gzip;
pub mod hdrhistogram;
pub mod loggopsim;
pub mod perfetto;
pub mod pprof;
pub mod simgrid;
mod slices;
