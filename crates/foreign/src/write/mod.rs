//! Writers of recordings in the formats of other programs.
//!
//! They pass values on one by one, so a run of any length needs little memory.

pub(crate) mod chrome;
pub(crate) mod csv;
mod decimal;
pub(crate) mod folded;
mod gzip;
pub(crate) mod hdrhistogram;
pub mod loggopsim;
pub(crate) mod perfetto;
pub(crate) mod perfetto_threads;
pub(crate) mod pprof;
pub(crate) mod simgrid;
mod slices;
