//! The meaning of a recording: attribution of detours to kernel activities, statistics, the summary of a stored run, and comparisons.
//!
//! Everything here is pure: it runs on decoded events or on a stored bundle, on any machine and without privileges.

#![forbid(unsafe_code)]

pub mod compare;
pub mod condense;
pub mod events;
pub mod job;
pub mod jobs;
pub mod limits;
pub mod noise;
pub mod phases;
pub mod picture;
pub mod summary;
pub mod together;
pub mod validation;
pub mod work;
