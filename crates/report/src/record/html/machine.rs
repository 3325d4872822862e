//! What was measured, where and how, and everything that limits what the numbers say.

use becalm_analyze::summary::Summary;

use crate::form::field::columns;
use crate::form::value::grouped;
use crate::html::HtmlTable;
use crate::html::{Block, Section};
use crate::record::figures::{CPU, CpuRow};
use crate::record::header;

/// Nodes beyond this are not described one by one.
const NODES: usize = 32;

/// How many loops are listed at most.
const ROWS: usize = 256;

pub(super) fn section(summary: &Summary) -> Section {
    let mut blocks: Vec<Block> = Vec::new();
    for (node, warning) in &summary.warnings {
        let of = if summary.nodes.len() > 1 { format!("{node}: ") } else { String::new() };
        blocks.push(Block::Warning { text: format!("{of}{}", warning.message), advice: warning.advice.clone() });
    }
    for node in summary.nodes.iter().take(NODES) {
        blocks.push(Block::Facts(header::node_lines(node)));
    }
    if summary.nodes.len() > NODES {
        blocks.push(Block::Note(format!("The first {NODES} of {} nodes.", grouped(summary.nodes.len() as u64))));
    }
    blocks.push(Block::Facts(header::whole_lines(summary)));
    blocks.push(Block::Table(loops(summary)));
    Section {
        id: "machine",
        title: "Machine, clock and losses".to_owned(),
        short: "Machine",
        reading: "Read this before believing the numbers: what was recorded and how, how well the clock is known, and what was \
                  lost or could not be seen."
            .to_owned(),
        blocks,
    }
}

fn loops(summary: &Summary) -> HtmlTable {
    let mut names = vec!["cpu", "duration_ns", "iterations", "t_min_ns", "threshold_ns"];
    names.extend(["lost_events", "incomplete"]);
    for (name, there) in [
        ("unseen_ns", summary.total.unseen_ns.is_some()),
        ("steal_ns", summary.cpus.iter().any(|cpu| cpu.figures.steal_ns.is_some())),
        ("cut_short", summary.total.cut_short),
    ] {
        if there {
            names.push(name);
        }
    }
    if summary.nodes.len() > 1 {
        names.insert(0, "node");
    }
    let fields = columns(CPU, &names);
    let mut table = HtmlTable::new("Loops that measured", &fields);
    for cpu in summary.cpus.iter().take(ROWS) {
        table.row(&fields, &CpuRow::of(cpu));
    }
    if summary.cpus.len() > ROWS {
        table.note = format!("The first {ROWS} of {} CPUs.", grouped(summary.cpus.len() as u64));
    }
    if summary.cpus.len() > 1 {
        table.total(&fields, &CpuRow::total(summary), "all");
    }
    table
}
