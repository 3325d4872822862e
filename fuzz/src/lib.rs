//! What fuzz targets share: inputs that are edits of something valid, the valid things themselves, and what must hold of every
//! output.

#![forbid(unsafe_code)]

pub mod bundles;
pub mod edits;
pub mod machine;
pub mod tree;
pub mod truths;
