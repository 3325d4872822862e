//! The tables of the view, in the user's order.

use becalm_analyze::summary::Timeline;
use becalm_report::Value;
use becalm_units::{CpuId, Nanos};

use crate::grid::Grid;
use crate::grids::{self, LiveCpu};
use crate::live::Live;
use crate::table::{Panel, PanelTable, RowKey};
use crate::view::View;

/// The text shown without any detour.
fn nothing(live: &Live) -> &'static str {
    if live.elapsed() == Nanos::ZERO { "nothing is measured yet" } else { "no detour was seen" }
}

/// The tables from top to bottom.
pub fn tables(live: &Live, view: &View) -> [PanelTable; 3] {
    let picked = view.pick.map_or_else(String::new, |cpu| format!(" of CPU {cpu}"));
    [cpus(live, view), sources(live, view, &picked), detours(live, view, &picked)]
}

fn cpus(live: &Live, view: &View) -> PanelTable {
    let cpus = live.cpus();
    let rows = cpus.iter().map(|cpu| RowKey::Cpu(cpu.cpu)).collect();
    PanelTable::new(
        Panel::Cpus,
        "CPUs".to_owned(),
        grids::live_cpus(&cpus),
        rows,
        view.order(Panel::Cpus),
        "nothing is measured yet",
    )
}

fn sources(live: &Live, view: &View, picked: &str) -> PanelTable {
    if live.is_tracing() || !live.has_begun() {
        let sources = live.sources(view.pick);
        let rows = sources.iter().map(|source| RowKey::Source(source.kind, source.source.clone())).collect();
        let grid = grids::sources(&sources);
        return PanelTable::new(
            Panel::Sources,
            format!("Sources{picked}"),
            grid,
            rows,
            view.order(Panel::Sources),
            nothing(live),
        );
    }
    let observed = live.total(view.pick).duration_ns.map(|ns| match view.pick {
        Some(_) => ns,
        // The counters of several CPUs grew at the same time.
        None => live.elapsed().get(),
    });
    let grid = grids::counters(&live.counters(view.pick), observed);
    let name = |row: &Vec<Value>| RowKey::Counter(row.first().map(Value::cell).unwrap_or_default());
    let rows = grid.rows.iter().map(name).collect();
    let title = format!("Kernel counters that grew{picked}");
    PanelTable::new(Panel::Sources, title, grid, rows, view.order(Panel::Sources), "no counter grew")
}

fn detours(live: &Live, view: &View, picked: &str) -> PanelTable {
    let longest = live.longest(view.pick);
    let shown: Vec<&Timeline> = longest.iter().map(AsRef::as_ref).collect();
    let grid = grids::detours(&shown);
    let rows = longest.iter().cloned().map(RowKey::Detour).collect();
    PanelTable::new(
        Panel::Detours,
        format!("Longest detours{picked}"),
        grid,
        rows,
        view.order(Panel::Detours),
        nothing(live),
    )
}

/// A row with the figures over all CPUs or of the chosen one.
pub fn total(live: &Live, pick: Option<CpuId>) -> Grid {
    let figures = live.total(pick);
    grids::live_cpus(&[LiveCpu { cpu: pick.unwrap_or(CpuId::new(0)), figures, recent_ratio: None, last_ns: None }])
}
