//! The parts that commands share: [`Task`], which every command is, and arguments, output, messages, progress, rights and exit codes.
//!
//! A command lives in the crate of its subject, with its arguments; `cli` has the table of all.

#![forbid(unsafe_code)]

pub mod arguments;
pub mod child;
pub mod color;
pub mod exit;
pub mod looks;
pub mod measuring;
pub mod messages;
pub mod noise;
pub mod output;
pub mod pager;
pub mod progress;
pub mod reader;
pub mod recording;
pub mod rights;
mod task;
pub mod voice;

pub use exit::Exit;
pub use task::{Task, built_without};
