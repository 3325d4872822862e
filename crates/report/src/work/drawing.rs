//! Drawings of a distribution for a terminal: points over two axes, and a histogram of bars.

use becalm_analyze::work::Curves;

use crate::form::value::{fine, grouped, time};
use becalm_units::plural;

/// Columns of a drawing.
const WIDTH: usize = 64;
/// Lines of the drawing.
const HEIGHT: usize = 10;
/// The width of a label left of the axis.
const LABEL: usize = 9;
/// Rows of a histogram, at most.
const ROWS: usize = 20;
/// Characters of the longest bar.
const BAR: usize = 50;

/// Draws points whose coordinates are shares from 0 to 1, with labels on the vertical axis at the given heights, highest first, and at both ends of
/// the horizontal axis.
fn draw(points: &[(f64, f64)], up: &[(f64, String)], ends: [String; 2], title: &str) -> Vec<String> {
    let mut cells = [[' '; WIDTH]; HEIGHT];
    let line = |height: f64| HEIGHT - 1 - (height.clamp(0.0, 1.0) * (HEIGHT - 1) as f64).round() as usize;
    for (along, height) in points {
        let column = (along.clamp(0.0, 1.0) * (WIDTH - 1) as f64).round() as usize;
        cells[line(*height)][column] = '\u{25cf}';
    }
    let mut lines = vec![String::new(), title.to_owned()];
    lines.extend(cells.iter().enumerate().map(|(y, row)| {
        let label = up.iter().find(|(height, _)| line(*height) == y).map_or("", |(_, label)| label.as_str());
        let row: String = row.iter().collect();
        format!("  {label:>LABEL$} \u{2502}{}", row.trim_end())
    }));
    lines.push(format!("  {:>LABEL$} \u{2514}{}", "", "\u{2500}".repeat(WIDTH)));
    let gap = WIDTH.saturating_sub(ends[0].chars().count() + ends[1].chars().count());
    lines.push(format!("  {:>LABEL$}  {}{}{}", "", ends[0], " ".repeat(gap), ends[1]));
    lines
}

/// A position between two ends of a logarithmic axis.
fn logarithmic(value: f64, low: f64, high: f64) -> f64 {
    if high > low && low > 0.0 { (value.max(low) / low).ln() / (high / low).ln() } else { 0.0 }
}

/// Draws the share of samples that are not above a value, up to the 99.9th percentile.
pub(super) fn cumulative(curves: &Curves) -> Vec<String> {
    let inside: Vec<&(i64, f64)> =
        curves.distribution.iter().filter(|(value, _)| *value <= curves.histogram_end_ns).collect();
    let (Some((low, _)), Some((high, _))) = (inside.first(), inside.last()) else { return Vec::new() };
    if low == high {
        return Vec::new();
    }
    let points: Vec<(f64, f64)> =
        inside.iter().map(|(value, share)| ((value - low) as f64 / (high - low) as f64, *share)).collect();
    let up = [(1.0, "100%".to_owned()), (0.5, "50%".to_owned()), (0.0, "0%".to_owned())];
    draw(&points, &up, [fine(*low), fine(*high)], "Cumulative distribution: samples up to a time")
}

/// Draws the share of samples above a value, both axes logarithmic.
pub(super) fn survival(curves: &Curves) -> Vec<String> {
    let above: Vec<(i64, f64)> = curves
        .distribution
        .iter()
        .map(|(value, share)| (*value, 1.0 - share))
        .filter(|(value, share)| *value > 0 && *share > 1e-12)
        .collect();
    let (Some((low, _)), Some((high, least))) = (above.first(), above.last()) else { return Vec::new() };
    if low == high || *least >= 1.0 {
        return Vec::new();
    }
    let points: Vec<(f64, f64)> = above
        .iter()
        .map(|(value, share)| (logarithmic(*value as f64, *low as f64, *high as f64), logarithmic(*share, *least, 1.0)))
        .collect();
    // Whole powers of ten within the axis.
    let decades = (0..).map(|exponent| 10_f64.powi(-exponent)).take_while(|share| share >= least);
    let up: Vec<(f64, String)> = decades
        .map(|share| (logarithmic(share, *least, 1.0), format!("{}%", crate::form::value::three_digits(share * 100.0))))
        .collect();
    draw(&points, &up, [fine(*low), fine(*high)], "Survival: samples above a time (both axes logarithmic)")
}

/// Draws the consecutive samples: the longest and the shortest in each part of the run.
pub(super) fn series(curves: &Curves) -> Vec<String> {
    let (Some(first), Some(last)) = (curves.series.first(), curves.series.last()) else { return Vec::new() };
    let low = curves.series.iter().map(|moment| moment.min_ns).min().unwrap_or(0).max(1) as f64;
    let high = curves.series.iter().map(|moment| moment.max_ns).max().unwrap_or(0) as f64;
    if high <= low || last.start_ns == first.start_ns {
        return Vec::new();
    }
    let span = (last.start_ns - first.start_ns) as f64;
    let mut points = Vec::new();
    for moment in &curves.series {
        let along = (moment.start_ns - first.start_ns) as f64 / span;
        for value in [moment.min_ns, moment.max_ns] {
            points.push((along, logarithmic(value as f64, low, high)));
        }
    }
    let middle = (low * high).sqrt();
    let up = [(1.0, fine(high as i64)), (0.5, fine(middle as i64)), (0.0, fine(low as i64))];
    let ends = [time(first.start_ns), time(last.start_ns)];
    draw(&points, &up, ends, "Consecutive samples: shortest and longest of each part of the run")
}

/// A value with the digits that distinguish it from the next one, `width` away, as far as there is room.
fn edge(ns: i64, width: i64) -> String {
    let (unit, name) = match ns.unsigned_abs() {
        0..1_000 => return time(ns),
        1_000..1_000_000 => (1e3, "us"),
        1_000_000..1_000_000_000 => (1e6, "ms"),
        _ => (1e9, "s"),
    };
    let value = ns as f64 / unit;
    let whole = value.abs().log10().floor().max(0.0) as usize + 1;
    let wanted = (unit / width.max(1) as f64).log10().ceil().max(0.0) as usize;
    let room = LABEL.saturating_sub(whole + 1 + name.len() + usize::from(ns < 0));
    format!("{value:.*}{name}", wanted.max(3_usize.saturating_sub(whole)).min(room))
}

/// Draws the histogram, with the values beyond its end in words.
pub(super) fn histogram(curves: &Curves) -> Vec<String> {
    let each = curves.histogram.len().div_ceil(ROWS).max(1);
    let rows: Vec<(i64, u64)> =
        curves.histogram.chunks(each).map(|bins| (bins[0].from_ns, bins.iter().map(|bin| bin.count).sum())).collect();
    let width = rows.windows(2).map(|pair| pair[1].0 - pair[0].0).next().unwrap_or(0);
    let most = rows.iter().map(|(_, count)| *count).max().unwrap_or(0).max(1);
    let mut lines = vec![String::new(), "Histogram: samples from this value to the next".to_owned()];
    lines.extend(rows.iter().map(|(from, count)| {
        // Any value above 0 is visible.
        let length = (*count as f64 / most as f64 * BAR as f64).round() as usize;
        let bar = if *count > 0 { "\u{2588}".repeat(length.max(1)) } else { String::new() };
        format!("  {:>LABEL$} \u{2502}{bar} {}", edge(*from, width), grouped(*count)).trim_end().to_owned()
    }));
    if curves.beyond > 0 {
        let (end, samples) = (edge(curves.histogram_end_ns, width), plural(curves.beyond, "sample", "samples"));
        lines.push(format!("  {end:>LABEL$}  and beyond: {} {samples}", grouped(curves.beyond)));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use becalm_analyze::work::{Bin, SamplePoint};

    fn drawn(draw: fn(&Curves) -> Vec<String>, curves: &Curves) -> String {
        draw(curves).iter().map(|line| format!("{line}\n")).collect()
    }

    fn curves() -> Curves {
        Curves {
            distribution: vec![(1_000, 0.5), (2_000, 0.9), (3_000, 0.99), (100_000, 1.0)],
            histogram: vec![Bin { from_ns: 1_000, count: 90 }, Bin { from_ns: 2_000, count: 9 }],
            histogram_end_ns: 3_000,
            beyond: 1,
            series: vec![
                SamplePoint { start_ns: 0, min_ns: 1_000, max_ns: 2_000 },
                SamplePoint { start_ns: 1_000_000, min_ns: 1_000, max_ns: 100_000 },
            ],
        }
    }

    #[test]
    fn the_ends_of_each_drawing_are_those_of_its_data() {
        let text = drawn(survival, &curves());
        assert!(text.contains("100% \u{2502}") && text.contains("1.000us") && text.contains("3.000us"), "{text}");
        let text = drawn(series, &curves());
        assert!(text.contains("100.00us \u{2502}") && text.lines().last().unwrap().ends_with("1.00ms"), "{text}");
        let text = drawn(cumulative, &curves());
        assert_eq!(text.matches('\u{25cf}').count(), 3, "{text}");
    }

    #[test]
    fn no_bar_hides_a_sample_and_no_bin_swallows_the_rest() {
        let text = drawn(histogram, &curves());
        assert!(text.contains("\u{2588}\u{2588} 90") && text.contains("3.00us  and beyond: 1 sample\n"), "{text}");
    }

    #[test]
    fn neighboring_bins_are_told_apart() {
        for (ns, width, text) in [
            (1_003_217, 610, "1.0032ms"),
            (1_003_217, 10, "1.00322ms"),
            (1_000_000, 600_000, "1.00ms"),
            (983_400, 4_000, "983us"),
            (983_400, 90, "983.40us"),
            (12, 1, "12ns"),
            (2_500_000_000, 30_000_000, "2.50s"),
            (0, 0, "0ns"),
        ] {
            assert_eq!(edge(ns, width), text);
            assert!(edge(-ns, width).len() <= LABEL + 1);
        }
    }

    #[test]
    fn what_has_no_shape_is_not_drawn() {
        let nothing = Curves::default();
        for draw in [cumulative, survival, series] {
            assert_eq!(drawn(draw, &nothing), "");
        }
    }
}
