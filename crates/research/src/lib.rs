//! Published figures and what reproduces them: papers, platforms and studies, from their data files to the commands.

#![forbid(unsafe_code)]

pub mod paper;
pub mod platforms;
#[cfg(feature = "schemas")]
pub mod schemas;
pub mod study;
