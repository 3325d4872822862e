//! A plot for a terminal: curves over a logarithmic axis of counts.

use std::io::{self, Write};

use becalm_units::{Count, printable};

use crate::form::sheet::Sheet;
use crate::form::value::three_digits;

/// Columns of the drawing, if the page has room for them and the labels.
const WIDTH: usize = 64;
/// Columns of the labels to the left, and of the overhang of the last label below.
const LABELS: usize = 15;
/// Lines of the drawing.
const HEIGHT: usize = 12;
/// Above this ratio of largest to smallest value the vertical axis is logarithmic as well.
const LINEAR_UP_TO: f64 = 10.0;
/// The points of each curve; further curves reuse them.
const MARKS: [char; 6] = ['\u{25cf}', '\u{25cb}', '\u{25a0}', '\u{25a1}', '\u{25b2}', '\u{25b3}'];
/// The line between the points.
const LINE: char = '\u{00b7}';

/// A curve: its name, and its points sorted by count.
#[derive(Clone, Debug)]
pub struct Curve {
    /// The name below the drawing.
    pub name: String,
    /// The points: count and value.
    pub points: Vec<(u64, f64)>,
}

/// Draws curves of values of 1 and more. Draws nothing if they have fewer than two different counts or if all values are equal.
pub fn draw(curves: &[Curve], title: &str, out: &mut Sheet<'_>) -> io::Result<()> {
    let mut counts: Vec<u64> = curves.iter().flat_map(|curve| &curve.points).map(|point| point.0).collect();
    counts.sort_unstable();
    counts.dedup();
    let highest = curves.iter().flat_map(|curve| &curve.points).map(|point| point.1).fold(1.0, f64::max);
    let (&[first, .., last], true) = (counts.as_slice(), highest > 1.0) else { return Ok(()) };
    let width = out.width().saturating_sub(LABELS).min(WIDTH);
    let column = |count: u64| {
        let along = ((count as f64) / first as f64).ln() / (last as f64 / first as f64).ln();
        (along * (width - 1) as f64).round() as usize
    };
    let scale = |value: f64| if highest > LINEAR_UP_TO { value.max(1.0).ln() } else { value.max(1.0) - 1.0 };
    let unscale = |height: f64| if highest > LINEAR_UP_TO { height.exp() } else { height + 1.0 };
    let top = scale(highest);
    let line = |height: f64| HEIGHT - 1 - (height / top * (HEIGHT - 1) as f64).round() as usize;
    let mut cells = vec![vec![' '; width]; HEIGHT];
    for (at, curve) in curves.iter().enumerate() {
        for pair in curve.points.windows(2) {
            let ((from, to), (low, high)) =
                ((column(pair[0].0), column(pair[1].0)), (scale(pair[0].1), scale(pair[1].1)));
            // Crossing curves hide no mark, and the earlier line stays.
            for x in from + 1..to {
                let height = low + (high - low) * (x - from) as f64 / (to - from) as f64;
                let row = &mut cells[line(height)];
                if row[x] == ' ' {
                    row[x] = LINE;
                }
            }
        }
        for (count, value) in &curve.points {
            cells[line(scale(*value))][column(*count)] = MARKS[at % MARKS.len()];
        }
    }
    writeln!(out, "\n{}", printable(title))?;
    for (y, row) in cells.iter().enumerate() {
        let text = match y % 4 {
            3 => label(unscale(top * (HEIGHT - 1 - y) as f64 / (HEIGHT - 1) as f64)),
            _ if y == 0 => label(highest),
            _ => String::new(),
        };
        let row: String = row.iter().collect();
        writeln!(out, "  {text:>9} \u{2502}{}", row.trim_end())?;
    }
    writeln!(out, "  {:>9} \u{2514}{}", "", "\u{2500}".repeat(width))?;
    writeln!(out, "  {:>9}  {}", "", axis(&counts, column))?;
    if curves.len() > 1 {
        let names = curves
            .iter()
            .enumerate()
            .map(|(at, curve)| format!("{} {}", MARKS[at % MARKS.len()], printable(&curve.name)));
        writeln!(out, "  {:>9}  {}", "", names.collect::<Vec<_>>().join("   "))?;
    }
    Ok(())
}

/// A value of the vertical axis: three digits, and near 1 four decimals.
fn label(value: f64) -> String {
    if value < 2.0 { format!("{value:.4}") } else { three_digits(value) }
}

/// The counts below their columns, as many as there is room for.
fn axis(counts: &[u64], column: impl Fn(u64) -> usize) -> String {
    let mut text = String::new();
    for count in counts {
        let label = Count::new(*count).to_string();
        // Centered, but not beyond the left edge.
        let at = column(*count).saturating_sub(label.len() / 2);
        if text.is_empty() || at > text.len() {
            text = format!("{text:at$}{label}");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::form::sheet::Form;

    fn drawn(curves: &[Curve]) -> String {
        let mut out = Vec::new();
        draw(curves, "slowdown", &mut Sheet::new(&mut out, Form::default())).unwrap();
        String::from_utf8(out).unwrap()
    }

    fn curve(points: &[(u64, f64)]) -> Curve {
        Curve { name: "1ms".to_owned(), points: points.to_vec() }
    }

    #[test]
    fn the_ends_of_a_curve_are_in_the_corners() {
        for top in [1.5, 3.0, 500.0] {
            let text = drawn(&[curve(&[(1, 1.0), (1 << 10, (1.0 + top) / 2.0), (1 << 20, top)])]);
            let lines: Vec<&str> = text.lines().collect();
            let after = |line: &str| line.split('\u{2502}').nth(1).unwrap().to_owned();
            assert_eq!(after(lines[2]).chars().position(|c| c == MARKS[0]), Some(WIDTH - 1), "{text}");
            assert!(after(lines[HEIGHT + 1]).starts_with(MARKS[0]), "{text}");
            assert_eq!(text.chars().filter(|c| *c == MARKS[0]).count(), 3);
            assert!(
                lines[HEIGHT + 3].trim_start().starts_with('1') && text.contains("1,024") && text.contains("1,048,576")
            );
        }
    }

    #[test]
    fn what_has_no_shape_is_not_drawn() {
        for points in [&[][..], &[(64, 2.0)], &[(64, 1.0), (128, 1.0)]] {
            assert_eq!(drawn(&[curve(points)]), "");
        }
    }
}
