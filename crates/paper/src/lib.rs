//! Papers as data: their tables and figures in their order, what each of them published, the becalm commands that find it
//! again, and what comes of both.
//!
//! - [`catalogue`]: the papers, as files that are part of the program.
//! - [`reading`]: where in the document of a step a figure lies.
//! - [`step_document`]: what is kept of a step that was run.
//! - [`verdict`]: a published number held against one of here.
//!
//! Nothing here runs a command, reads a file or a clock: that is the work of who has the campaign.

#![forbid(unsafe_code)]

pub mod catalogue;
pub mod reading;
pub mod step_document;
pub mod verdict;

pub use catalogue::{
    Bars, Chart, ChartAxis, ChartUnit, Curve, Figure, Item, ItemKind, Limit, Paper, Points, PublishedTable, Quieted,
    Ranks, Step, Unit,
};
pub use reading::{Reading, Term};
pub use step_document::StepDocument;
pub use verdict::{Published, Verdict};
