//! Shared parts of the fuzz targets: inputs that are edits of valid values, these values, and properties of every output.

#![forbid(unsafe_code)]

pub mod bundles;
pub mod edits;
pub mod machine;
pub mod tree;
pub mod truths;
