//! Curves of slowdown over number of ranks.

use crate::html::{Axis, AxisScale, AxisUnit, Chart, ChartSeries, Lines, Spec};
use crate::predict::{PredictedRow, curve_name, same_curve};

/// The most curves drawn: the colors of more would not be distinguishable.
pub(super) const CURVES: usize = 16;
/// The number of curves with their own colors; further ones reuse the colors with dashed lines.
pub(crate) const COLORS: usize = 8;
/// The smallest end of the slowdown axis.
const SMALLEST: f64 = 1.01;
/// The factor of room above the highest value if bands are open to the top.
const ROOM: f64 = 1.3;
/// Above this ratio of the highest to the lowest value an axis is logarithmic.
const LINEAR_UP_TO: f64 = 10.0;

/// The scale for this range of values.
pub(crate) fn wide_scale(lowest: f64, highest: f64) -> AxisScale {
    if lowest > 0.0 && highest / lowest > LINEAR_UP_TO { AxisScale::Log } else { AxisScale::Linear }
}

/// The scale and the end of an axis of slowdowns from 1 to `highest`, with room above if bands are open to the top.
pub(crate) fn upward(highest: f64, is_open: bool) -> (AxisScale, f64) {
    let scale = wide_scale(1.0, highest);
    let room = if is_open { ROOM } else { 1.0 };
    let top = match scale {
        AxisScale::Log => round_up(highest * room),
        AxisScale::Linear => 1.0 + round_up((highest - 1.0) * room),
    };
    // The ends of an axis must differ.
    (scale, top.max(SMALLEST))
}

/// The next of 1, 1.5, 2, 3, 4, 5, 6 and 8 times a power of ten; 0 for values of 0 and below.
pub(crate) fn round_up(value: f64) -> f64 {
    if value.is_nan() || value <= 0.0 || !value.is_finite() {
        return 0.0;
    }
    let power = 10_f64.powf(value.log10().floor());
    let fits = [1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0].into_iter().find(|factor| factor * power >= value);
    fits.unwrap_or(10.0) * power
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
    let ends = || series.iter().flat_map(|series| series.points.iter().chain(&series.band)).map(|[_, high]| *high);
    let highest = ends().filter(|end| end.is_finite()).fold(1.0, f64::max);
    let (scale, top) = upward(highest, ends().any(f64::is_infinite));
    let ranks = series.iter().flat_map(|series| &series.points).map(|point| point[0]);
    let (fewest, most) = ranks.fold((f64::INFINITY, 0.0_f64), |(low, high), ranks| (low.min(ranks), high.max(ranks)));
    if fewest >= most {
        return None;
    }
    Some(Chart {
        id: "slowdown",
        title: "Slowdown against ranks".to_owned(),
        label: format!("Predicted slowdown against the number of ranks. {text}").trim_end().to_owned(),
        height: 320 + 12 * series.len() as u32,
        spec: Spec::Lines(Lines {
            x: Axis::new("ranks", AxisScale::Log, AxisUnit::Ranks),
            y: Axis::new("slowdown", scale, AxisUnit::Factor).between(Some(1.0), Some(top)),
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
            Some(bounds) => [bounds.low.max(1.0), bounds.high.unwrap_or(f64::INFINITY)],
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn open_bands_end_above_all_values() {
        assert_eq!(upward(1.37, false), (AxisScale::Linear, 1.4));
        assert_eq!(upward(1.37, true), (AxisScale::Linear, 1.5));
        assert_eq!(upward(95.0, false), (AxisScale::Log, 100.0));
        assert_eq!(upward(95.0, true), (AxisScale::Log, 150.0));
        assert_eq!(upward(1.0, false), (AxisScale::Linear, SMALLEST));
    }
}
