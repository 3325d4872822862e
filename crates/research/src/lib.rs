//! Published figures and their reproduction, from data files to commands: papers, platforms, studies of configurations, and sweeps of
//! injected noise.

#![forbid(unsafe_code)]

mod child;
pub mod paper;
pub mod platforms;
#[cfg(feature = "schemas")]
pub mod schemas;
pub mod study;
pub mod sweep;
