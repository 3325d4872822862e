//! The duration of a job's phases, by number of ranks.

use crate::form::value::time;
use crate::html::{Axis, AxisScale, AxisUnit, Chart, ChartSeries, Lines, Spec};
use crate::predict::{PredictedRow, curve_name, same_curve};

use super::wide_scale;

/// The most of these charts.
const CHARTS: usize = 6;

/// One chart per grain and collective with more than one number of ranks.
pub(super) fn charts(lines: &[PredictedRow]) -> Vec<Chart> {
    let curves = lines.chunk_by(same_curve);
    curves.take(CHARTS).filter_map(|rows| chart(curve_name(lines, &rows[0].row), rows)).collect()
}

fn chart(name: String, rows: &[PredictedRow]) -> Option<Chart> {
    let series = |name: &str, value: fn(&PredictedRow) -> Option<f64>| {
        let mut points: Vec<[f64; 2]> =
            rows.iter().filter_map(|line| Some([line.row.ranks as f64, value(line)?])).collect();
        points.sort_by(|a, b| a[0].total_cmp(&b[0]));
        ChartSeries { name: name.to_owned(), points, dots: true, ..ChartSeries::default() }
    };
    let mut all = vec![
        series("mean", |line| line.row.mean_phase_ns),
        series("median", |line| Some(line.row.spread?.median.get() as f64)),
        series("99 %", |line| Some(line.row.spread?.p99.get() as f64)),
        series("99.9 %", |line| Some(line.row.spread?.p999.get() as f64)),
        series("worst", |line| Some(line.row.worst_phase?.get() as f64)),
    ];
    let quiet = series("without noise", |line| Some(line.row.quiet_phase_ns).filter(|quiet| *quiet > 0.0));
    all.push(ChartSeries { dashed: true, dots: false, ..quiet });
    all.retain(|series| !series.points.is_empty());
    let points = || all.iter().flat_map(|series| &series.points);
    let (fewest, most) = ends(points().map(|point| point[0]));
    if fewest >= most {
        return None;
    }
    let (low, high) = ends(points().map(|point| point[1]));
    Some(Chart {
        id: "phases-",
        label: format!(
            "{name}: how long phases take by the number of ranks, from {} to {}.",
            time(low.round() as i64),
            time(high.round() as i64)
        ),
        title: name,
        height: 340,
        spec: Spec::Lines(Lines {
            x: Axis::new("ranks", AxisScale::Log, AxisUnit::Ranks),
            y: Axis::new("a phase takes", wide_scale(low, high), AxisUnit::Time),
            series: all,
            marks: Vec::new(),
        }),
        figures: None,
    })
}

/// The smallest and the largest value.
fn ends(values: impl Iterator<Item = f64>) -> (f64, f64) {
    values.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| (low.min(value), high.max(value)))
}
