//! Files of other programs, from format to command: [`command`] has `becalm import` and `becalm export`.
//!
//! Import: [`mod@read`] turns bytes into values, with one file per format. [`trace`] finds detours in the kernel events of a trace. Export:
//! [`rows`] gives the rows of a recording one by one. [`mod@write`] turns them into bytes, with one file per format.

#![forbid(unsafe_code)]

pub mod command;
pub mod distribution;
pub mod document;
pub mod read;
pub mod rows;
#[cfg(feature = "schemas")]
pub mod schemas;
pub mod trace;
pub mod write;
