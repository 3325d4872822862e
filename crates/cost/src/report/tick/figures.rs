//! The figures of a tick's cost, with name, title and unit.

use becalm_report::catalogue;
use becalm_report::form::field::{Field, Title, field, fields};
use becalm_report::form::figure::{Factor, Points, Rate, Ratio, Share, Time, interval};

use super::TickRow;
use crate::analysis::tick::{
    Contribution, EventAtRate, FittedPoint, HandlerMode, HandlerRow, RatePair, RoundsInterval,
};
use crate::report::events;

const PROCESSES: Title = Title::new("processes", "processes");
const ADDED_HZ: Title = Title::new("added_hz", "added");
/// Interrupts per second, added ones and the CPU's own.
const INTERRUPTS_HZ: Title = Title::new("rate_hz", "interrupts");

fields! {
    /// The figures of a processor. Percentages are of a CPU, per 1,000 interrupts per second.
    pub(super) PROCESSOR, processor: TickRow {
        NAME = "name", "processor", |row| row.analysis.name.clone();
        TRAP_PERCENT = "trap_percent", "trap", |row| Points(row.analysis.trap_percent);
        HANDLER_PERCENT = "handler_percent", "handler", |row| Points(row.analysis.handler_percent);
        INDIRECT_PERCENT = "indirect_percent", "indirect", |row| Points(row.analysis.indirect_percent);
        INDIRECT_PERCENT_LOW = "indirect_percent_low", "low", |row| row.indirect.map(|bounds| bounds.low).map(Points);
        INDIRECT_PERCENT_HIGH = "indirect_percent_high", "high", |row| row.indirect.map(|bounds| bounds.high).map(Points);
        INDIRECT_TRIMMED_PERCENT = "indirect_trimmed_percent", "trimmed", |row| Points(row.analysis.indirect_trimmed_percent);
        SUM_PERCENT = "sum_percent", "sum", |row| Points(row.analysis.sum_percent());
        SUM_TRIMMED_PERCENT = "sum_trimmed_percent", "trimmed sum", |row| Points(row.analysis.sum_trimmed_percent());
        SUM_PERCENT_LOW = "sum_percent_low", "low", |row| row.sum.map(|bounds| bounds.low).map(Points);
        SUM_PERCENT_HIGH = "sum_percent_high", "high", |row| row.sum.map(|bounds| bounds.high).map(Points);
        PAIRS = "pairs", "pairs", |row| row.analysis.pairs.len();
        INDIRECT_SHARE_MEDIAN = "indirect_share_median", "indirect share", |row| row.analysis.indirect_share_median().map(Share);
        RESIDUAL_MAX_RATIO = "residual_max_ratio", "max residual", |row| row.analysis.residual_max_ratio().map(Ratio);
        R2_RATIO = "r2_ratio", "R2", |row| row.analysis.r2_ratio().map(Factor);
        LINE_PERCENT = "line_percent", "by line", |row| Points(row.analysis.line.sum_percent);
        LINE_R2_RATIO = "line_r2_ratio", "R2 of line", |row| row.analysis.line.r2_ratio.map(Factor);
    }
}

fn between(bounds: Option<RoundsInterval>) -> Option<String> {
    interval(bounds.map(|bounds| Points(bounds.low)), bounds.map(|bounds| Points(bounds.high)))
}

fields! {
    /// Columns only of tables.
    pub(super) processor_columns: TickRow {
        INDIRECT_INTERVAL = "indirect_interval", "95 % CI", |row| between(row.indirect);
        SUM_INTERVAL = "sum_interval", "95 % CI", |row| between(row.sum);
    }
}

const MODE_NAME: Title = Title::new("mode", "handler");

/// The cost of an interrupt on a processor with one of its handlers.
pub(super) struct ModeRow {
    /// The name of the processor.
    pub processor: String,
    /// The cost with the handler.
    pub mode: HandlerMode,
}

fields! {
    /// The figures of a handler. Percentages are of a CPU, per 1,000 interrupts per second.
    pub(super) MODE, mode: ModeRow {
        MODE_NAME = super::MODE_NAME, |row| row.mode.mode.clone();
        TRAP_PERCENT = "trap_percent", "trap", |row| Points(row.mode.trap_percent);
        HANDLER_PERCENT = "handler_percent", "its time", |row| Points(row.mode.handler_percent);
        INDIRECT_PERCENT = "indirect_percent", "indirect", |row| Points(row.mode.indirect_percent);
        SUM_PERCENT = "sum_percent", "sum", |row| Points(row.mode.sum_percent());
        INDIRECT_TRIMMED_PERCENT = "indirect_trimmed_percent", "trimmed", |row| Points(row.mode.indirect_trimmed_percent);
        SUM_TRIMMED_PERCENT = "sum_trimmed_percent", "trimmed sum", |row| Points(row.mode.sum_trimmed_percent());
    }
}

/// The name of the processor, which in the document contains its handlers.
pub(super) const MODE_OF: Field<ModeRow> = field!("name", "processor", |row| row.processor.clone());

fields! {
    /// The shares of the parts of an interrupt at a rate.
    pub(super) CONTRIBUTION, contribution: Contribution {
        MODE_NAME = super::MODE_NAME, |row| row.mode.clone();
        INTERRUPTS_HZ = super::INTERRUPTS_HZ, |row| Rate(row.rate_hz);
        TRAP_RATIO = "trap_ratio", "trap", |row| Ratio(row.trap_ratio);
        HANDLER_RATIO = "handler_ratio", "its time", |row| Ratio(row.handler_ratio);
        INDIRECT_RATIO = "indirect_ratio", "indirect", |row| Ratio(row.indirect_ratio);
        TOTAL_RATIO = "total_ratio", "together", |row| Ratio(row.total_ratio());
    }
}

fields! {
    /// The figures of a pair of rates.
    pub(super) PAIR, pair: RatePair {
        PROCESSES = super::PROCESSES, |row| row.processes;
        LOW_HZ = "low_hz", "from", |row| Rate(row.low_hz);
        HIGH_HZ = "high_hz", "to", |row| Rate(row.high_hz);
        EXTRA_INTERRUPTS = "extra_interrupts", "extra interrupts", |row| Factor(row.extra_interrupts);
        EXTRA_NS = "extra_ns", "extra", |row| Time::rounded(row.extra_ns);
        DIRECT_NS = "direct_ns", "direct", |row| Time::rounded(row.direct_ns);
        INDIRECT_NS = "indirect_ns", "indirect", |row| Time::rounded(row.indirect_ns());
        INDIRECT_PERCENT = "indirect_percent", "indirect", |row| Points(row.indirect_percent());
        INDIRECT_SHARE_RATIO = "indirect_share_ratio", "indirect share", |row| row.indirect_share().map(Share);
    }
}

fields! {
    /// The figures of a measurement compared with the model.
    pub(super) COMPARISON, comparison: FittedPoint {
        PROCESSES = super::PROCESSES, |row| row.processes;
        RATE_HZ = catalogue::RATE_HZ, |row| Rate(row.rate_hz);
        OBSERVED_NS = "observed_ns", "observed", |row| Time::rounded(row.observed_ns);
        PREDICTED_NS = "predicted_ns", "predicted", |row| row.predicted_ns.and_then(Time::rounded);
        TICKLESS_NS = "tickless_ns", "tickless", |row| row.tickless_ns.and_then(Time::rounded);
        OVERHEAD_RATIO = "overhead_ratio", "lost", |row| row.overhead_ratio().map(Ratio);
        RESIDUAL_RATIO = "residual_ratio", "residual", |row| row.residual_ratio().map(Ratio);
    }
}

fields! {
    /// The figures of the kernel's record of its handler compared with the model.
    pub(super) HANDLER, handler: HandlerRow {
        ADDED_HZ = super::ADDED_HZ, |row| row.added_hz;
        INTERRUPTS_HZ = super::INTERRUPTS_HZ, |row| Rate(row.rate_hz);
        HANDLER_NS = "handler_ns", "mean handler", |row| Time::rounded(row.handler_ns);
        RECORDED_RATIO = "recorded_ratio", "recorded share", |row| Ratio(row.recorded_ratio);
        MODEL_RATIO = "model_ratio", "by the model", |row| Ratio(row.model_ratio);
        LOST_EVENTS = catalogue::LOST_EVENTS, |row| row.lost_events;
    }
}

fields! {
    /// The figures of the processor's counts during the sorts.
    pub(super) EVENT, event: EventAtRate {
        ADDED_HZ = super::ADDED_HZ, |row| row.added_hz;
        INTERRUPTS_HZ = super::INTERRUPTS_HZ, |row| Rate(row.rate_hz);
        EVENT = events::event();
        USER_PER_SORT = events::user("user_per_sort", "user, per sort");
        KERNEL_PER_SORT = events::kernel("kernel_per_sort", "kernel, per sort");
        COUNTED_RATIO = events::counted();
    }
}

/// Measurements of one rate compared with the model, over all numbers of processes.
pub(super) struct RateRow {
    pub rate_hz: f64,
    /// The time relative to a tickless system, averaged over the numbers of processes.
    pub observed_ratio: f64,
    /// The model's prediction of the same ratio.
    pub predicted_ratio: f64,
    /// The largest residual's size.
    pub residual_ratio: f64,
}

fields! {
    pub(super) RATE, rate: RateRow {
        INTERRUPTS_HZ = super::INTERRUPTS_HZ, |row| Rate(row.rate_hz);
        OBSERVED_RATIO = "observed_ratio", "observed", |row| Factor(row.observed_ratio);
        PREDICTED_RATIO = "predicted_ratio", "predicted", |row| Factor(row.predicted_ratio);
        RESIDUAL_RATIO = "residual_ratio", "max residual", |row| Ratio(row.residual_ratio);
    }
}

/// The rows by rate; empty if the model predicts nothing.
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
