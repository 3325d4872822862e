//! The loss of each CPU over time.

use std::cmp::Ordering;

use becalm_analyze::picture::{HeatMap, HeatRow, Picture};
use becalm_analyze::summary::{CpuSummary, Summary};

use super::place;
use crate::Value;
use crate::catalogue;
use crate::form::field::{Field, fields};
use crate::form::figure::{Ratio, Time};
use crate::form::section::Block;
use crate::form::table::Table;
use crate::form::value::{grouped, time};
use crate::html::{Chart, Heat, HeatLabel, Spec};
use crate::record::figures::{CpuRow, cpu};

/// The most stretches of time in the map's table.
const STRETCHES: usize = 24;

/// How to read the map.
const READING: &str = "Each row is a CPU and each column a stretch of time. The more of it was lost, the more the cell stands out. A conspicuous \
                       row is a CPU with noise of its own, a conspicuous column an event on all CPUs.";

/// The CPU that lost most, and the map if there are detours to draw.
pub(in crate::record) fn blocks(summary: &Summary, picture: Option<&Picture>) -> Vec<Block> {
    let noise = |cpu: &&CpuSummary| cpu.figures.noise_ratio().unwrap_or(0.0);
    let Some(worst) = summary.cpus.iter().max_by(|a, b| noise(a).partial_cmp(&noise(b)).unwrap_or(Ordering::Equal))
    else {
        return Vec::new();
    };
    let mut most = format!(
        "{} lost most: {} of its time.",
        place(summary, &worst.node, worst.cpu),
        worst.figures.noise_ratio().map_or(Value::Missing, Value::Ratio).cell()
    );
    if summary.cpus.len() > 1 {
        let noise = cpu::NOISE_RATIO.cell(&CpuRow::total(summary));
        most.push_str(&format!(" All {} together lost {noise}.", grouped(summary.cpus.len() as u64)));
    }
    // Without detours there is no map.
    let map = picture.filter(|picture| picture.lengths.count() > 0).map(|picture| map(summary, &picture.heat, &most));
    [Block::Text(most)].into_iter().chain(map.into_iter().flatten()).collect()
}

/// The map of lost time per CPU and time cell, and how to read it.
fn map(summary: &Summary, heat: &HeatMap, most: &str) -> [Block; 3] {
    let rows = heat.rows.iter().map(|row| {
        let node = summary.nodes.get(row.node as usize).map_or("", |node| node.doc.node.as_str());
        let short = if summary.nodes.len() > 1 { format!("{node} {}", row.cpus) } else { row.cpus.to_string() };
        let long = place(summary, node, &row.cpus);
        HeatLabel { short, long }
    });
    let chart = Chart {
        id: "heat",
        title: String::new(),
        label: format!("Lost time of each CPU in each stretch of {}. {most}", time(heat.cell_ns)),
        height: (heat.rows.len() as u32 * 22).clamp(60, 420) + 110,
        spec: Spec::Heat(Heat {
            start_ns: heat.start_ns,
            cell_ns: heat.cell_ns,
            last_cell_ns: heat.last_cell_ns,
            row_title: "CPU",
            cells: heat.rows.iter().map(|row| row.noise_ns.clone()).collect(),
            rows: rows.collect(),
        }),
        figures: Some(over_time(summary, heat)),
    };
    let mut note = format!("A cell is {} wide.", time(heat.cell_ns));
    if heat.together() > 1 {
        note.push_str(&format!(
            " A row is up to {} consecutive CPUs, and a cell shows the CPU that lost most.",
            heat.together()
        ));
    }
    if summary.nodes.len() > 1 {
        note.push_str(" Each node\u{2019}s time starts with its own recording.");
    }
    [Block::Text(READING.to_owned()), Block::Charts(vec![chart]), Block::Note(note)]
}

/// A stretch of the map.
#[derive(Clone, PartialEq, Debug)]
struct MapStretch {
    from_ns: i64,
    /// The share lost by all CPUs; `None` if CPUs share a row of the map.
    noise: Option<f64>,
    worst: String,
    worst_cell: f64,
}

fields! {
    stretch: MapStretch {
        FROM_NS = "from_ns", "from", |row| Time(row.from_ns);
        NOISE_RATIO = catalogue::NOISE_RATIO, |row| row.noise.map(Ratio);
        WORST = "worst", "worst", |row| row.worst.clone();
        WORST_RATIO = "worst_ratio", "worst cell", |row| Ratio(row.worst_cell);
    }
}

/// The map as a table, for those who cannot see it: the loss of all CPUs in each stretch of time, and its worst cell.
fn over_time(summary: &Summary, heat: &HeatMap) -> Table {
    let named = |row: &HeatRow| {
        let node = summary.nodes.get(row.node as usize).map_or("", |node| node.doc.node.as_str());
        place(summary, node, &row.cpus)
    };
    let fields: &[&Field<MapStretch>] = match (heat.rows.len(), heat.together()) {
        (1, 1) => &[&stretch::FROM_NS, &stretch::NOISE_RATIO, &stretch::WORST_RATIO],
        (_, 1) => &[&stretch::FROM_NS, &stretch::NOISE_RATIO, &stretch::WORST, &stretch::WORST_RATIO],
        _ => &[&stretch::FROM_NS, &stretch::WORST, &stretch::WORST_RATIO],
    };
    let mut table = Table::new(fields).captioned("The map as figures");
    let cells = heat.rows.iter().map(|row| row.noise_ns.len()).max().unwrap_or(0);
    stretches(heat, cells.div_ceil(STRETCHES).max(1), &named).iter().for_each(|stretch| {
        table.row(fields, stretch);
    });
    table.note =
        "from: since the start of the map. worst: the CPU with the largest loss in one cell, and the share of that cell."
            .to_owned();
    table
}

/// The stretches, of `together` cells each.
fn stretches(heat: &HeatMap, together: usize, name: &dyn Fn(&HeatRow) -> String) -> Vec<MapStretch> {
    let cells = heat.rows.iter().map(|row| row.noise_ns.len()).max().unwrap_or(0);
    let width = |cell: usize| if cell + 1 == cells { heat.last_cell_ns } else { heat.cell_ns };
    let ratio = |ns: i64, whole: i64| ns as f64 / whole.max(1) as f64;
    let stretch = |first: usize| {
        let range = first..(first + together).min(cells);
        let observed: i64 = range.clone().map(width).sum();
        let lost: i64 = heat.rows.iter().flat_map(|row| row.noise_ns.get(range.clone())).flatten().sum();
        let of_row = |row: usize| {
            let noise = range
                .clone()
                .map(move |cell| heat.rows[row].noise_ns.get(cell).map_or(0.0, |ns| ratio(*ns, width(cell))));
            noise.fold(0.0, f64::max)
        };
        // The first of several equal ones.
        let worst = (0..heat.rows.len()).rev().max_by(|a, b| of_row(*a).total_cmp(&of_row(*b)))?;
        Some(MapStretch {
            from_ns: first as i64 * heat.cell_ns,
            noise: (heat.together() <= 1).then(|| ratio(lost, observed.saturating_mul(heat.rows.len() as i64))),
            worst: name(&heat.rows[worst]),
            worst_cell: of_row(worst),
        })
    };
    (0..cells).step_by(together.max(1)).filter_map(stretch).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use becalm_units::CpuId;

    fn row(cpu: u32, noise_ns: &[i64]) -> HeatRow {
        HeatRow { node: 0, cpus: [CpuId::new(cpu)].into_iter().collect(), noise_ns: noise_ns.to_vec() }
    }

    #[test]
    fn a_map_as_a_table_adds_up() {
        let rows = vec![row(0, &[10, 0, 30, 5, 5]), row(1, &[0, 0, 0, 50, 5])];
        let mut heat = HeatMap { start_ns: 7, cell_ns: 100, last_cell_ns: 10, rows };
        let name = |row: &HeatRow| row.cpus.to_string();
        let found = |heat: &HeatMap, together| -> Vec<(i64, Option<f64>, String, f64)> {
            let stretches = stretches(heat, together, &name);
            stretches
                .into_iter()
                .map(|stretch| (stretch.from_ns, stretch.noise, stretch.worst, stretch.worst_cell))
                .collect()
        };
        let zero = || "0".to_owned();
        assert_eq!(
            found(&heat, 2),
            [
                (0, Some(10.0 / 400.0), zero(), 0.1),
                (200, Some(85.0 / 400.0), "1".to_owned(), 0.5),
                (400, Some(10.0 / 20.0), zero(), 0.5),
            ]
        );
        heat.rows[0].cpus = [CpuId::new(0), CpuId::new(2)].into_iter().collect();
        assert!(found(&heat, 1).iter().all(|stretch| stretch.1.is_none()), "shared rows have no sum");
        assert_eq!(found(&HeatMap { rows: Vec::new(), ..heat }, 3), []);
    }
}
