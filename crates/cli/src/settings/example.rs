//! A file of settings to begin with.

/// Remarks alone: each setting in it has the value that holds without it or, where that depends on something, a likely one.
pub const EXAMPLE: &str = include_str!("example.conf");
