//! The tables of the view: rows of figures, ordered as the user wants them, each known by what it stands for.

use std::sync::Arc;

use becalm_analyze::summary::Timeline;
use becalm_model::Kind;
use becalm_report::Value;
use becalm_report::grid::Grid;
use becalm_report::top::{self as grid, LiveCpu};
use becalm_units::{CpuId, Nanos};

use super::live::Live;
use super::view::{Panel, View};

/// What a row stands for; by this it is found again when the order has changed.
#[derive(Clone, Debug)]
pub enum Row {
    /// A CPU.
    Cpu(CpuId),
    /// A source.
    Source(Kind, String),
    /// One of the kernel's counters.
    Counter(String),
    /// A detour.
    Detour(Arc<Timeline>),
}

impl PartialEq for Row {
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
pub struct Table {
    /// Which.
    pub panel: Panel,
    /// What it shows.
    pub title: String,
    /// Its columns and rows, the rows in order.
    pub grid: Grid,
    /// What each row stands for.
    pub rows: Vec<Row>,
    /// Which column it is sorted by.
    pub sorted_by: Option<usize>,
    /// What is said where it has no rows.
    pub empty: &'static str,
}

impl Table {
    fn new(panel: Panel, title: String, grid: Grid, rows: Vec<Row>, view: &View, empty: &'static str) -> Self {
        let order = view.order(panel);
        let sorted_by = grid.column(order.column);
        let places = sorted_by.map(|column| grid.order(column, order.reverse));
        let places = places.unwrap_or_else(|| (0..rows.len()).collect());
        let grid = Grid { rows: places.iter().map(|place| grid.rows[*place].clone()).collect(), columns: grid.columns };
        let rows = places.iter().map(|place| rows[*place].clone()).collect();
        Self { panel, title, grid, rows, sorted_by, empty }
    }
}

/// What is said where there is no detour.
fn nothing(live: &Live) -> &'static str {
    if live.elapsed() == Nanos::ZERO { "nothing is measured yet" } else { "no detour was seen" }
}

/// The tables from top to bottom.
pub fn tables(live: &Live, view: &View) -> [Table; 3] {
    let of = view.pick.map_or_else(String::new, |cpu| format!(" of CPU {cpu}"));
    [cpus(live, view), sources(live, view, &of), detours(live, view, &of)]
}

fn cpus(live: &Live, view: &View) -> Table {
    let cpus = live.cpus();
    let rows = cpus.iter().map(|cpu| Row::Cpu(cpu.cpu)).collect();
    Table::new(Panel::Cpus, "CPUs".to_owned(), grid::live_cpus(&cpus), rows, view, "nothing is measured yet")
}

fn sources(live: &Live, view: &View, of: &str) -> Table {
    if live.is_tracing() || !live.has_begun() {
        let sources = live.sources(view.pick);
        let rows = sources.iter().map(|source| Row::Source(source.kind, source.source.clone())).collect();
        let grid = grid::sources(&sources);
        return Table::new(Panel::Sources, format!("Sources{of}"), grid, rows, view, nothing(live));
    }
    let observed = live.total(view.pick).duration_ns.map(|ns| match view.pick {
        Some(_) => ns,
        // The counters of several CPUs grew at the same time.
        None => live.elapsed().get(),
    });
    let grid = grid::counters(&live.counters(view.pick), observed);
    let name = |row: &Vec<Value>| Row::Counter(row.first().map(Value::cell).unwrap_or_default());
    let rows = grid.rows.iter().map(name).collect();
    let title = format!("Kernel counters that grew{of}");
    Table::new(Panel::Sources, title, grid, rows, view, "no counter grew")
}

fn detours(live: &Live, view: &View, of: &str) -> Table {
    let longest = live.longest(view.pick);
    let shown: Vec<&Timeline> = longest.iter().map(AsRef::as_ref).collect();
    let grid = grid::detours(&shown);
    let rows = longest.iter().cloned().map(Row::Detour).collect();
    Table::new(Panel::Detours, format!("Longest detours{of}"), grid, rows, view, nothing(live))
}

/// The figures over all CPUs, or of the one that is picked, as one row.
pub fn total(live: &Live, pick: Option<CpuId>) -> Grid {
    let figures = live.total(pick);
    grid::live_cpus(&[LiveCpu { cpu: pick.unwrap_or(CpuId::new(0)), figures, recent_ratio: None, last_ns: None }])
}
