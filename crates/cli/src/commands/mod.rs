//! The commands, one file each: its arguments and a `run` function.

pub mod audit;
pub mod check;
pub mod compare;
pub mod completions;
pub mod config;
pub mod cost;
pub mod doctor;
pub mod export;
pub mod fleet;
pub mod import;
pub mod inject;
pub mod law;
pub mod man;
pub mod paper;
pub mod predict;
pub mod record;
pub mod report;
pub mod run_quiet;
pub mod sources;
pub mod summary;
pub mod top;
pub mod tune;
pub mod watch;
pub mod work;
