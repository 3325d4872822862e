//! Prediction against measurement: both are equal on the diagonal.

use std::fmt::Write as _;

use becalm_analyze::validation::means;
use becalm_model::validation::{ValidationCell, ValidationDoc};

use crate::form::section::Block;
use crate::form::sheet::Form;
use crate::form::value::{factor, time};
use crate::html::{Axis, AxisScale, AxisUnit, Chart, ChartSeries, Lines, Spec};

/// Width and height of the drawing on a terminal, in characters.
const WIDTH: usize = 60;
const HEIGHT: usize = 20;
/// Columns for the labels of the vertical axis.
const LABELS: usize = 12;

/// The ends of both axes: the range of the values with a margin.
fn ends(report: &ValidationDoc) -> Option<(f64, f64)> {
    let values = report.cells.iter().filter_map(means).flat_map(|(a, b)| [a, b]);
    let (low, high) = values.fold((f64::INFINITY, 0.0_f64), |(low, high), value| (low.min(value), high.max(value)));
    let room = (high - low).max(0.01) * 0.04;
    (low.is_finite() && high.is_finite()).then_some((low - room, high + room))
}

/// The figure on a terminal and on a page; empty without cells.
pub(super) fn blocks(report: &ValidationDoc, form: Form) -> Vec<Block> {
    ends(report).map_or_else(Vec::new, |ends| {
        vec![Block::Lines(drawing(report, ends, form.width())), Block::Charts(vec![chart(report, ends)])]
    })
}

/// The figure in characters.
fn drawing(report: &ValidationDoc, (low, high): (f64, f64), width: usize) -> Vec<String> {
    let width = WIDTH.min(width.saturating_sub(LABELS));
    let at = |value: f64, cells: usize| ((value - low) / (high - low) * (cells - 1) as f64).round() as usize;
    let mut cells = vec![vec![' '; width]; HEIGHT];
    // The diagonal, column by column.
    let steps = (width - 1) as f64;
    let diagonal =
        (0..width).map(|column| (HEIGHT - 1 - at(low + (high - low) * column as f64 / steps, HEIGHT), column));
    diagonal.for_each(|(line, column)| cells[line][column] = '\u{00b7}');
    for cell in &report.cells {
        if let Some((measured, predicted)) = means(cell) {
            let mark = if cell.synchronized { '\u{25cb}' } else { '\u{25cf}' };
            cells[HEIGHT - 1 - at(predicted, HEIGHT)][at(measured, width)] = mark;
        }
    }
    let title = "  predicted slowdown, against measured below; \u{25cf} apart, \u{25cb} together, \u{00b7} the same";
    let mut lines = vec![String::new(), title.to_owned()];
    lines.extend(cells.iter().enumerate().map(|(y, row)| {
        let label = match y {
            0 => factor(high),
            y if y == HEIGHT - 1 => factor(low),
            _ => String::new(),
        };
        let row: String = row.iter().collect();
        format!("  {label:>7} \u{2502}{}", row.trim_end())
    }));
    lines.push(format!("  {:>7} \u{2514}{}", "", "\u{2500}".repeat(width)));
    let (first, last) = (factor(low), factor(high));
    lines.push(format!("  {:>7}  {first}{last:>rest$}", "", rest = width.saturating_sub(first.len())));
    lines
}

/// The figure as a chart.
fn chart(report: &ValidationDoc, (low, high): (f64, f64)) -> Chart {
    let marks = |name: &str, synchronized| {
        let cells = report.cells.iter().filter(|cell| cell.synchronized == synchronized);
        let points = cells.filter_map(means).map(|(measured, predicted)| [measured, predicted]).collect();
        ChartSeries { name: name.to_owned(), points, dots: true, scattered: true, ..ChartSeries::default() }
    };
    let (name, points) = ("the same".to_owned(), vec![[low; 2], [high; 2]]);
    let diagonal = ChartSeries { name, points, dashed: true, ..ChartSeries::default() };
    let axis = |title| Axis::new(title, AxisScale::Linear, AxisUnit::Factor).between(Some(low), Some(high));
    Chart {
        id: "predicted-",
        title: String::new(),
        label: "The predicted slowdown against the measured one, of each noise.".to_owned(),
        height: 420,
        spec: Spec::Lines(Lines {
            x: axis("measured slowdown"),
            y: axis("predicted slowdown"),
            series: vec![marks("apart", false), marks("together", true), diagonal],
            marks: Vec::new(),
        }),
        figures: None,
    }
}

/// The side of the drawing, and the margin around it, in pixels.
const SIDE: f64 = 480.0;
const ROOM: f64 = 70.0;

/// An unfinished SVG, with the scale of both axes.
struct Drawing {
    low: f64,
    high: f64,
    svg: String,
}

impl Drawing {
    fn x(&self, value: f64) -> f64 {
        ROOM + (value - self.low) / (self.high - self.low) * SIDE
    }

    fn y(&self, value: f64) -> f64 {
        ROOM + SIDE - (value - self.low) / (self.high - self.low) * SIDE
    }

    fn put(&mut self, text: std::fmt::Arguments<'_>) {
        // Writing to a string cannot fail.
        let _ = writeln!(self.svg, "{text}");
    }

    /// The frame, the diagonal, and the band within 15 % of the measurement.
    fn frame(&mut self) {
        let (low, high) = (self.low, self.high);
        let corners = [(low, low * 1.15), (high, high * 1.15), (high, high * 0.85), (low, low * 0.85)];
        let corners = corners.map(|(x, y)| format!("{:.1},{:.1}", self.x(x), self.y(y))).join(" ");
        let [left, right, bottom, top] = [self.x(low), self.x(high), self.y(low), self.y(high)];
        self.put(format_args!("<polygon clip-path=\"url(#frame)\" fill=\"#eef2f7\" points=\"{corners}\"/>"));
        self.put(format_args!(
            "<line x1=\"{left:.1}\" y1=\"{bottom:.1}\" x2=\"{right:.1}\" y2=\"{top:.1}\" stroke=\"#888\" stroke-dasharray=\"4 4\"/>"
        ));
        self.put(format_args!(
            "<rect x=\"{ROOM}\" y=\"{ROOM}\" width=\"{SIDE}\" height=\"{SIDE}\" fill=\"none\" stroke=\"#444\"/>"
        ));
    }

    /// The figures below and to the left of the frame.
    fn labels(&mut self) {
        for part in 0..=4 {
            let value = self.low + (self.high - self.low) * f64::from(part) / 4.0;
            let label = factor(value);
            let (x, y) = (self.x(value), self.y(value) + 4.0);
            let (below, beside) = (ROOM + SIDE + 20.0, ROOM - 8.0);
            self.put(format_args!("<text x=\"{x:.1}\" y=\"{below:.1}\" text-anchor=\"middle\">{label}</text>"));
            self.put(format_args!("<text x=\"{beside:.1}\" y=\"{y:.1}\" text-anchor=\"end\">{label}</text>"));
        }
    }

    /// A cell: a mark, and lines for both intervals. Nothing if either value is missing.
    fn cell(&mut self, cell: &ValidationCell) {
        let (Some(measured), Some(predicted)) = (cell.measured, cell.predicted) else { return };
        let (color, fill) = if cell.synchronized { ("#b5541c", "#fff") } else { ("#1f5fa8", "#1f5fa8") };
        let [x, left, right] = [measured.mean, measured.low, measured.high].map(|value| self.x(value));
        let [y, bottom, top] = [predicted.mean, predicted.low, predicted.high].map(|value| self.y(value));
        self.put(format_args!(
            "<g clip-path=\"url(#frame)\" stroke=\"{color}\"><line x1=\"{left:.1}\" y1=\"{y:.1}\" x2=\"{right:.1}\" y2=\"{y:.1}\"/>\
             <line x1=\"{x:.1}\" y1=\"{bottom:.1}\" x2=\"{x:.1}\" y2=\"{top:.1}\"/></g>"
        ));
        self.put(format_args!(
            "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"4\" stroke=\"{color}\" fill=\"{fill}\"><title>{} every {}, {}: measured {}, \
             predicted {}</title></circle>",
            time(cell.detour_ns.get()),
            time(cell.interval_ns.get()),
            if cell.synchronized { "together" } else { "apart" },
            factor(measured.mean),
            factor(predicted.mean)
        ));
    }

    /// The titles of the axes and of the drawing.
    fn titles(&mut self, report: &ValidationDoc) {
        let middle = ROOM + SIDE / 2.0;
        let below = SIDE + 2.0 * ROOM - 20.0;
        self.put(format_args!("<text x=\"{middle}\" y=\"{below}\" text-anchor=\"middle\">measured slowdown</text>"));
        self.put(format_args!(
            "<text transform=\"translate(18 {middle}) rotate(-90)\" text-anchor=\"middle\">predicted slowdown</text>"
        ));
        self.put(format_args!(
            "<text x=\"{ROOM}\" y=\"{:.1}\">{} of {} ranks: filled apart, hollow together, shaded within 15 %</text>",
            ROOM - 20.0,
            report.collective,
            report.ranks
        ));
    }
}

/// The figure as an SVG; without cells an empty frame.
pub fn validate_figure(report: &ValidationDoc) -> String {
    let (low, high) = ends(report).unwrap_or((1.0, 2.0));
    let whole = SIDE + 2.0 * ROOM;
    let mut drawing = Drawing { low, high, svg: String::new() };
    drawing.put(format_args!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {whole} {whole}\" width=\"{whole}\" height=\"{whole}\" \
         font-family=\"sans-serif\" font-size=\"13\" role=\"img\" aria-label=\"predicted against measured slowdown\">"
    ));
    drawing.put(format_args!("<rect width=\"{whole}\" height=\"{whole}\" fill=\"#fff\"/>"));
    drawing.put(format_args!(
        "<clipPath id=\"frame\"><rect x=\"{ROOM}\" y=\"{ROOM}\" width=\"{SIDE}\" height=\"{SIDE}\"/></clipPath>"
    ));
    drawing.frame();
    drawing.labels();
    report.cells.iter().for_each(|cell| drawing.cell(cell));
    drawing.titles(report);
    drawing.put(format_args!("</svg>"));
    drawing.svg
}
