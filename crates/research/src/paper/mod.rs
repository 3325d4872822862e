//! Papers as data: their tables and figures in their order, what each of them published, the becalm commands that find it
//! again, and what comes of both.
//!
//! - [`catalogue`]: the papers, as files that are part of the program.
//! - `reading`: the place of a figure in the document of a step.
//! - `step_document`: the stored result of a step.
//! - `verdict`: a published number compared with one of this machine.
//! - `report`: the published figures, each with that of this machine.
//! - `command`: `becalm paper`, which runs the steps.

pub mod catalogue;
mod command;
mod reading;
pub(crate) mod report;
mod step_document;
mod verdict;

pub use catalogue::{
    Bars, Chart, ChartAxis, ChartUnit, Curve, Figure, Item, ItemKind, Limit, Paper, Points, PublishedTable, Quieted,
    Ranks, Step, Unit,
};
pub use command::PaperArgs;
pub use reading::{Reading, Term};
pub use step_document::StepDocument;
pub use verdict::{Published, Verdict};
