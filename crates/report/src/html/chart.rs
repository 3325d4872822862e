//! Charts as the page's script reads them: what is drawn over which axes, never how it looks.

use serde::{Deserialize, Serialize};

use crate::form::table::Table;

/// A chart with what stands beside it for those who cannot see it.
#[derive(Clone, Debug)]
pub struct Chart {
    /// Its name on the page, of letters and hyphens. Charts with a name that ends with a hyphen are numbered: `slowdown-1`.
    pub id: &'static str,
    /// Its title; empty where that of the section is enough.
    pub title: String,
    /// What it shows, with its figures, in one sentence: read out instead of it.
    pub label: String,
    /// How high it is, in pixels.
    pub height: u32,
    /// What is drawn in the chart.
    pub spec: Spec,
    /// Its figures, or the most important of them.
    pub figures: Option<Table>,
}

/// What a chart draws, as the script of the page takes it.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "draws", rename_all = "snake_case")]
pub enum Spec {
    /// Curves over a common axis.
    Lines(Lines),
    /// Horizontal bars, the first at the top.
    Bars(Bars),
    /// Horizontal bars, two of each name.
    Pairs(PairedBars),
    /// Ratios with their intervals.
    Forest(Forest),
    /// A map of rows against time.
    Heat(Heat),
    /// Detours against time, with what happened in them.
    Points(Points),
    /// Values by rows and columns, as shades.
    Surface(Surface),
    /// Values with their ranges, row by row.
    Ranges(Ranges),
}

/// How values lie on an axis.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum AxisScale {
    /// Equal differences are equally far apart.
    Linear,
    /// By their logarithms; they must be above 0.
    Log,
}

/// What the values of an axis are, and so how the script writes them; see `value.rs`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AxisUnit {
    /// Durations in nanoseconds, written with the unit that fits them.
    Time,
    /// Durations in picoseconds, written with the unit that fits them.
    Picos,
    /// Instants in nanoseconds since the run's origin, written in seconds.
    Instant,
    /// A count of things.
    Count,
    /// How many, in powers of two with their prefixes.
    Ranks,
    /// Parts of a whole, written in percent.
    Ratio,
    /// How many times as long something takes.
    Factor,
    /// How often something comes, in events a second.
    Rate,
    /// Numbers of no unit.
    Plain,
}

/// An axis of a chart.
#[derive(Clone, Debug, Serialize)]
pub struct Axis {
    /// What the axis shows, as it stands beside it.
    pub title: String,
    /// How its values lie.
    pub scale: AxisScale,
    /// The unit in which its labels are written.
    pub unit: AxisUnit,
    /// Where it begins; by the data where nothing is said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min: Option<f64>,
    /// Where the axis ends; `None` where the values say that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max: Option<f64>,
}

impl Axis {
    /// An axis that begins and ends with its data.
    pub fn new(title: &str, scale: AxisScale, unit: AxisUnit) -> Self {
        Self { title: title.to_owned(), scale, unit, min: None, max: None }
    }

    /// The same from here to there.
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
    /// The axis to the right.
    pub x: Axis,
    /// The axis upward, which all curves share.
    pub y: Axis,
    /// The curves, in the order of their legend.
    pub series: Vec<ChartSeries>,
    /// Values that are marked on the axis to the right.
    pub marks: Vec<Mark>,
}

/// A curve with its points.
#[derive(Clone, Debug, Default, Serialize)]
pub struct ChartSeries {
    /// Its name, where there are several.
    pub name: String,
    /// Its points, in rising order to the right.
    pub points: Vec<[f64; 2]>,
    /// Lower and upper ends of the points' intervals; empty where there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub band: Vec<[f64; 2]>,
    /// Whether a value holds until the next point.
    #[serde(skip_serializing_if = "is_false")]
    pub step: bool,
    /// Whether each point has a dot.
    #[serde(skip_serializing_if = "is_false")]
    pub dots: bool,
    /// Whether the points are not joined by a line.
    #[serde(skip_serializing_if = "is_false")]
    pub scattered: bool,
    /// Whether it is drawn broken, as what is expected is.
    #[serde(skip_serializing_if = "is_false")]
    pub dashed: bool,
    /// The detours that the points are, by their number in [`Points`], so that a click opens them; empty where they are
    /// none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub opens: Vec<Option<u32>>,
}

/// A value with a name.
#[derive(Clone, Debug, Serialize)]
pub struct Mark {
    /// Where the mark is on the axis to the right, in its unit.
    pub at: f64,
    /// What it is called, with its value.
    pub label: String,
}

/// Bars from left to right.
#[derive(Clone, Debug, Serialize)]
pub struct Bars {
    /// What their lengths are.
    pub x: Axis,
    /// The bars, from top to bottom.
    pub bars: Vec<Bar>,
}

/// A bar with its name and its length.
#[derive(Clone, Debug, Serialize)]
pub struct Bar {
    /// The name that stands beside it.
    pub name: String,
    /// How long the bar is, in the unit of its axis.
    pub value: f64,
    /// Its length as it is written.
    pub text: String,
    /// The kind of source that gives it its color; that of the page where there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<&'static str>,
}

/// Two bars of each name, one below the other.
#[derive(Clone, Debug, Serialize)]
pub struct PairedBars {
    /// What their lengths are.
    pub x: Axis,
    /// What the first and the second bar of each name are.
    pub names: [String; 2],
    /// The bars, from top to bottom.
    pub pairs: Vec<BarPair>,
}

/// Two bars of one name.
#[derive(Clone, Debug, Serialize)]
pub struct BarPair {
    /// The name that stands beside both bars.
    pub name: String,
    /// How long the bars are, in the unit of their axis.
    pub values: [f64; 2],
    /// Their lengths as they are written.
    pub texts: [String; 2],
}

/// Ratios with their intervals, row by row, against a line at 1.
#[derive(Clone, Debug, Serialize)]
pub struct Forest {
    /// What is divided by what.
    pub title: String,
    /// The rows, from top to bottom.
    pub rows: Vec<ForestRow>,
}

/// A ratio with its interval.
#[derive(Clone, Debug, Serialize)]
pub struct ForestRow {
    /// What it is a ratio of.
    pub name: String,
    /// The ratio, above 0.
    pub ratio: f64,
    /// The lower end of its interval, if it has one.
    pub low: Option<f64>,
    /// The upper end of the interval; `None` where nothing bounds it.
    pub high: Option<f64>,
    /// The change as it is written.
    pub text: String,
    /// What the comparison shows, in words.
    pub verdict: &'static str,
    /// How good that is, as the style sheet names it.
    pub tone: &'static str,
}

/// How much was lost, row by row and cell by cell of time.
#[derive(Clone, Debug, Serialize)]
pub struct Heat {
    /// When the first cell begins, in nanoseconds.
    pub start_ns: i64,
    /// How long a cell lasts, in nanoseconds.
    pub cell_ns: i64,
    /// How long the last one lasts.
    pub last_cell_ns: i64,
    /// What a row is: `CPU`.
    pub row_title: &'static str,
    /// The rows, from top to bottom.
    pub rows: Vec<HeatLabel>,
    /// The cells of each row: how much of them was lost, in nanoseconds.
    pub cells: Vec<Vec<i64>>,
}

/// What a row of a map is called.
#[derive(Clone, Debug, Serialize)]
pub struct HeatLabel {
    /// Short, beside the row.
    pub short: String,
    /// The name in full, for the tooltip.
    pub long: String,
}

/// Values by rows and columns, each a cell of a shade with its figure.
#[derive(Clone, Debug, Serialize)]
pub struct Surface {
    /// What the values are: `slowdown`.
    pub title: String,
    /// In which unit they are written.
    pub unit: AxisUnit,
    /// Whether shades go by the values or by their logarithms.
    pub scale: AxisScale,
    /// What the columns are told apart by.
    pub column_title: String,
    /// The columns, from left to right.
    pub columns: Vec<String>,
    /// The rows, from top to bottom.
    pub rows: Vec<String>,
    /// The cells of each row; `None` where there is no value.
    pub cells: Vec<Vec<Option<f64>>>,
}

/// Values with their ranges, row by row, over a common axis.
#[derive(Clone, Debug, Serialize)]
pub struct Ranges {
    /// What the values are.
    pub x: Axis,
    /// What a range is, in words: `p5 to p95`.
    pub range: &'static str,
    /// What a second mark of a row is; empty where no row has one.
    pub other: &'static str,
    /// The rows, from top to bottom.
    pub rows: Vec<RangeRow>,
}

/// A value with its range.
#[derive(Clone, Debug, Serialize)]
pub struct RangeRow {
    /// What the value is of.
    pub name: String,
    /// The value, in the unit of the axis.
    pub middle: f64,
    /// The lower end of its range, if it has one.
    pub low: Option<f64>,
    /// The upper end.
    pub high: Option<f64>,
    /// A second mark, if the row has one.
    pub other: Option<f64>,
    /// The value as it is written.
    pub text: String,
}

/// Detours against time, column by column; the longest first.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Points {
    /// When the run began, in nanoseconds.
    pub begin_ns: i64,
    /// When the recording ended, in nanoseconds since its origin.
    pub end_ns: i64,
    /// The names of nodes.
    pub nodes: Vec<String>,
    /// The kinds that own detours, as [`becalm_model::Kind::name`].
    pub kinds: Vec<&'static str>,
    /// Sources with their kinds, as numbers of [`Self::kinds`].
    pub sources: Vec<(u32, String)>,
    /// When each detour began, in nanoseconds.
    pub starts: Vec<i64>,
    /// How long each is, in nanoseconds.
    pub durations: Vec<i64>,
    /// The node of each; empty where there is one only.
    pub node: Vec<u32>,
    /// The CPU that each detour took.
    pub cpu: Vec<u32>,
    /// The number of each on its CPU.
    pub number: Vec<u64>,
    /// The source that took most of each, as a number of [`Self::sources`]; -1 where nothing was seen.
    pub source: Vec<i32>,
    /// Those in which kernel events were lost.
    pub incomplete: Vec<u32>,
    /// Names that activities refer to.
    pub strings: Vec<String>,
    /// Activities of the first detours, six numbers for each: offset in the detour, self time, number of the kind in
    /// [`Self::all_kinds`], source and detail in [`Self::strings`], depth. Empty for a detour of which none are kept.
    pub activities: Vec<Vec<i64>>,
    /// Every kind of source, so that each has the same color in every chart.
    pub all_kinds: Vec<&'static str>,
    /// For detours with more activities than are kept: how many more, and what they took in nanoseconds.
    pub more: Vec<(u32, u64, i64)>,
    /// The run, as it is written in a command.
    pub run: String,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "what serde asks for")]
const fn is_false(flag: &bool) -> bool {
    !*flag
}
