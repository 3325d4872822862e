//! The files of other programs: what they measured becomes detours and histograms, and what becalm recorded becomes what they read.
//!
//! A format is a file: in [`mod@read`] bytes come in and values go out, in [`mod@write`] the other way round. Nothing here opens a file or
//! knows of bundles; that is the caller's.

#![forbid(unsafe_code)]

pub mod read;
pub mod write;
