//! The page of a recorded run: which sections, in which order.

use becalm_analyze::picture::Picture;
use becalm_analyze::summary::Summary;

use super::page::Page;
use super::scale::Scaling;
use super::{cpus, detours, distribution, headline, machine, scale, sources, sure};

/// What the page of a run is made of.
pub struct RunPage<'a> {
    /// Its figures.
    pub summary: &'a Summary,
    /// What is drawn of it.
    pub picture: &'a Picture,
    /// What it costs a job, or why that is not known.
    pub scaling: Scaling<'a>,
    /// Who makes the page: `becalm 0.1.0`.
    pub program: &'a str,
}

/// The page of a run.
#[must_use]
pub fn run_page(run: &RunPage<'_>) -> Page {
    let summary = run.summary;
    let mut sections = vec![headline::section(summary)];
    sections.extend(detours::sections(summary, run.picture));
    sections.extend(distribution::section(summary, run.picture));
    sections.extend(sources::section(summary));
    sections.extend(cpus::section(summary, run.picture));
    sections.extend(sure::section(summary));
    sections.extend(sure::periods(summary));
    sections.extend(distribution::spectrum(summary));
    sections.push(scale::section(&run.scaling));
    sections.push(machine::section(summary));
    let name = run_name(summary);
    let nodes: Vec<&str> = summary.nodes.iter().map(|node| node.doc.node.as_str()).collect();
    let nodes = match nodes.as_slice() {
        [] => String::new(),
        [node] => (*node).to_owned(),
        [first, .., last] => format!("{} nodes, {first} to {last}", nodes.len()),
    };
    let when = summary.nodes.iter().map(|node| crate::header::when(&node.doc)).min().unwrap_or_default();
    Page {
        title: format!("{name}: operating system noise"),
        subtitle: format!("{nodes} \u{b7} {when}"),
        sections,
        foot: vec![
            format!("Made by {} from {}.", run.program, summary.path.display()),
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
