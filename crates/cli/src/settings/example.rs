//! An example file of settings.

/// All lines are comments: each setting has the value that applies without it or, if that varies, a likely one.
pub const EXAMPLE: &str = include_str!("example.conf");
