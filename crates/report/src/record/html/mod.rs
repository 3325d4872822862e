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

pub(crate) use headline::NOISE_QUIET;
pub use scale::Scaling;

/// What the page of a run shows beside its figures.
pub struct Drawn<'a> {
    /// The pictures of its detours.
    pub picture: &'a Picture,
    /// What it costs a job, or why that is not known.
    pub scaling: Scaling<'a>,
}

/// What is drawn of a run.
pub(super) fn pictures(summary: &Summary, drawn: &Drawn<'_>) -> Vec<Section> {
    let mut sections = detours::sections(summary, drawn.picture);
    sections.extend(distribution::section(summary, drawn.picture));
    sections.push(scale::section(&drawn.scaling));
    sections
}

/// The place of a CPU in a text: with its node where there are several.
pub(super) fn place(summary: &Summary, node: &str, cpu: impl std::fmt::Display) -> String {
    if summary.nodes.len() > 1 { format!("{node} CPU {cpu}") } else { format!("CPU {cpu}") }
}
