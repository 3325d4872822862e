//! Published figures and what reproduces them: papers, from their data files to the command.

#![forbid(unsafe_code)]

pub mod paper;
#[cfg(feature = "schemas")]
pub mod schemas;
