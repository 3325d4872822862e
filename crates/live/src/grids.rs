//! The tables of `becalm top`: CPUs, sources, counters and detours during the measurement, from the same fields as the report's tables and JSON.

use becalm_analyze::summary::{Figures, SourceSummary, Timeline};
use becalm_model::node::CounterGrowth;
use becalm_report::Value;
use becalm_report::form::field::{Field, fields};
use becalm_report::form::figure::{Ratio, Time};
use becalm_report::record::figures::{self, CpuRow, counter, cpu, source};
use becalm_report::record::timeline::{self, detour};
use becalm_units::CpuId;
use serde::Serialize;

use crate::grid::Grid;

/// A CPU that is being measured.
#[derive(Clone, Debug)]
pub struct LiveCpu {
    /// The CPU that is measured.
    pub cpu: CpuId,
    /// Its figures since the start.
    pub figures: Figures,
    /// The noise ratio of the last seconds; `None` before the first is over.
    pub recent_ratio: Option<f64>,
    /// The length of the last detour, in nanoseconds; `None` before the first.
    pub last_ns: Option<i64>,
}

/// The row of a measured CPU.
struct LiveRow {
    all: CpuRow,
    recent_ratio: Option<f64>,
    last_ns: Option<i64>,
}

fields! {
    /// The report's figures until now, and those that CPUs have only while they are measured.
    LIVE, live: LiveRow {
        CPU = cpu::CPU => |row| &row.all;
        NOISE_RATIO = cpu::NOISE_RATIO => |row| &row.all;
        RECENT_NOISE_RATIO = "recent_noise_ratio", "noise, 10s", |row| row.recent_ratio.map(Ratio);
        RATE_HZ = cpu::RATE_HZ => |row| &row.all;
        DETOURS = cpu::DETOURS => |row| &row.all;
        LAST_NS = "last_ns", "last", |row| row.last_ns.map(Time);
        MEAN_NS = cpu::MEAN_NS => |row| &row.all;
        MAX_NS = cpu::MAX_NS => |row| &row.all;
        TOTAL_NS = cpu::TOTAL_NS => |row| &row.all;
        INCOMPLETE = cpu::INCOMPLETE => |row| &row.all;
    }
}

/// Measured CPUs: the report's figures until now, and the latest ones.
pub fn live_cpus(cpus: &[LiveCpu]) -> Grid {
    let row = |cpu: &LiveCpu| LiveRow {
        all: CpuRow { place: Some((String::new(), cpu.cpu)), figures: cpu.figures.clone() },
        recent_ratio: cpu.recent_ratio,
        last_ns: cpu.last_ns,
    };
    let fields: Vec<_> = LIVE.iter().collect();
    Grid::new(&fields, &cpus.iter().map(row).collect::<Vec<_>>())
}

const SOURCES: [&Field<SourceSummary>; 9] = [
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

/// Sources, with the report's figures.
pub fn sources(sources: &[SourceSummary]) -> Grid {
    Grid::new(&SOURCES, sources)
}

/// The growth of kernel counters over the observed time, summed over the CPUs; times first, then the fastest.
pub fn counters(counters: &[CounterGrowth], observed_ns: Option<i64>) -> Grid {
    let rows = figures::counter_rows("", counters, observed_ns, false);
    Grid::new(&[&counter::NAME, &counter::GROWTH, &counter::RATE_HZ], &rows)
}

const DETOURS: [&Field<Timeline>; 5] =
    [&detour::CPU, &detour::DURATION_NS, &detour::START_NS, &timeline::MOSTLY, &detour::INCOMPLETE];

/// Detours, each with its costliest source.
pub fn detours(detours: &[&Timeline]) -> Grid {
    let rows: Vec<Vec<Value>> =
        detours.iter().map(|row| DETOURS.iter().map(|field| (field.get)(row)).collect()).collect();
    Grid::from_values(&DETOURS, rows)
}

/// The activities of a detour, with bars for their place in it.
pub fn activities(timeline: &Timeline) -> Grid {
    Grid::new(&timeline::SHOWN, &timeline::rows(timeline))
}

/// Updates of the view, in chronological order: `becalm.top/1`.
#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct TopDocument<'a> {
    /// In the order of time.
    pub updates: Vec<TopUpdate<'a>>,
}

/// An update.
#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct TopUpdate<'a> {
    /// The time that was observed until then.
    pub observed_ns: i64,
    /// The part of it that becalm itself took.
    pub own_ratio: Option<f64>,
    /// A row for each CPU.
    #[cfg_attr(feature = "schemas", schemars(schema_with = "schemas::live_cpus"))]
    pub cpus: &'a Grid,
    /// A row for each source.
    #[cfg_attr(feature = "schemas", schemars(schema_with = "schemas::sources"))]
    pub sources: &'a Grid,
    /// A row for each of the longest detours.
    #[cfg_attr(feature = "schemas", schemars(schema_with = "schemas::detours"))]
    pub detours: &'a Grid,
}

#[cfg(feature = "schemas")]
mod schemas {
    use becalm_report::form::field::object;
    use schemars::{Schema, SchemaGenerator, json_schema};

    use super::{DETOURS, Field, LIVE, SOURCES};

    fn rows<'a, R: 'a>(fields: impl IntoIterator<Item = &'a Field<R>>) -> Schema {
        let row = object(fields.into_iter().map(|field| (field.name, field.json)));
        json_schema!({ "type": "array", "items": row })
    }

    pub(super) fn live_cpus(_: &mut SchemaGenerator) -> Schema {
        rows(LIVE)
    }

    pub(super) fn sources(_: &mut SchemaGenerator) -> Schema {
        rows(SOURCES)
    }

    pub(super) fn detours(_: &mut SchemaGenerator) -> Schema {
        rows(DETOURS)
    }
}
