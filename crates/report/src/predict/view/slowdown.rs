//! Curves of slowdown over number of ranks.

use crate::html::{Axis, AxisScale, AxisUnit, Chart, ChartSeries, Lines, Spec};
use crate::predict::{PredictedRow, curve_name, same_curve};

/// The most curves drawn: the colors of more would not be distinguishable.
pub(super) const CURVES: usize = 16;
/// The number of curves with their own colors; further ones reuse the colors with dashed lines.
pub(crate) const COLORS: usize = 8;
/// The smallest end of the slowdown axis.
const SMALLEST: f64 = 1.01;
/// Above this ratio of the highest to the lowest value an axis is logarithmic.
const LINEAR_UP_TO: f64 = 10.0;

/// The scale for this range of values.
pub(crate) fn wide_scale(lowest: f64, highest: f64) -> AxisScale {
    if lowest > 0.0 && highest / lowest > LINEAR_UP_TO { AxisScale::Log } else { AxisScale::Linear }
}

/// The chart of slowdown over ranks: for one grain and collective the prediction next to theory, for several one curve each. `None` with predictions
/// for fewer than two numbers of ranks.
pub(crate) fn chart(lines: &[PredictedRow], text: &str) -> Option<Chart> {
    let curves: Vec<&[PredictedRow]> = lines.chunk_by(same_curve).take(CURVES).collect();
    let mut series = match curves.as_slice() {
        [only] => alone(only),
        several => several.iter().enumerate().map(|(at, rows)| one_of_several(lines, rows, at)).collect(),
    };
    series.retain(|series| !series.points.is_empty());
    series.iter_mut().for_each(sort);
    let ends = series.iter().flat_map(|series| series.points.iter().chain(&series.band)).map(|[_, high]| *high);
    let highest = ends.fold(1.0, f64::max);
    let ranks = series.iter().flat_map(|series| &series.points).map(|point| point[0]);
    let (fewest, most) = ranks.fold((f64::INFINITY, 0.0_f64), |(low, high), ranks| (low.min(ranks), high.max(ranks)));
    if fewest >= most {
        return None;
    }
    // The ends of an axis must differ.
    let y = Axis::new("slowdown", wide_scale(1.0, highest), AxisUnit::Factor);
    Some(Chart {
        id: "slowdown",
        title: "Slowdown against ranks".to_owned(),
        label: format!("Predicted slowdown against the number of ranks. {text}").trim_end().to_owned(),
        height: 320 + 12 * series.len() as u32,
        spec: Spec::Lines(Lines {
            x: Axis::new("ranks", AxisScale::Log, AxisUnit::Ranks),
            y: y.between(Some(1.0), (highest <= SMALLEST).then_some(SMALLEST)),
            series,
            marks: Vec::new(),
        }),
        figures: None,
    })
}

/// The prediction, the expectation by order statistics, and the noise law.
fn alone(rows: &[PredictedRow]) -> Vec<ChartSeries> {
    let theory = |name: &str, value: fn(&PredictedRow) -> Option<f64>| ChartSeries {
        name: name.to_owned(),
        points: rows.iter().filter_map(|line| Some([line.row.ranks as f64, value(line)?])).collect(),
        dashed: true,
        ..ChartSeries::default()
    };
    let predicted = ChartSeries { dashed: false, ..predicted("predicted".to_owned(), rows) };
    let law = theory("law", |line| line.row.law.map(|law| law.slowdown_ratio));
    vec![predicted, theory("expected", |line| line.row.expected_ratio), law]
}

/// The curve of the slowdowns themselves, with their intervals.
fn predicted(name: String, rows: &[PredictedRow]) -> ChartSeries {
    let mut series = ChartSeries { name, dots: true, ..ChartSeries::default() };
    for row in rows.iter().map(|line| &line.row) {
        let Some(slowdown) = row.slowdown else { continue };
        series.points.push([row.ranks as f64, slowdown.mean]);
        series.band.push(match row.recording {
            // An unbounded interval is drawn up to the recording's own value.
            Some(bounds) => [bounds.low.max(1.0), bounds.high.unwrap_or(slowdown.mean)],
            None => [slowdown.low.max(1.0), slowdown.high],
        });
    }
    series
}

/// One of several curves: the prediction, or the expectation if there are too many ranks for a replay.
fn one_of_several(lines: &[PredictedRow], rows: &[PredictedRow], at: usize) -> ChartSeries {
    let mut series = predicted(curve_name(lines, &rows[0].row), rows);
    for row in rows.iter().map(|line| &line.row).filter(|row| row.slowdown.is_none()) {
        let Some(expected) = row.expected_ratio else { continue };
        series.points.push([row.ranks as f64, expected]);
        series.band.push([expected; 2]);
    }
    ChartSeries { dashed: at >= COLORS, ..series }
}

/// Sorts points by their ranks, which may be given in any order.
fn sort(series: &mut ChartSeries) {
    let by_ranks = |order: &mut Vec<usize>| order.sort_by(|a, b| series.points[*a][0].total_cmp(&series.points[*b][0]));
    let mut order: Vec<usize> = (0..series.points.len()).collect();
    by_ranks(&mut order);
    let sorted = |values: &[[f64; 2]]| order.iter().filter_map(|at| values.get(*at).copied()).collect();
    (series.points, series.band) = (sorted(&series.points), sorted(&series.band));
}
