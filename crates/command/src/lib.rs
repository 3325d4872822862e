//! The parts that commands share: [`Task`], the trait of every command, and arguments, output, messages, progress, rights and exit codes.
//!
//! A command with its arguments is in the crate of its subject; `cli` lists all.

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
