//! Papers as data: their tables and figures in order, the published numbers of each, the becalm commands that reproduce them, and the
//! comparison of both.
//!
//! - `catalogue`: the papers, as files inside the program.
//! - `reading`: the place of a figure in the document of a step.
//! - `step_document`: the stored result of a step.
//! - `verdict`: a published number compared with one of this machine.
//! - `report`: the published figures, each with that of this machine.
//! - `command`: `becalm paper`, which runs the steps.

mod catalogue;
mod command;
#[cfg(test)]
mod numbers;
mod reading;
pub(crate) mod report;
pub(crate) mod step_document;
mod verdict;

pub use command::PaperArgs;
