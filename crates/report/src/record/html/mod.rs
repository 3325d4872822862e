//! The parts of a recording that only its page shows.

use becalm_analyze::picture::Picture;
use becalm_analyze::summary::Summary;

pub(super) mod cpus;
mod detours;
pub(super) mod distribution;
pub(super) mod headline;
mod scale;
pub(super) mod sources;

use crate::form::section::Section;

pub use scale::Scaling;

/// The additional contents of a recording's page.
pub struct Drawn<'a> {
    /// The charts of its detours.
    pub picture: &'a Picture,
    /// Its cost for a job, or why that is unknown.
    pub scaling: Scaling<'a>,
}

/// The charts of a recording.
pub(super) fn pictures(summary: &Summary, drawn: &Drawn<'_>) -> Vec<Section> {
    let mut sections = vec![detours::section(summary, drawn.picture)];
    sections.extend(distribution::section(summary, drawn.picture));
    sections.push(scale::section(&drawn.scaling));
    sections
}

/// The name of a CPU in a text: with its node if there are several.
pub(super) fn place(summary: &Summary, node: &str, cpu: impl std::fmt::Display) -> String {
    if summary.nodes.len() > 1 { format!("{node} CPU {cpu}") } else { format!("CPU {cpu}") }
}
