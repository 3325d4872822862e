//! The figures of a tick's cost, each with its name, title and unit.

use becalm_analyze::cost::tick::{Contribution, EventAtRate, FittedPoint, HandlerMode, HandlerRow, RatePair};

use super::TickRow;
use crate::Value;
use crate::catalogue;
use crate::cost::events;
use crate::form::field::{Field, Title};

const PROCESSES: Title = Title::new("processes", "processes");
const ADDED_HZ: Title = Title::new("added_hz", "added");
/// Interrupts a second, those that were added and the CPU's own.
const INTERRUPTS_HZ: Title = Title::new("rate_hz", "interrupts");

fn or_missing(value: Option<f64>, kind: fn(f64) -> Value) -> Value {
    value.map_or(Value::Missing, kind)
}

/// The figures of a processor. Percentages are of a CPU, per 1,000 interrupts a second.
pub(super) const PROCESSOR: &[Field<TickRow>] = &[
    Field { name: "name", title: "processor", get: |row| Value::Text(row.analysis.name.clone()) },
    Field { name: "trap_percent", title: "trap", get: |row| Value::Points(row.analysis.trap_percent) },
    Field { name: "handler_percent", title: "handler", get: |row| Value::Points(row.analysis.handler_percent) },
    Field { name: "indirect_percent", title: "indirect", get: |row| Value::Points(row.analysis.indirect_percent) },
    Field {
        name: "indirect_percent_low",
        title: "low",
        get: |row| or_missing(row.indirect.map(|bounds| bounds.low), Value::Points),
    },
    Field {
        name: "indirect_percent_high",
        title: "high",
        get: |row| or_missing(row.indirect.map(|bounds| bounds.high), Value::Points),
    },
    Field {
        name: "indirect_trimmed_percent",
        title: "trimmed",
        get: |row| Value::Points(row.analysis.indirect_trimmed_percent),
    },
    Field { name: "sum_percent", title: "sum", get: |row| Value::Points(row.analysis.sum_percent()) },
    Field {
        name: "sum_trimmed_percent",
        title: "trimmed sum",
        get: |row| Value::Points(row.analysis.sum_trimmed_percent()),
    },
    Field {
        name: "sum_percent_low",
        title: "low",
        get: |row| or_missing(row.sum.map(|bounds| bounds.low), Value::Points),
    },
    Field {
        name: "sum_percent_high",
        title: "high",
        get: |row| or_missing(row.sum.map(|bounds| bounds.high), Value::Points),
    },
    Field { name: "pairs", title: "pairs", get: |row| Value::Count(row.analysis.pairs.len() as u64) },
    Field {
        name: "indirect_share_median",
        title: "indirect share",
        get: |row| or_missing(row.analysis.indirect_share_median(), Value::Share),
    },
    Field {
        name: "residual_max_ratio",
        title: "max residual",
        get: |row| or_missing(row.analysis.residual_max_ratio(), Value::Ratio),
    },
    Field { name: "r2_ratio", title: "R2", get: |row| or_missing(row.analysis.r2_ratio(), Value::Factor) },
    Field { name: "line_percent", title: "by line", get: |row| Value::Points(row.analysis.line.sum_percent) },
    Field {
        name: "line_r2_ratio",
        title: "R2 of line",
        get: |row| or_missing(row.analysis.line.r2_ratio, Value::Factor),
    },
];

const MODE_NAME: Title = Title::new("mode", "handler");

/// What an interrupt costs on a processor with one of its handlers.
pub(super) struct ModeRow {
    /// The name of the processor.
    pub processor: String,
    /// The cost with the handler.
    pub mode: HandlerMode,
}

/// The figures of a handler. Percentages are of a CPU, per 1,000 interrupts a second.
pub(super) const MODE: &[Field<ModeRow>] = &[
    MODE_NAME.field(|row| Value::Text(row.mode.mode.clone())),
    Field { name: "trap_percent", title: "trap", get: |row| Value::Points(row.mode.trap_percent) },
    Field { name: "handler_percent", title: "its time", get: |row| Value::Points(row.mode.handler_percent) },
    Field { name: "indirect_percent", title: "indirect", get: |row| Value::Points(row.mode.indirect_percent) },
    Field { name: "sum_percent", title: "sum", get: |row| Value::Points(row.mode.sum_percent()) },
    Field {
        name: "indirect_trimmed_percent",
        title: "trimmed",
        get: |row| Value::Points(row.mode.indirect_trimmed_percent),
    },
    Field {
        name: "sum_trimmed_percent",
        title: "trimmed sum",
        get: |row| Value::Points(row.mode.sum_trimmed_percent()),
    },
];

/// The name of the processor, which in the document stands around its handlers.
pub(super) const MODE_OF: Field<ModeRow> =
    Field { name: "name", title: "processor", get: |row| Value::Text(row.processor.clone()) };

/// What the parts of an interrupt take at a rate.
pub(super) const CONTRIBUTION: &[Field<Contribution>] = &[
    MODE_NAME.field(|row| Value::Text(row.mode.clone())),
    INTERRUPTS_HZ.field(|row| Value::Rate(row.rate_hz)),
    Field { name: "trap_ratio", title: "trap", get: |row| Value::Ratio(row.trap_ratio) },
    Field { name: "handler_ratio", title: "its time", get: |row| Value::Ratio(row.handler_ratio) },
    Field { name: "indirect_ratio", title: "indirect", get: |row| Value::Ratio(row.indirect_ratio) },
    Field { name: "total_ratio", title: "together", get: |row| Value::Ratio(row.total_ratio()) },
];

/// The figures of a pair of rates.
pub(super) const PAIR: &[Field<RatePair>] = &[
    PROCESSES.field(|row| Value::Count(row.processes.into())),
    Field { name: "low_hz", title: "from", get: |row| Value::Rate(row.low_hz) },
    Field { name: "high_hz", title: "to", get: |row| Value::Rate(row.high_hz) },
    Field { name: "extra_interrupts", title: "extra interrupts", get: |row| Value::Factor(row.extra_interrupts) },
    Field { name: "extra_ns", title: "extra", get: |row| Value::time(row.extra_ns) },
    Field { name: "direct_ns", title: "direct", get: |row| Value::time(row.direct_ns) },
    Field { name: "indirect_ns", title: "indirect", get: |row| Value::time(row.indirect_ns()) },
    Field { name: "indirect_percent", title: "indirect", get: |row| Value::Points(row.indirect_percent()) },
    Field {
        name: "indirect_share_ratio",
        title: "indirect share",
        get: |row| or_missing(row.indirect_share(), Value::Share),
    },
];

/// The figures of a measurement beside the model.
pub(super) const COMPARISON: &[Field<FittedPoint>] = &[
    PROCESSES.field(|row| Value::Count(row.processes.into())),
    catalogue::RATE_HZ.field(|row| Value::Rate(row.rate_hz)),
    Field { name: "observed_ns", title: "observed", get: |row| Value::time(row.observed_ns) },
    Field { name: "predicted_ns", title: "predicted", get: |row| or_missing(row.predicted_ns, Value::time) },
    Field { name: "tickless_ns", title: "tickless", get: |row| or_missing(row.tickless_ns, Value::time) },
    Field { name: "overhead_ratio", title: "lost", get: |row| or_missing(row.overhead_ratio(), Value::Ratio) },
    Field { name: "residual_ratio", title: "residual", get: |row| or_missing(row.residual_ratio(), Value::Ratio) },
];

/// The figures of the kernel's record of its handler beside the model.
pub(super) const HANDLER: &[Field<HandlerRow>] = &[
    ADDED_HZ.field(|row| Value::Count(row.added_hz.into())),
    INTERRUPTS_HZ.field(|row| Value::Rate(row.rate_hz)),
    Field { name: "handler_ns", title: "mean handler", get: |row| Value::time(row.handler_ns) },
    Field { name: "recorded_ratio", title: "recorded share", get: |row| Value::Ratio(row.recorded_ratio) },
    Field { name: "model_ratio", title: "by the model", get: |row| Value::Ratio(row.model_ratio) },
    catalogue::LOST_EVENTS.field(|row| Value::Count(row.lost_events)),
];

/// The figures of what the processor counted beside the sorts.
pub(super) const EVENT: &[Field<EventAtRate>] = &[
    ADDED_HZ.field(|row| Value::Count(row.added_hz.into())),
    INTERRUPTS_HZ.field(|row| Value::Rate(row.rate_hz)),
    events::event(),
    events::user("user_per_sort", "user, a sort"),
    events::kernel("kernel_per_sort", "kernel, a sort"),
    events::counted(),
];

/// The model beside the measurements of one rate, over all numbers of processes.
pub(super) struct RateRow {
    pub rate_hz: f64,
    /// The mean over the numbers of processes of the time by that on a tickless system.
    pub observed_ratio: f64,
    /// The same ratio as the model predicts it.
    pub predicted_ratio: f64,
    /// The largest residual's size.
    pub residual_ratio: f64,
}

pub(super) const RATE: &[Field<RateRow>] = &[
    INTERRUPTS_HZ.field(|row| Value::Rate(row.rate_hz)),
    Field { name: "observed_ratio", title: "observed", get: |row| Value::Factor(row.observed_ratio) },
    Field { name: "predicted_ratio", title: "predicted", get: |row| Value::Factor(row.predicted_ratio) },
    Field { name: "residual_ratio", title: "max residual", get: |row| Value::Ratio(row.residual_ratio) },
];

/// The rows by rate; none where the model predicts nothing.
pub(super) fn by_rate(comparisons: &[FittedPoint]) -> Vec<RateRow> {
    let series: Vec<&[FittedPoint]> = comparisons.chunk_by(|a, b| a.processes == b.processes).collect();
    let rates = series.first().map_or(0, |series| series.len());
    let share = 1.0 / series.len() as f64;
    let row = |at: usize| {
        let mut row = RateRow { rate_hz: 0.0, observed_ratio: 0.0, predicted_ratio: 0.0, residual_ratio: 0.0 };
        for series in &series {
            let point = series.get(at)?;
            row.rate_hz += point.rate_hz * share;
            row.observed_ratio += point.observed_ns / point.tickless_ns? * share;
            row.predicted_ratio += point.predicted_ns? / point.tickless_ns? * share;
            row.residual_ratio = row.residual_ratio.max(point.residual_ratio()?.abs());
        }
        Some(row)
    };
    (0..rates).filter_map(row).collect()
}
