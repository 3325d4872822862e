//! The tables of `becalm top`: figures of CPUs, sources, counters and detours while they are measured. They come from the same
//! fields as the report's tables and JSON.

use becalm_analyze::summary::{Figures, SourceSummary, Timeline};
use becalm_model::node::CounterGrowth;
use becalm_units::CpuId;

use crate::Value;
use crate::form::field::fields;
use crate::form::figure::{Ratio, Time};
use crate::form::grid::Grid;
use crate::record::figures::{self, CpuRow, counter, cpu, source};
use crate::record::timeline::{self, detour};

/// A CPU that is being measured.
#[derive(Clone, Debug)]
pub struct LiveCpu {
    /// The CPU that is measured.
    pub cpu: CpuId,
    /// Its figures since the start.
    pub figures: Figures,
    /// The noise ratio of the last seconds; `None` before any are over.
    pub recent_ratio: Option<f64>,
    /// How long the last detour took, in nanoseconds; `None` before the first.
    pub last_ns: Option<i64>,
}

fields! {
    /// The figures that CPUs have only while they are measured.
    live: LiveCpu {
        RECENT_NOISE_RATIO = "recent_noise_ratio", "noise, 10s",
            |row| row.recent_ratio.map(Ratio);
        LAST_NS = "last_ns", "last", |row| row.last_ns.map(Time);
    }
}

/// CPUs while they are measured: the figures of the report over the time until now, and what is new.
#[must_use]
pub fn live_cpus(cpus: &[LiveCpu]) -> Grid {
    let mut grid = Grid::default();
    let rows: Vec<CpuRow> =
        cpus.iter().map(|cpu| CpuRow { place: Some((String::new(), cpu.cpu)), figures: cpu.figures.clone() }).collect();
    for part in [
        Grid::new(&[&cpu::CPU, &cpu::NOISE_RATIO], &rows),
        Grid::new(&[&live::RECENT_NOISE_RATIO], cpus),
        Grid::new(&[&cpu::RATE_HZ, &cpu::DETOURS], &rows),
        Grid::new(&[&live::LAST_NS], cpus),
        Grid::new(&[&cpu::MEAN_NS, &cpu::MAX_NS, &cpu::TOTAL_NS, &cpu::INCOMPLETE], &rows),
    ] {
        grid.beside(part);
    }
    grid
}

/// Sources, with the figures of the report.
#[must_use]
pub fn sources(sources: &[SourceSummary]) -> Grid {
    let names = [
        &source::SOURCE,
        &source::KIND,
        &source::COUNT,
        &source::MAX_NS,
        &source::MEAN_NS,
        &source::TOTAL_NS,
        &source::WHOLE_NS,
        &source::SHARE_RATIO,
        &source::TIME_RATIO,
    ];
    Grid::new(&names, sources)
}

/// Growth of the kernel's counters over the observed time, added up over the CPUs; those that stand for times first,
/// then the fastest.
#[must_use]
pub fn counters(counters: &[CounterGrowth], observed_ns: Option<i64>) -> Grid {
    let rows = figures::counter_rows("", counters, observed_ns, false);
    Grid::new(&[&counter::NAME, &counter::GROWTH, &counter::RATE_HZ], &rows)
}

/// Detours, each with what took most of it.
#[must_use]
pub fn detours(detours: &[&Timeline]) -> Grid {
    let fields = [&detour::CPU, &detour::DURATION_NS, &detour::START_NS, &timeline::MOSTLY, &detour::INCOMPLETE];
    let rows: Vec<Vec<Value>> =
        detours.iter().map(|row| fields.iter().map(|field| (field.get)(row)).collect()).collect();
    Grid::from_values(&fields, rows)
}

/// What happened in a detour, activity by activity, with a bar for where in it.
#[must_use]
pub fn activities(timeline: &Timeline) -> Grid {
    Grid::new(&timeline::SHOWN, &timeline::rows(timeline))
}
