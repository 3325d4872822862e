//! What was measured, where and how, and everything that limits what the numbers say.

use becalm_analyze::summary::Summary;

use crate::form::table::Table;
use crate::form::value::grouped;
use crate::html::{Block, Opening, Section};
use crate::record::figures::{CpuRow, cpu};
use crate::record::header;

/// Nodes beyond this are not described one by one.
const NODES: usize = 32;

/// How many loops are listed at most.
const ROWS: usize = 256;

pub(super) fn section(summary: &Summary) -> Section {
    let mut blocks: Vec<Block> = Vec::new();
    for (node, warning) in &summary.warnings {
        let node_prefix = if summary.nodes.len() > 1 { format!("{node}: ") } else { String::new() };
        blocks
            .push(Block::Warning { text: format!("{node_prefix}{}", warning.message), advice: warning.advice.clone() });
    }
    for node in summary.nodes.iter().take(NODES) {
        blocks.push(Block::Facts(header::node_lines(node)));
    }
    if summary.nodes.len() > NODES {
        blocks.push(Block::Note(format!("The first {NODES} of {} nodes.", grouped(summary.nodes.len() as u64))));
    }
    blocks.push(Block::Facts(header::whole_lines(summary)));
    if summary.nodes.iter().any(|node| node.doc.has_loop()) {
        blocks.push(Block::Table(loops(summary)));
    }
    Section {
        opening: Opening::None,
        id: "machine",
        title: "Machine, clock and losses".to_owned(),
        short: "Machine",
        reading: "Read this before believing the numbers: what was recorded and how, how well the clock is known, and what was \
                  lost or could not be seen."
            .to_owned(),
        blocks,
    }
}

fn loops(summary: &Summary) -> Table {
    let mut fields = vec![&cpu::CPU, &cpu::DURATION_NS, &cpu::ITERATIONS, &cpu::T_MIN_NS, &cpu::THRESHOLD_NS];
    fields.extend([&cpu::LOST_EVENTS, &cpu::INCOMPLETE]);
    for (field, there) in [
        (&cpu::UNSEEN_NS, summary.total.unseen_ns.is_some()),
        (&cpu::STEAL_NS, summary.cpus.iter().any(|cpu| cpu.figures.steal_ns.is_some())),
        (&cpu::CUT_SHORT, summary.total.cut_short),
    ] {
        if there {
            fields.push(field);
        }
    }
    if summary.nodes.len() > 1 {
        fields.insert(0, &cpu::NODE);
    }
    let mut table = Table::new(&fields).captioned("Loops that measured");
    for cpu in summary.cpus.iter().take(ROWS) {
        table.row(&fields, &CpuRow::new(cpu));
    }
    if summary.cpus.len() > ROWS {
        table.note = format!("The first {ROWS} of {} CPUs.", grouped(summary.cpus.len() as u64));
    }
    if summary.cpus.len() > 1 {
        table.total(&fields, &CpuRow::total(summary), "all");
    }
    table
}
