//! The page of a recorded run: which sections, in which order.

use becalm_analyze::picture::Picture;
use becalm_analyze::summary::Summary;

mod cpus;
mod detours;
mod distribution;
mod headline;
mod machine;
mod scale;
mod sources;
mod sure;

use crate::html::Page;

pub(crate) use headline::NOISE_QUIET;
pub use scale::Scaling;

/// What the page of a run shows beside its figures.
pub struct Drawn<'a> {
    /// The pictures of its detours.
    pub picture: &'a Picture,
    /// What it costs a job, or why that is not known.
    pub scaling: Scaling<'a>,
}

/// The page of a run, made by `program`, like `becalm 0.1.0`.
pub(super) fn run_page(summary: &Summary, drawn: &Drawn<'_>, program: &str) -> Page {
    let mut sections = vec![headline::section(summary)];
    sections.extend(detours::sections(summary, drawn.picture));
    sections.extend(distribution::section(summary, drawn.picture));
    sections.extend(sources::section(summary));
    sections.extend(cpus::section(summary, drawn.picture));
    sections.extend(sure::section(summary));
    sections.extend(sure::periods(summary));
    sections.extend(distribution::spectrum(summary));
    sections.push(scale::section(&drawn.scaling));
    sections.push(machine::section(summary));
    let name = run_name(summary);
    let nodes: Vec<&str> = summary.nodes.iter().map(|node| node.doc.node.as_str()).collect();
    let nodes = match nodes.as_slice() {
        [] => String::new(),
        [node] => (*node).to_owned(),
        [first, .., last] => format!("{} nodes, {first} to {last}", nodes.len()),
    };
    let when = summary.nodes.iter().map(|node| crate::record::header::when(&node.doc)).min().unwrap_or_default();
    Page {
        title: format!("{name}: operating system noise"),
        subtitle: format!("{nodes} \u{b7} {when}"),
        sections,
        foot: vec![
            format!("Made by {} from {}.", program, summary.path.display()),
            "Drawn with Apache ECharts 6.1.0, which is part of this file; nothing is loaded from elsewhere.".to_owned(),
        ],
    }
}

/// The run's own name: that of its folder without the ending.
fn run_name(summary: &Summary) -> String {
    let name = summary.path.file_stem().map_or_else(|| summary.path.to_string_lossy(), |name| name.to_string_lossy());
    name.into_owned()
}

/// The place of a CPU in a text: with its node where there are several.
pub(super) fn place(summary: &Summary, node: &str, cpu: impl std::fmt::Display) -> String {
    if summary.nodes.len() > 1 { format!("{node} CPU {cpu}") } else { format!("CPU {cpu}") }
}
