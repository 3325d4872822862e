//! A table of the view: rows of figures in an order, each known by what it stands for.

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
    /// Who took the time; on the lower rungs the kernel's counters.
    Sources,
    /// The longest detours of all CPUs.
    Detours,
}

impl Panel {
    /// All of them, from top to bottom.
    pub const ALL: [Self; 3] = [Self::Cpus, Self::Sources, Self::Detours];
}

/// How a table is sorted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Order {
    /// The title of the column that it is sorted by.
    pub column: &'static str,
    /// Whether its natural order is turned round.
    pub reverse: bool,
}

/// What a row stands for; by this it is found again when the order has changed.
#[derive(Clone, Debug)]
pub enum RowKey {
    /// A measured CPU, by its number.
    Cpu(CpuId),
    /// A source, by its kind and name.
    Source(Kind, String),
    /// One of the kernel's counters.
    Counter(String),
    /// A detour, with what happened in it.
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
    /// Which of the view's tables it is.
    pub panel: Panel,
    /// The title above the table, which says what it shows.
    pub title: String,
    /// Its columns and rows, the rows in order.
    pub grid: Grid,
    pub rows: Vec<RowKey>,
    pub sorted_by: Option<usize>,
    /// What is said where it has no rows.
    pub empty: &'static str,
}

impl PanelTable {
    /// A table whose rows are put in this order.
    pub fn new(panel: Panel, title: String, grid: Grid, rows: Vec<RowKey>, order: Order, empty: &'static str) -> Self {
        let sorted_by = grid.column(order.column);
        let places = sorted_by.map(|column| grid.order(column, order.reverse));
        let places = places.unwrap_or_else(|| (0..rows.len()).collect());
        let grid = Grid { rows: places.iter().map(|place| grid.rows[*place].clone()).collect(), columns: grid.columns };
        let rows = places.iter().map(|place| rows[*place].clone()).collect();
        Self { panel, title, grid, rows, sorted_by, empty }
    }
}
