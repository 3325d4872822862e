//! A table of the view: rows of figures in an order, each with a key.

use std::sync::Arc;

use crate::grid::Grid;
use becalm_analyze::summary::Timeline;
use becalm_model::Kind;
use becalm_units::CpuId;

/// The tables of the view.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Panel {
    /// A row for each measured CPU.
    Cpus,
    /// The sources; without a trace, the kernel's counters.
    Sources,
    /// The longest detours of all CPUs.
    Detours,
}

impl Panel {
    /// All of them, from top to bottom.
    pub const ALL: [Self; 3] = [Self::Cpus, Self::Sources, Self::Detours];
}

/// The sort order of a table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Order {
    /// The title of the sort column.
    pub column: &'static str,
    /// Whether its natural order is reversed.
    pub reverse: bool,
}

/// The key of a row, which identifies it when the order has changed.
#[derive(Clone, Debug)]
pub enum RowKey {
    /// A measured CPU, by its number.
    Cpu(CpuId),
    /// A source, by its kind and name.
    Source(Kind, String),
    /// One of the kernel's counters.
    Counter(String),
    /// A detour with its activities.
    Detour(Arc<Timeline>),
}

impl PartialEq for RowKey {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Cpu(a), Self::Cpu(b)) => a == b,
            (Self::Source(kind, a), Self::Source(other, b)) => kind == other && a == b,
            (Self::Counter(a), Self::Counter(b)) => a == b,
            (Self::Detour(a), Self::Detour(b)) => (a.id.cpu, a.start) == (b.id.cpu, b.start),
            _ => false,
        }
    }
}

/// A table in its order.
#[derive(Clone, Debug)]
pub struct PanelTable {
    /// Its table in the view.
    pub panel: Panel,
    /// The title above the table.
    pub title: String,
    /// Its columns and rows, the rows in order.
    pub grid: Grid,
    pub rows: Vec<RowKey>,
    pub sorted_by: Option<usize>,
    /// The text shown without rows.
    pub empty: &'static str,
}

impl PanelTable {
    /// A table with its rows in this order.
    pub fn new(panel: Panel, title: String, grid: Grid, rows: Vec<RowKey>, order: Order, empty: &'static str) -> Self {
        let sorted_by = grid.column(order.column);
        let places = sorted_by.map(|column| grid.order(column, order.reverse));
        let places = places.unwrap_or_else(|| (0..rows.len()).collect());
        let grid = Grid { rows: places.iter().map(|place| grid.rows[*place].clone()).collect(), columns: grid.columns };
        let rows = places.iter().map(|place| rows[*place].clone()).collect();
        Self { panel, title, grid, rows, sorted_by, empty }
    }
}
