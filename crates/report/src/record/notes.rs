//! Notes on single CPUs, below the tables.

use std::collections::BTreeMap;

use becalm_analyze::summary::Summary;

use crate::form::section::Block;
use crate::record::figures::CpuRow;

/// Notes on single CPUs; identical ones are merged.
pub(crate) fn notes(summary: &Summary, rows: &[CpuRow], note: impl Fn(&CpuRow) -> Option<String>) -> Vec<Block> {
    let mut said: Vec<(String, String, usize)> = Vec::new();
    let mut known: BTreeMap<String, usize> = BTreeMap::new();
    for row in rows {
        let (Some((node, cpu)), Some(note)) = (&row.place, note(row)) else { continue };
        if let Some(at) = known.get(&note) {
            said[*at].2 += 1;
            continue;
        }
        let place = if summary.nodes.len() > 1 { format!("{node} CPU {cpu}") } else { format!("CPU {cpu}") };
        known.insert(note.clone(), said.len());
        said.push((place, note, 0));
    }
    let named = |(place, note, more): (String, String, usize)| match more {
        0 => Block::Remark(place, note),
        more => Block::Remark(format!("{place} and {more} more"), note),
    };
    said.into_iter().map(named).collect()
}
