//! What a recording means: attribution of detours to kernel activities, statistics, the summary of a
//! stored run, the comparison of several, and what a study of configurations comes to.
//!
//! Everything here is pure: it runs on decoded events or on a stored bundle, on any machine and without privileges.

#![forbid(unsafe_code)]

pub mod compare;
pub mod condense;
pub mod distribution;
pub mod events;
pub mod fleet;
pub mod inject;
pub mod job;
pub mod jobs;
pub mod limits;
pub mod modes;
pub mod noise;
pub mod phase_sources;
pub mod phases;
pub mod picture;
pub mod repetitions;
pub mod rows;
pub mod study;
pub mod summary;
pub mod together;
pub mod validation;
pub mod work;
