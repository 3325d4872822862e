//! Predicted against measured: on the diagonal both are the same.

use std::fmt::Write as _;
use std::io::{self, Write};

use super::ValidateReport;
use crate::form::sheet::Sheet;
use crate::form::value::factor;

/// Columns and lines of the drawing on a terminal.
const WIDTH: usize = 60;
const HEIGHT: usize = 20;
/// Columns before it.
const LABELS: usize = 12;

/// The ends of both axes: what is there, and a little more.
fn ends(report: &ValidateReport) -> Option<(f64, f64)> {
    let values = report.cells.iter().filter_map(super::ValidateCell::both).flat_map(|(a, b)| [a, b]);
    let (low, high) = values.fold((f64::INFINITY, 0.0_f64), |(low, high), value| (low.min(value), high.max(value)));
    let room = (high - low).max(0.01) * 0.04;
    (low.is_finite() && high.is_finite()).then_some((low - room, high + room))
}

/// On a terminal; nothing of no cells.
pub(super) fn draw(report: &ValidateReport, out: &mut Sheet<'_>) -> io::Result<()> {
    let Some((low, high)) = ends(report) else { return Ok(()) };
    let width = WIDTH.min(out.width().saturating_sub(LABELS));
    let at = |value: f64, cells: usize| ((value - low) / (high - low) * (cells - 1) as f64).round() as usize;
    let mut cells = vec![vec![' '; width]; HEIGHT];
    // The diagonal, column by column.
    let steps = (width - 1) as f64;
    let diagonal =
        (0..width).map(|column| (HEIGHT - 1 - at(low + (high - low) * column as f64 / steps, HEIGHT), column));
    diagonal.for_each(|(line, column)| cells[line][column] = '\u{00b7}');
    for cell in &report.cells {
        if let Some((measured, predicted)) = cell.both() {
            let mark = if cell.synchronized { '\u{25cb}' } else { '\u{25cf}' };
            cells[HEIGHT - 1 - at(predicted, HEIGHT)][at(measured, width)] = mark;
        }
    }
    writeln!(
        out,
        "\n  predicted slowdown, against measured below; \u{25cf} apart, \u{25cb} together, \u{00b7} the same"
    )?;
    for (y, row) in cells.iter().enumerate() {
        let label = match y {
            0 => factor(high),
            y if y == HEIGHT - 1 => factor(low),
            _ => String::new(),
        };
        let row: String = row.iter().collect();
        writeln!(out, "  {label:>7} \u{2502}{}", row.trim_end())?;
    }
    writeln!(out, "  {:>7} \u{2514}{}", "", "\u{2500}".repeat(width))?;
    let (first, last) = (factor(low), factor(high));
    writeln!(out, "  {:>7}  {first}{last:>rest$}", "", rest = width.saturating_sub(first.len()))
}

/// The side of the drawing, and of the room around it, in pixels.
const SIDE: f64 = 480.0;
const ROOM: f64 = 70.0;

/// As an SVG, which opens anywhere; without cells an empty frame.
#[must_use]
pub fn validate_figure(report: &ValidateReport) -> String {
    let (low, high) = ends(report).unwrap_or((1.0, 2.0));
    let x = |value: f64| ROOM + (value - low) / (high - low) * SIDE;
    let y = |value: f64| ROOM + SIDE - (value - low) / (high - low) * SIDE;
    let whole = SIDE + 2.0 * ROOM;
    let mut svg = String::new();
    // Writing to a string cannot fail.
    let mut put = |text: std::fmt::Arguments<'_>| {
        let _ = writeln!(svg, "{text}");
    };
    put(format_args!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {whole} {whole}\" width=\"{whole}\" height=\"{whole}\" \
         font-family=\"sans-serif\" font-size=\"13\" role=\"img\" aria-label=\"predicted against measured slowdown\">"
    ));
    put(format_args!("<rect width=\"{whole}\" height=\"{whole}\" fill=\"#fff\"/>"));
    put(format_args!(
        "<clipPath id=\"frame\"><rect x=\"{ROOM}\" y=\"{ROOM}\" width=\"{SIDE}\" height=\"{SIDE}\"/></clipPath>"
    ));
    // Within 15 % of the measurement.
    put(format_args!(
        "<polygon clip-path=\"url(#frame)\" fill=\"#eef2f7\" points=\"{:.1},{:.1} {:.1},{:.1} {:.1},{:.1} {:.1},{:.1}\"/>",
        x(low),
        y(low * 1.15),
        x(high),
        y(high * 1.15),
        x(high),
        y(high * 0.85),
        x(low),
        y(low * 0.85)
    ));
    put(format_args!(
        "<line x1=\"{:.1}\" y1=\"{:.1}\" x2=\"{:.1}\" y2=\"{:.1}\" stroke=\"#888\" stroke-dasharray=\"4 4\"/>",
        x(low),
        y(low),
        x(high),
        y(high)
    ));
    put(format_args!(
        "<rect x=\"{ROOM}\" y=\"{ROOM}\" width=\"{SIDE}\" height=\"{SIDE}\" fill=\"none\" stroke=\"#444\"/>"
    ));
    for part in 0..=4 {
        let value = low + (high - low) * f64::from(part) / 4.0;
        let label = factor(value);
        put(format_args!(
            "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{label}</text>",
            x(value),
            ROOM + SIDE + 20.0
        ));
        put(format_args!(
            "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{label}</text>",
            ROOM - 8.0,
            y(value) + 4.0
        ));
    }
    for cell in &report.cells {
        let (Some(measured), Some(predicted)) = (cell.measured, cell.predicted) else { continue };
        let (color, fill) = if cell.synchronized { ("#b5541c", "#fff") } else { ("#1f5fa8", "#1f5fa8") };
        let (mx, py) = (x(measured.mean), y(predicted.mean));
        put(format_args!(
            "<g clip-path=\"url(#frame)\" stroke=\"{color}\"><line x1=\"{:.1}\" y1=\"{py:.1}\" x2=\"{:.1}\" y2=\"{py:.1}\"/>\
             <line x1=\"{mx:.1}\" y1=\"{:.1}\" x2=\"{mx:.1}\" y2=\"{:.1}\"/></g>",
            x(measured.low),
            x(measured.high),
            y(predicted.low),
            y(predicted.high)
        ));
        put(format_args!(
            "<circle cx=\"{mx:.1}\" cy=\"{py:.1}\" r=\"4\" stroke=\"{color}\" fill=\"{fill}\"><title>{} every {}, {}: measured {}, \
             predicted {}</title></circle>",
            crate::form::value::time(cell.detour_ns),
            crate::form::value::time(cell.interval_ns),
            if cell.synchronized { "together" } else { "apart" },
            factor(measured.mean),
            factor(predicted.mean)
        ));
    }
    let middle = ROOM + SIDE / 2.0;
    put(format_args!("<text x=\"{middle}\" y=\"{}\" text-anchor=\"middle\">measured slowdown</text>", whole - 20.0));
    put(format_args!(
        "<text transform=\"translate(18 {middle}) rotate(-90)\" text-anchor=\"middle\">predicted slowdown</text>"
    ));
    put(format_args!(
        "<text x=\"{ROOM}\" y=\"{:.1}\">{} of {} ranks: filled apart, hollow together, shaded within 15 %</text>",
        ROOM - 20.0,
        report.collective,
        report.ranks
    ));
    put(format_args!("</svg>"));
    svg
}

#[cfg(test)]
mod tests {
    use super::super::tests::report;
    use super::*;
    use crate::form::sheet::Form;

    #[test]
    fn every_measured_cell_is_a_mark() {
        let svg = validate_figure(&report());
        assert_eq!(svg.matches("<circle").count(), 3);
        assert_eq!(svg.matches("fill=\"#fff\"><title>").count(), 1);
        assert!(svg.contains("200us every 1.00ms, apart: measured 1.5000, predicted 1.6500"), "{svg}");
        assert_eq!(svg.matches('<').count(), svg.matches('>').count());
        let mut text = Vec::new();
        draw(&report(), &mut Sheet::new(&mut text, Form::default())).unwrap();
        let text = String::from_utf8(text).unwrap();
        assert!(text.contains('\u{25cf}') && text.contains('\u{25cb}'), "{text}");
        let nothing = ValidateReport { cells: Vec::new(), ..report() };
        assert!(validate_figure(&nothing).starts_with("<svg"));
        let mut text = Vec::new();
        draw(&nothing, &mut Sheet::new(&mut text, Form::default())).unwrap();
        assert!(text.is_empty());
    }
}
