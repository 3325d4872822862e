//! Charts as the page's script reads them: data and axes, never appearance.

use serde::{Deserialize, Serialize};

use crate::form::table::Table;

/// A chart, with a text alternative.
#[derive(Clone, Debug)]
pub struct Chart {
    /// Its name on the page, of letters and hyphens. Names that end with a hyphen are numbered: `slowdown-1`.
    pub id: &'static str,
    /// Its title; empty if the section's title is enough.
    pub title: String,
    /// The text alternative: one sentence with the figures.
    pub label: String,
    /// Height in pixels.
    pub height: u32,
    /// The drawing.
    pub spec: Spec,
    /// Its figures, or the most important of them.
    pub figures: Option<Table>,
}

/// The drawing of a chart, for the page's script.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "draws", rename_all = "snake_case")]
pub enum Spec {
    /// Curves over a common axis.
    Lines(Lines),
    /// Horizontal bars, the first at the top.
    Bars(Bars),
    /// Horizontal bars, two per name.
    Pairs(PairedBars),
    /// Ratios with their intervals.
    Forest(Forest),
    /// A heat map of rows over time.
    Heat(Heat),
    /// Detours over time, with their activities.
    Points(Points),
    /// Values by row and column, as shades.
    Surface(Surface),
    /// Values with their ranges, row by row.
    Ranges(Ranges),
    /// Stretches over time, row by row.
    Lanes(Lanes),
}

/// The scale of an axis.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum AxisScale {
    /// Equal differences are equally far apart.
    Linear,
    /// Logarithmic; values must be above 0.
    Log,
}

/// The unit of an axis, which decides how the script formats its values; see `value.rs`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AxisUnit {
    /// Durations in nanoseconds, formatted with a suitable unit.
    Time,
    /// Durations in picoseconds, formatted with a suitable unit.
    Picos,
    /// Instants in nanoseconds since the recording's origin, formatted in seconds.
    Instant,
    /// A count of things.
    Count,
    /// Counts in powers of two, with binary prefixes.
    Ranks,
    /// Shares, formatted in percent.
    Ratio,
    /// Multiples.
    Factor,
    /// Events per second.
    Rate,
    /// Numbers without a unit.
    Plain,
}

/// An axis of a chart.
#[derive(Clone, Debug, Serialize)]
pub struct Axis {
    /// The title next to the axis.
    pub title: String,
    /// Its scale.
    pub scale: AxisScale,
    /// The unit of its labels.
    pub unit: AxisUnit,
    /// The start of the axis; `None` to take it from the data.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min: Option<f64>,
    /// The end of the axis; `None` to take it from the data.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max: Option<f64>,
}

impl Axis {
    /// An axis that covers its data.
    pub fn new(title: &str, scale: AxisScale, unit: AxisUnit) -> Self {
        Self { title: title.to_owned(), scale, unit, min: None, max: None }
    }

    /// Sets both ends.
    #[must_use]
    pub const fn between(mut self, min: Option<f64>, max: Option<f64>) -> Self {
        self.min = min;
        self.max = max;
        self
    }
}

/// Curves over two axes.
#[derive(Clone, Debug, Serialize)]
pub struct Lines {
    /// The horizontal axis.
    pub x: Axis,
    /// The vertical axis, shared by all curves.
    pub y: Axis,
    /// The curves, in the order of their legend.
    pub series: Vec<ChartSeries>,
    /// Marked values on the horizontal axis.
    pub marks: Vec<Mark>,
}

/// A curve with its points.
#[derive(Clone, Debug, Default, Serialize)]
pub struct ChartSeries {
    /// Its name, if there are several.
    pub name: String,
    /// Its points, sorted by x.
    pub points: Vec<[f64; 2]>,
    /// Lower and upper ends of the points' intervals; empty if there are none. JSON has `null` for an infinite upper end, which is drawn as open.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub band: Vec<[f64; 2]>,
    /// Whether a value holds until the next point.
    #[serde(skip_serializing_if = "is_false")]
    pub step: bool,
    /// Whether each point has a dot.
    #[serde(skip_serializing_if = "is_false")]
    pub dots: bool,
    /// Whether the points are drawn without a line.
    #[serde(skip_serializing_if = "is_false")]
    pub scattered: bool,
    /// Whether the line is dashed, as for expected values.
    #[serde(skip_serializing_if = "is_false")]
    pub dashed: bool,
    /// The detour that a click on each point opens, by its number in [`Points`]; empty if there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub opens: Vec<Option<u32>>,
}

/// A value with a name.
#[derive(Clone, Debug, Serialize)]
pub struct Mark {
    /// Its place on the horizontal axis, in the axis' unit.
    pub at: f64,
    /// Its name and value.
    pub label: String,
}

/// Bars from left to right.
#[derive(Clone, Debug, Serialize)]
pub struct Bars {
    /// The axis of their lengths.
    pub x: Axis,
    /// The bars, from top to bottom.
    pub bars: Vec<Bar>,
}

/// A bar with a name.
#[derive(Clone, Debug, Serialize)]
pub struct Bar {
    /// The name next to the bar.
    pub name: String,
    /// Its length, in the unit of the axis.
    pub value: f64,
    /// Its length as text.
    pub text: String,
    /// The kind of source that determines its color; `None` for the page's default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<&'static str>,
}

/// Two bars per name, one below the other.
#[derive(Clone, Debug, Serialize)]
pub struct PairedBars {
    /// The axis of their lengths.
    pub x: Axis,
    /// The meaning of the first and the second bar.
    pub names: [String; 2],
    /// The bars, from top to bottom.
    pub pairs: Vec<BarPair>,
}

/// Two bars of one name.
#[derive(Clone, Debug, Serialize)]
pub struct BarPair {
    /// The name next to both bars.
    pub name: String,
    /// Their lengths, in the unit of the axis.
    pub values: [f64; 2],
    /// Their lengths as text.
    pub texts: [String; 2],
}

/// Ratios with their intervals, row by row, against a line at 1.
#[derive(Clone, Debug, Serialize)]
pub struct Forest {
    /// The meaning of the ratio.
    pub title: String,
    /// The rows, from top to bottom.
    pub rows: Vec<ForestRow>,
}

/// A ratio with its interval.
#[derive(Clone, Debug, Serialize)]
pub struct ForestRow {
    /// The name of the row.
    pub name: String,
    /// The ratio, above 0.
    pub ratio: f64,
    /// The lower end of its interval, if it has one.
    pub low: Option<f64>,
    /// The upper end of the interval; `None` if it is unbounded.
    pub high: Option<f64>,
    /// The change as text.
    pub text: String,
    /// The verdict of the comparison.
    pub verdict: &'static str,
    /// The verdict's class in the style sheet.
    pub tone: &'static str,
}

/// Lost time per row and time cell.
#[derive(Clone, Debug, Serialize)]
pub struct Heat {
    /// The start of the first cell, in nanoseconds.
    pub start_ns: i64,
    /// The length of a cell, in nanoseconds.
    pub cell_ns: i64,
    /// The length of the last cell, in nanoseconds.
    pub last_cell_ns: i64,
    /// The meaning of a row: `CPU`.
    pub row_title: &'static str,
    /// The rows, from top to bottom.
    pub rows: Vec<HeatLabel>,
    /// The lost time in each cell of each row, in nanoseconds.
    pub cells: Vec<Vec<i64>>,
}

/// The names of a heat map's row.
#[derive(Clone, Debug, Serialize)]
pub struct HeatLabel {
    /// The short name, next to the row.
    pub short: String,
    /// The full name, for the tooltip.
    pub long: String,
}

/// Values by row and column, each a shaded cell with its figure.
#[derive(Clone, Debug, Serialize)]
pub struct Surface {
    /// The meaning of the values: `slowdown`.
    pub title: String,
    /// The unit of the values.
    pub unit: AxisUnit,
    /// Whether shades follow the values or their logarithms.
    pub scale: AxisScale,
    /// The parameter of the columns.
    pub column_title: String,
    /// The columns, from left to right.
    pub columns: Vec<String>,
    /// The rows, from top to bottom.
    pub rows: Vec<String>,
    /// The cells of each row; `None` if there is no value.
    pub cells: Vec<Vec<Option<f64>>>,
}

/// Values with their ranges, row by row, over a common axis.
#[derive(Clone, Debug, Serialize)]
pub struct Ranges {
    /// The axis of the values.
    pub x: Axis,
    /// The meaning of a range: `p5 to p95`.
    pub range: &'static str,
    /// The meaning of a row's second mark; empty if no row has one.
    pub other: &'static str,
    /// The rows, from top to bottom.
    pub rows: Vec<RangeRow>,
}

/// A value with its range.
#[derive(Clone, Debug, Serialize)]
pub struct RangeRow {
    /// The name of the row.
    pub name: String,
    /// The value, in the unit of the axis.
    pub middle: f64,
    /// The lower end of its range, if it has one.
    pub low: Option<f64>,
    /// The upper end.
    pub high: Option<f64>,
    /// A second mark, if the row has one.
    pub other: Option<f64>,
    /// The value as text.
    pub text: String,
}

/// Stretches over time, row by row, each of one sort.
#[derive(Clone, Debug, Serialize)]
pub struct Lanes {
    /// The axis of time.
    pub x: Axis,
    /// The sorts of stretches, in the order of the legend.
    pub sorts: Vec<LaneSort>,
    /// The rows, from top to bottom.
    pub rows: Vec<Lane>,
}

/// A sort of stretch.
#[derive(Clone, Debug, Serialize)]
pub struct LaneSort {
    /// Its name.
    pub name: String,
    /// The name of its color in the style sheet.
    pub color: &'static str,
}

/// A row of stretches, which follow each other.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Lane {
    /// The name next to the row.
    pub name: String,
    /// The start of the first stretch, in the unit of the axis.
    pub start: i64,
    /// The end of each.
    pub ends: Vec<i64>,
    /// The sort of each, as an index.
    pub sorts: Vec<u32>,
    /// What each is, for the tooltip; empty if the sort says it.
    pub texts: Vec<String>,
}

/// Detours over time, as columns of data; the longest first.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Points {
    /// The start of the recording, in nanoseconds.
    pub begin_ns: i64,
    /// The end of the recording, in nanoseconds since its origin.
    pub end_ns: i64,
    /// The names of nodes.
    pub nodes: Vec<String>,
    /// The kinds of the sources, as [`becalm_model::Kind::name`].
    pub kinds: Vec<&'static str>,
    /// Sources, each with the index of its kind in [`Self::kinds`].
    pub sources: Vec<(u32, String)>,
    /// The start of each detour, in nanoseconds.
    pub starts: Vec<i64>,
    /// The length of each, in nanoseconds.
    pub durations: Vec<i64>,
    /// The node of each; empty if there is only one.
    pub node: Vec<u32>,
    /// The CPU of each.
    pub cpu: Vec<u32>,
    /// The number of each on its CPU.
    pub number: Vec<u64>,
    /// The costliest source of each, as an index into [`Self::sources`]; -1 if none was seen.
    pub source: Vec<i32>,
    /// The detours with dropped kernel events.
    pub incomplete: Vec<u32>,
    /// Names that activities refer to.
    pub strings: Vec<String>,
    /// Activities of the first detours, six numbers each: offset in the detour, own time, index of the kind in [`Self::all_kinds`], source and detail
    /// in [`Self::strings`], depth. Empty for a detour without stored activities.
    pub activities: Vec<Vec<i64>>,
    /// All kinds of sources, for the same colors in every chart.
    pub all_kinds: Vec<&'static str>,
    /// For detours with more activities than are stored: how many more, and their time in nanoseconds.
    pub more: Vec<(u32, u64, i64)>,
    /// The recording, quoted for a command line.
    pub run: String,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "what serde asks for")]
const fn is_false(flag: &bool) -> bool {
    !*flag
}
