//! The charts of the page of a tick's cost: figures 3 to 6 of Tsafrir 2007.

use becalm_report::form::value::{grouped, three_digits};
use becalm_report::html::{Axis, AxisScale, AxisUnit, Chart, ChartSeries, Lines, Mark, Spec};

use super::figures::by_rate;
use crate::analysis::tick::{Analysis, Contribution, FittedPoint, HandlerMode, RatePair};

/// Further processors have no charts.
pub(super) const PROCESSORS: usize = 8;

/// The chart names of each processor, unique within the page.
const LOST: [&str; PROCESSORS] = ["lost-1", "lost-2", "lost-3", "lost-4", "lost-5", "lost-6", "lost-7", "lost-8"];
const SHARES: [&str; PROCESSORS] =
    ["share-1", "share-2", "share-3", "share-4", "share-5", "share-6", "share-7", "share-8"];
const PARTS: [&str; PROCESSORS] =
    ["parts-1", "parts-2", "parts-3", "parts-4", "parts-5", "parts-6", "parts-7", "parts-8"];
const MODEL: [&str; PROCESSORS] =
    ["model-1", "model-2", "model-3", "model-4", "model-5", "model-6", "model-7", "model-8"];

fn chart(id: &'static str, label: String, axes: [Axis; 2], series: Vec<ChartSeries>) -> Chart {
    let [x, y] = axes;
    Chart {
        id,
        title: String::new(),
        label,
        height: 300,
        spec: Spec::Lines(Lines { x, y, series, marks: Vec::<Mark>::new() }),
        figures: None,
    }
}

fn line(name: String, points: Vec<[f64; 2]>) -> ChartSeries {
    ChartSeries { name, points, dots: true, ..ChartSeries::default() }
}

fn interrupts() -> Axis {
    Axis::new("interrupts", AxisScale::Linear, AxisUnit::Rate).between(Some(0.0), None)
}

/// The share of the CPU lost by the number of processes: one curve per rate.
pub(super) fn lost(at: usize, analysis: &Analysis) -> Chart {
    let rates = analysis.rates_hz();
    let series: Vec<&[FittedPoint]> = analysis.comparisons.chunk_by(|a, b| a.processes == b.processes).collect();
    let of_rate = |(number, rate_hz): (usize, &f64)| {
        let point = |rows: &&[FittedPoint]| {
            let row = rows.get(number)?;
            Some([f64::from(row.processes), row.overhead_ratio()?])
        };
        line(format!("{}/s", grouped(rate_hz.round() as u64)), series.iter().filter_map(point).collect())
    };
    let curves: Vec<ChartSeries> = rates.iter().enumerate().map(of_rate).collect();
    let label = format!(
        "{}: the share of the CPU that is lost to interrupts and switches, by the number of processes that share it, for {} rates.",
        analysis.name,
        rates.len()
    );
    let axes = [
        Axis::new("processes", AxisScale::Linear, AxisUnit::Count),
        Axis::new("lost", AxisScale::Linear, AxisUnit::Ratio),
    ];
    chart(LOST[at], label, axes, curves)
}

/// The share of the indirect cost in the loss of each pair of rates: one curve per number of processes.
pub(super) fn shares(at: usize, analysis: &Analysis) -> Chart {
    let of_processes = |pairs: &[RatePair]| {
        let mut points: Vec<[f64; 2]> =
            pairs.iter().filter_map(|pair| Some([pair.high_hz - pair.low_hz, pair.indirect_share()?])).collect();
        points.sort_by(|a, b| a[0].total_cmp(&b[0]));
        line(processes(pairs[0].processes), points)
    };
    let curves = analysis.pairs.chunk_by(|a, b| a.processes == b.processes).map(of_processes).collect();
    let median = analysis.indirect_share_median().map_or_else(|| "-".to_owned(), |share| three_digits(share * 100.0));
    let label = format!(
        "{}: the indirect cost as a share of what each of {} pairs of rates lost; their median is {median} %.",
        analysis.name,
        analysis.pairs.len()
    );
    let axes = [
        Axis::new("from the lower rate to the higher", AxisScale::Log, AxisUnit::Rate),
        Axis::new("indirect part", AxisScale::Linear, AxisUnit::Ratio),
    ];
    chart(SHARES[at], label, axes, curves)
}

/// The shares of the parts at each rate, stacked, for each handler.
pub(super) fn parts(at: usize, analysis: &Analysis) -> Chart {
    let modes = analysis.modes();
    let mut rates = vec![0.0];
    rates.extend(analysis.rates_hz());
    let named = modes.len() > 1;
    let stacked = |mode: &HandlerMode| {
        let curve = |name: &str, sum: fn(&Contribution) -> f64| {
            let points = rates.iter().map(|rate_hz| [*rate_hz, sum(&mode.contribution(*rate_hz))]).collect();
            line(if named { format!("{}: {name}", mode.mode) } else { name.to_owned() }, points)
        };
        [
            curve("trap", |part| part.trap_ratio),
            curve("trap and handler", |part| part.trap_ratio + part.handler_ratio),
            curve("with the indirect cost", Contribution::total_ratio),
        ]
    };
    let curves = modes
        .iter()
        .enumerate()
        .flat_map(|(number, mode)| stacked(mode).map(|curve| ChartSeries { dashed: number > 0, ..curve }));
    let label = format!(
        "{}: the share of the CPU that trap, handler and indirect cost take, one upon the other, by interrupts a second.",
        analysis.name
    );
    let axes = [interrupts(), Axis::new("of the CPU", AxisScale::Linear, AxisUnit::Ratio).between(Some(0.0), None)];
    chart(PARTS[at], label, axes, curves.collect())
}

/// Measurements and model: time relative to a tickless system.
pub(super) fn model(at: usize, analysis: &Analysis) -> Chart {
    let mut curves: Vec<ChartSeries> = Vec::new();
    for rows in analysis.comparisons.chunk_by(|a, b| a.processes == b.processes) {
        let points = rows.iter().filter_map(|row| Some([row.rate_hz, row.observed_ns / row.tickless_ns?]));
        curves.push(line(processes(rows[0].processes), points.collect()));
    }
    let predicted = by_rate(&analysis.comparisons).iter().map(|row| [row.rate_hz, row.predicted_ratio]).collect();
    curves.push(ChartSeries { dashed: true, dots: false, ..line("model".to_owned(), predicted) });
    let residual = analysis.residual_max_ratio().map_or_else(|| "-".to_owned(), |far| three_digits(far * 100.0));
    let label = format!(
        "{}: the time of the work by that without any tick, as measured and by the model; they differ by at most {residual} %.",
        analysis.name
    );
    let axes = [interrupts(), Axis::new("by that without any tick", AxisScale::Linear, AxisUnit::Factor)];
    chart(MODEL[at], label, axes, curves)
}

fn processes(count: u32) -> String {
    if count == 1 { "1 process".to_owned() } else { format!("{count} processes") }
}
