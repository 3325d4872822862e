//! The time that each CPU lost, by stretch of time.

use becalm_units::{CpuId, CpuList};

use becalm_stats::TimeCells;

/// Maximum number of rows of a map.
pub const ROWS: usize = 128;

/// A map of CPUs against time.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct HeatMap {
    /// The start of the first cell, in nanoseconds since the run's origin.
    pub start_ns: i64,
    /// The length of a cell, in nanoseconds.
    pub cell_ns: i64,
    /// The length of the last cell.
    pub last_cell_ns: i64,
    /// The rows, by node and CPU.
    pub rows: Vec<HeatRow>,
}

/// A CPU, or several consecutive ones if there are too many for a row each.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct HeatRow {
    /// The index of the node in the summary.
    pub node: u32,
    /// The CPUs that share the row.
    pub cpus: CpuList,
    /// The time that the CPU lost per cell, in nanoseconds; for several CPUs the maximum.
    pub noise_ns: Vec<i64>,
}

/// The noise of a CPU, cell by cell.
#[derive(Clone, Debug)]
pub struct CpuCells {
    /// The index of the node in the summary.
    pub node: u32,
    /// The kernel's number of the CPU.
    pub cpu: CpuId,
    /// The cells.
    pub cells: TimeCells,
}

impl HeatMap {
    /// From each CPU's cells, which start at `start` and cover `length` nanoseconds; CPUs of a node are consecutive. More than `rows` CPUs are
    /// merged, as many per row as needed, but never those of two nodes.
    pub fn new(start: i64, length: i64, cpus: Vec<CpuCells>, rows: usize) -> Self {
        let nodes = cpus.chunk_by(|a, b| a.node == b.node);
        let count_rows = |together: usize| nodes.clone().map(|node| node.len().div_ceil(together)).sum::<usize>();
        // Every node takes at least one row, however many nodes there are.
        let most = nodes.clone().map(<[_]>::len).max().unwrap_or(1);
        let together = (1..most).find(|together| count_rows(*together) <= rows).unwrap_or(most);
        let cell_ns = cpus.first().map_or(1, |cpu| cpu.cells.width());
        let cells = cpus.first().map_or(0, |cpu| cpu.cells.noise().len() as i64);
        let rows = nodes.flat_map(|node| node.chunks(together)).map(row).collect();
        let last_cell_ns = length.saturating_sub(cell_ns.saturating_mul((cells - 1).max(0))).clamp(1, cell_ns);
        Self { start_ns: start, cell_ns, last_cell_ns, rows }
    }

    /// The maximum number of CPUs that share a row.
    pub fn together(&self) -> usize {
        self.rows.iter().map(|row| row.cpus.len()).max().unwrap_or(1)
    }
}

fn row(cpus: &[CpuCells]) -> HeatRow {
    let mut noise_ns = vec![0; cpus.iter().map(|cpu| cpu.cells.noise().len()).max().unwrap_or(0)];
    for cpu in cpus {
        for (most, noise) in noise_ns.iter_mut().zip(cpu.cells.noise()) {
            *most = (*most).max(*noise);
        }
    }
    HeatRow { node: cpus.first().map_or(0, |cpu| cpu.node), cpus: cpus.iter().map(|cpu| cpu.cpu).collect(), noise_ns }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cpus(nodes: &[u32]) -> Vec<CpuCells> {
        let mut cpus = Vec::new();
        for (node, count) in nodes.iter().enumerate() {
            for cpu in 0..*count {
                let mut cells = TimeCells::new(0, 2_560);
                cells.add(i64::from(cpu % 256) * 10, 3 + i64::from(cpu));
                cpus.push(CpuCells { node: node as u32, cpu: CpuId::new(cpu), cells });
            }
        }
        cpus
    }

    #[test]
    fn few_cpus_have_a_row_each() {
        let map = HeatMap::new(0, 2_560, cpus(&[2, 1]), 128);
        let rows: Vec<(u32, String)> = map.rows.iter().map(|row| (row.node, row.cpus.to_string())).collect();
        assert_eq!(rows, [(0, "0".to_owned()), (0, "1".to_owned()), (1, "0".to_owned())]);
        assert_eq!((map.rows[1].noise_ns[0], map.rows[1].noise_ns[1]), (0, 4));
        assert_eq!((map.cell_ns, map.last_cell_ns, map.together()), (10, 10, 1));
    }

    #[test]
    fn many_cpus_share_rows_that_show_the_worst() {
        let map = HeatMap::new(0, 2_560, cpus(&[4_096, 3]), 128);
        assert!(map.rows.len() <= 128 && map.together() == 33, "{} rows", map.rows.len());
        assert_eq!(map.rows.last().map(|row| row.cpus.to_string()), Some("0-2".to_owned()));
        let all: usize = map.rows.iter().map(|row| row.cpus.len()).sum();
        assert_eq!(all, 4_099);
        // The longest detour of all is shown where its CPU lost the time.
        let plain = cpus(&[4_096]).iter().flat_map(|cpu| cpu.cells.noise().to_vec()).max();
        assert_eq!(map.rows.iter().flat_map(|row| row.noise_ns.clone()).max(), plain);
    }

    #[test]
    fn no_cpus_have_an_empty_map() {
        assert_eq!(HeatMap::new(5, 0, Vec::new(), 128).rows, []);
    }
}
