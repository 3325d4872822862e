//! The tables of `becalm top`: figures of CPUs, sources, counters and detours while they are measured. They come from the same
//! fields as the report's tables and JSON.

use becalm_analyze::summary::{Figures, SourceSummary, Timeline};
use becalm_model::node::Counter;
use becalm_units::CpuId;

use crate::Value;
use crate::form::field::{Field, columns};
use crate::form::grid::Grid;
use crate::record::figures::{self, COUNTER, CPU, CpuRow, SOURCE};
use crate::record::timeline::{self, DETOUR, DRAWN, ENTRY};

/// A CPU that is being measured.
#[derive(Clone, Debug)]
pub struct LiveCpu {
    /// Which.
    pub cpu: CpuId,
    /// Its figures since the start.
    pub figures: Figures,
    /// The noise ratio of the last seconds; none before any are over.
    pub recent_ratio: Option<f64>,
    /// The last detour.
    pub last_ns: Option<i64>,
}

/// The figures that CPUs have only while they are measured.
const LIVE: &[Field<LiveCpu>] = &[
    Field {
        name: "recent_noise_ratio",
        title: "noise, 10s",
        get: |row| row.recent_ratio.map_or(Value::Missing, Value::Ratio),
    },
    Field { name: "last_ns", title: "last", get: |row| row.last_ns.map_or(Value::Missing, Value::Time) },
];

/// The figures of CPUs while they are measured.
const CPU_NAMES: [&str; 10] = [
    "cpu",
    "noise_ratio",
    "recent_noise_ratio",
    "rate_hz",
    "detours",
    "last_ns",
    "mean_ns",
    "max_ns",
    "total_ns",
    "incomplete",
];

/// CPUs while they are measured: the figures of the report over the time until now, and what is new.
#[must_use]
pub fn live_cpus(cpus: &[LiveCpu]) -> Grid {
    let mut grid = Grid::default();
    let rows: Vec<CpuRow> =
        cpus.iter().map(|cpu| CpuRow { place: Some((String::new(), cpu.cpu)), figures: cpu.figures.clone() }).collect();
    grid.rows = vec![Vec::with_capacity(CPU_NAMES.len()); cpus.len()];
    for name in CPU_NAMES {
        let part = match LIVE.iter().find(|field| field.name == name) {
            Some(field) => Grid::of(&[field], cpus),
            None => Grid::of(&columns(CPU, &[name]), &rows),
        };
        grid.columns.extend(part.columns);
        for (row, values) in grid.rows.iter_mut().zip(part.rows) {
            row.extend(values);
        }
    }
    grid
}

/// Sources, with the figures of the report.
#[must_use]
pub fn sources(sources: &[SourceSummary]) -> Grid {
    let names = ["source", "kind", "count", "max_ns", "mean_ns", "total_ns", "share_ratio", "time_ratio"];
    Grid::of(&columns(SOURCE, &names), sources)
}

/// Growth of the kernel's counters over the observed time, added up over the CPUs; those that stand for times first,
/// then the fastest.
#[must_use]
pub fn counters(counters: &[Counter], observed_ns: Option<i64>) -> Grid {
    let rows = figures::counter_rows("", counters, observed_ns, false);
    Grid::of(&columns(COUNTER, &["name", "growth", "rate_hz"]), &rows)
}

/// Detours, each with what took most of it.
#[must_use]
pub fn detours(detours: &[&Timeline]) -> Grid {
    const NAMES: [&str; 3] = ["cpu", "duration_ns", "start_ns"];
    let mut fields: Vec<&Field<Timeline>> = columns(DETOUR, &NAMES);
    fields.push(&timeline::MOSTLY);
    fields.extend(columns(DETOUR, &["incomplete"]));
    let rows: Vec<Vec<Value>> =
        detours.iter().map(|row| fields.iter().map(|field| (field.get)(row)).collect()).collect();
    Grid::of_values(&fields, rows)
}

/// What happened in a detour, activity by activity, with a bar for where in it.
#[must_use]
pub fn activities(timeline: &Timeline) -> Grid {
    let mut fields = columns(ENTRY, &["offset_ns", "self_ns", "share_ratio", "kind"]);
    fields.insert(0, &DRAWN[0]);
    fields.push(&DRAWN[1]);
    fields.extend(columns(ENTRY, &["detail"]));
    Grid::of(&fields, &timeline::rows(timeline))
}
