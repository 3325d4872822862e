//! The papers, as files inside the program.

use std::collections::BTreeMap;

use becalm_report::html::AxisUnit;
use miniz_oxide::inflate::decompress_to_vec_with_limit;
use serde::Deserialize;
use serde_json::Value;

use super::reading::{Reading, at, number_at};
use super::verdict::Published;

/// The names of the papers, ordered by year, with their files as `build.rs` packs them.
const PAPERS: [(&str, &[u8]); 4] = [
    ("beckman2007", include_bytes!(concat!(env!("OUT_DIR"), "/beckman2007.deflate"))),
    ("tsafrir2007", include_bytes!(concat!(env!("OUT_DIR"), "/tsafrir2007.deflate"))),
    ("radojkovic2008", include_bytes!(concat!(env!("OUT_DIR"), "/radojkovic2008.deflate"))),
    ("de2009", include_bytes!(concat!(env!("OUT_DIR"), "/de2009.deflate"))),
];

/// The size limit of a paper, in bytes; the largest has about 100 kB.
const LARGEST_PAPER: usize = 4 << 20;

/// Files that steps read, by name, in the directory `inputs` of a campaign.
pub const INPUTS: [(&str, &str); 6] = [
    ("de2009_sources.csv", include_str!("../../data/de2009_sources.csv")),
    ("de2009_unidentified.csv", include_str!("../../data/de2009_unidentified.csv")),
    ("tsafrir2007_sort.csv", include_str!("../../data/tsafrir2007_sort.csv")),
    ("tsafrir2007_direct.csv", include_str!("../../data/tsafrir2007_direct.csv")),
    ("tsafrir2007_table2.csv", include_str!("../../data/tsafrir2007_table2.csv")),
    ("tsafrir2007_table3.csv", include_str!("../../data/tsafrir2007_table3.csv")),
];

/// A paper: its published figures, and the steps that reproduce them.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Paper {
    /// Authors, title and year, in one line.
    pub citation: String,
    /// The machines that it measured.
    pub machine: String,
    /// Its tables, figures and sections, in its order.
    pub items: Vec<Item>,
    /// Its steps, in the order of their runs.
    pub steps: Vec<Step>,
}

/// The kind of an item in its paper.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ItemKind {
    /// A table with its number.
    Table,
    /// A figure with its number.
    Figure,
    /// A section, by its number.
    Section,
}

/// A table, a figure or a section of a paper.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Item {
    /// The kind.
    pub kind: ItemKind,
    /// Its number in the paper.
    pub number: u32,
    /// Its content, in a few words.
    pub title: String,
    /// Why it is not reproduced, or not completely; empty if it is.
    #[serde(default)]
    pub lacking: String,
    /// The file of [`INPUTS`] with the published table; empty for most.
    #[serde(default)]
    pub table: String,
    /// Its published numbers.
    #[serde(default)]
    pub figures: Vec<Figure>,
    /// The figure as the paper draws it, with the results of this machine.
    #[serde(default)]
    pub charts: Vec<Chart>,
    /// The same if the paper draws bars.
    #[serde(default)]
    pub bars: Vec<Bars>,
}

/// The unit of a figure.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// A factor.
    Times,
    /// Percent.
    Percent,
    /// Nanoseconds.
    Nanos,
    /// Microseconds.
    Micros,
    /// Milliseconds.
    Millis,
    /// Lengths of the injected detour.
    Detours,
    /// A number without a unit.
    Number,
}

/// A published number.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Figure {
    /// Its name on the book's page of all figures; empty if it is not there.
    #[serde(default)]
    #[allow(dead_code, reason = "only tests read it")]
    pub id: String,
    /// The measured quantity.
    pub what: String,
    /// The machine of the published value, a part of `what`, if the paper has the quantity for several; else empty.
    #[serde(default)]
    pub platform: String,
    /// Its unit.
    pub unit: Unit,
    /// The published value, in that unit.
    pub published: Published,
    /// Its place in the paper, and why it counts as it does.
    #[serde(default)]
    #[allow(dead_code, reason = "only tests read it")]
    pub place: String,
    /// Whether it is a time of the paper's own machine, which another machine cannot reproduce.
    #[serde(default)]
    pub of_machine: bool,
    /// The place of our value.
    pub reading: Reading,
    /// Whether it uses another estimator than the paper. Another figure has the paper's own, and that one counts.
    #[serde(default)]
    pub beside: bool,
    /// Why a machine may lack it although its step was run; usually nothing.
    #[serde(default)]
    pub limit: Option<Limit>,
    /// A note about it; empty for most.
    #[serde(default)]
    pub note: String,
}

/// Why a machine may lack a figure although the step that measures it was run.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "snake_case")]
pub enum Limit {
    /// This reason.
    Is(String),
    /// The reason at this place of the step's document.
    Says(String),
}

/// Curves over an axis of numbers, from lists in the documents of steps.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Chart {
    /// Its subject, if a figure has several charts; else empty.
    #[serde(default)]
    pub title: String,
    /// The horizontal axis.
    pub x: ChartAxis,
    /// The vertical axis.
    pub y: ChartAxis,
    /// The curves.
    pub curves: Vec<Curve>,
    /// Whether points are not joined, because they do not follow each other.
    #[serde(default)]
    pub scattered: bool,
    /// Whether each curve is stacked on those before it, so the last one is the sum of all.
    #[serde(default)]
    pub stacked: bool,
    /// Whether a value holds until the next point, as in a histogram.
    #[serde(default)]
    pub steps: bool,
    /// Whether the list is a cumulative distribution, drawn as its survival function: the share that is as large or larger.
    #[serde(default)]
    pub survival: bool,
}

/// An axis of a chart.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ChartAxis {
    /// The field of an element of the list, by its name or number.
    pub field: String,
    /// Its title.
    pub title: String,
    /// Its unit.
    pub unit: AxisUnit,
    /// Whether it is logarithmic.
    #[serde(default)]
    pub log: bool,
}

/// A curve: elements of a list in the document of a step.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Curve {
    /// Its name in the legend.
    pub name: String,
    /// The step with the list in its document.
    pub step: String,
    /// The place of the list, as in a [`Term`](super::reading::Term).
    #[serde(default = "rows")]
    pub list: String,
    /// Its points are the elements whose fields have these values.
    #[serde(default)]
    pub only: BTreeMap<String, Value>,
    /// Whether a machine may lack it although its step was run, for example a configuration that needs root, or a model of hidden noise.
    #[serde(default)]
    pub may_lack: bool,
    /// The place of a suffix of its name in the document, as in a [`Term`](super::reading::Term); `None` for most.
    #[serde(default)]
    pub named: Option<String>,
    /// The horizontal field, if it is not that of the axis.
    #[serde(default)]
    pub x: Option<String>,
    /// The vertical field, if it is not that of the axis.
    #[serde(default)]
    pub y: Option<String>,
    /// A field that is subtracted from it.
    #[serde(default)]
    pub minus: Option<String>,
    /// The fields of the lower and the upper end of its interval, if it has one.
    #[serde(default)]
    pub band: Option<[String; 2]>,
    /// Whether the points of only this curve are not joined.
    #[serde(default)]
    pub scattered: bool,
    /// Whether it is dashed, like results of a model.
    #[serde(default)]
    pub dashed: bool,
}

/// The points of a curve, and the ends of their intervals: as many, or none.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Points {
    /// From left to right.
    pub points: Vec<[f64; 2]>,
    /// Lower and upper ends, if every point has both.
    pub band: Vec<[f64; 2]>,
}

impl Curve {
    /// Its name, with the suffix from the document.
    pub fn name_in(&self, document: &Value) -> String {
        let found = self.named.as_ref().and_then(|path| at(document, path)).and_then(Value::as_str);
        found.map_or_else(|| self.name.clone(), |found| format!("{} {found}", self.name))
    }
}

fn rows() -> String {
    "/rows".to_owned()
}

impl Chart {
    /// The points of a curve from the document of its step, from left to right, without those that a logarithmic axis cannot show.
    pub fn points(&self, curve: &Curve, document: &Value) -> Points {
        let Some(Value::Array(list)) = at(document, &curve.list) else { return Points::default() };
        let field = |element: &Value, name: &str| number_at(element, &format!("/{name}"));
        let x = curve.x.as_deref().unwrap_or(&self.x.field);
        let y = curve.y.as_deref().unwrap_or(&self.y.field);
        let point = |element: &Value| {
            let less = curve.minus.as_deref().map_or(Some(0.0), |minus| field(element, minus))?;
            let band = curve
                .band
                .as_ref()
                .and_then(|[low, high]| Some([field(element, low)? - less, field(element, high)? - less]));
            Some(([field(element, x)?, field(element, y)? - less], band))
        };
        let mut found: Vec<_> = list.iter().filter(|element| is_so(element, &curve.only)).filter_map(point).collect();
        found.sort_by(|(one, _), (other, _)| one[0].total_cmp(&other[0]));
        if self.survival {
            let mut before = 0.0;
            for (point, _) in &mut found {
                point[1] = 1.0 - std::mem::replace(&mut before, point[1]);
            }
        }
        let fits = |[x, y]: &[f64; 2]| (!self.x.log || *x > 0.0) && (!self.y.log || *y > 0.0);
        found.retain(|(point, band)| fits(point) && band.is_none_or(|[low, _]| fits(&[point[0], low])));
        let band: Vec<[f64; 2]> = found.iter().filter_map(|(_, band)| *band).collect();
        let points: Vec<[f64; 2]> = found.into_iter().map(|(point, _)| point).collect();
        Points { band: if band.len() == points.len() { band } else { Vec::new() }, points }
    }
}

/// Two bars of each element of a list in the document of a step.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bars {
    /// Its subject, if a figure has several; else empty.
    #[serde(default)]
    pub title: String,
    /// The step with the list in its document, as in a [`Curve`].
    pub step: String,
    /// The place of the list, as in a [`Curve`].
    #[serde(default = "rows")]
    pub list: String,
    /// The elements that have bars, as in a [`Curve`].
    #[serde(default)]
    pub only: BTreeMap<String, Value>,
    /// The field that names an element.
    pub name: String,
    /// The fields of both bars.
    pub fields: [String; 2],
    /// The titles of both bars.
    pub titles: [String; 2],
    /// The unit of both.
    pub unit: AxisUnit,
}

impl Bars {
    /// The names of the bars with their lengths, in the order of the list.
    pub fn pairs(&self, document: &Value) -> Vec<(String, [f64; 2])> {
        let pair = |element: &Value| {
            let [one, other] = self.fields.each_ref().map(|field| number_at(element, &format!("/{field}")));
            Some((element[&self.name].as_str()?.to_owned(), [one?, other?]))
        };
        let list = at(document, &self.list).and_then(Value::as_array).into_iter().flatten();
        list.filter(|element| is_so(element, &self.only)).filter_map(pair).collect()
    }
}

/// True if the fields of an element of a list have these values.
fn is_so(element: &Value, only: &BTreeMap<String, Value>) -> bool {
    only.iter().all(|(name, wanted)| element[name] == *wanted)
}

/// The CPUs of the ranks of a parallel job, one each.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ranks {
    /// Every CPU that is online.
    All,
    /// Every CPU except those of the first core, which is left to other programs.
    OneLeftIdle,
    /// The same, with everything else moved off them.
    Isolated,
}

/// The changes of `becalm tune run` for a step. The step runs on the last CPU that does not share a core with the first one.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Quieted {
    /// Only switches off the throttling of real-time threads.
    Throttling,
    /// All changes that it can make.
    All,
}

/// A command that is part of a campaign.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Step {
    /// Its name, which is also that of its document.
    pub name: String,
    /// The arguments of becalm, or of becalm-mpi if it is a job, with spaces between them, without `--json`.
    pub command: String,
    /// The ranks, if it is a parallel job of becalm-mpi, under the launcher of an MPI library.
    #[serde(default)]
    pub job: Option<Ranks>,
    /// The changes of `becalm tune run` while the command runs. The command takes `--cpus`, and is not a job.
    #[serde(default)]
    pub quieted: Option<Quieted>,
    /// Whether it runs on all online CPUs at once: becalm adds `--cpus` with their list. Not for jobs.
    #[serde(default)]
    pub each_cpu: bool,
    /// The arguments of `becalm inject`, if the job runs under injected noise.
    #[serde(default)]
    pub inject: Option<String>,
    /// Recordings of earlier steps to append to the arguments: those that exist, at least the first and another one.
    #[serde(default)]
    pub gathers: Vec<String>,
    /// The arguments that resume the same step after it was stopped; without them, it starts again.
    #[serde(default)]
    pub resume: Option<String>,
    /// Whether it measures this machine, which may be unable to; a step that does not measure must not fail.
    #[serde(default)]
    pub measures: bool,
    /// Recordings that it leaves in the campaign's directory, and that must not exist before.
    #[serde(default)]
    pub makes: Vec<String>,
    /// Earlier steps that make its input.
    #[serde(default)]
    pub after: Vec<String>,
    /// The arguments in a quick campaign: the same by default, `None` if it is left out.
    #[serde(default = "same")]
    pub quick: Option<String>,
    /// The arguments that draw its results, without `--html`; gathered recordings are appended.
    #[serde(default)]
    pub page: Option<String>,
    /// About how long it takes, in seconds, on a virtual machine with two CPUs.
    pub seconds: f64,
    /// The same for a quick campaign; by default as long.
    #[serde(default)]
    pub quick_seconds: Option<f64>,
}

fn same() -> Option<String> {
    Some(String::new())
}

impl Step {
    /// The file of its page in the campaign's directory, if it has one.
    pub fn page_file(&self) -> Option<String> {
        self.page.as_ref().map(|_| format!("{}.html", self.name))
    }

    /// The arguments, and about how long they take in seconds; `None` if a quick campaign leaves it out.
    pub fn run(&self, quick: bool) -> Option<(&str, f64)> {
        match (quick, self.quick.as_deref()) {
            (false, _) | (true, Some("")) => Some((&self.command, self.seconds)),
            (true, Some(command)) => Some((command, self.quick_seconds.unwrap_or(self.seconds))),
            (true, None) => None,
        }
    }
}

/// A table as its paper prints it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PublishedTable {
    /// The titles of the first columns, which name a row.
    pub names: Vec<String>,
    /// The titles of the other columns, which contain numbers.
    pub values: Vec<String>,
    /// The cells of each row.
    pub rows: Vec<Vec<String>>,
}

impl Item {
    /// Its published table, if it has one.
    pub fn published(&self) -> Option<PublishedTable> {
        let (_, text) = INPUTS.iter().find(|(name, _)| *name == self.table)?;
        let mut lines = text.lines().map(|line| line.split(',').map(str::to_owned).collect::<Vec<_>>());
        let mut names: Vec<String> = lines.next()?.iter().map(|title| title.replace('_', " ")).collect();
        let rows: Vec<Vec<String>> = lines.collect();
        let words = rows.first()?.iter().take_while(|cell| cell.parse::<f64>().is_err()).count();
        let values = names.split_off(words);
        Some(PublishedTable { names, values, rows })
    }

    /// Its name: `Figure 6`.
    pub fn name(&self) -> String {
        let kind = match self.kind {
            ItemKind::Table => "Table",
            ItemKind::Figure => "Figure",
            ItemKind::Section => "Section",
        };
        format!("{kind} {}", self.number)
    }

    /// The names of the steps that it needs.
    pub fn steps(&self) -> impl Iterator<Item = &str> {
        let figures = self.figures.iter().flat_map(|figure| figure.reading.terms()).map(|term| term.step.as_str());
        let curves = self.charts.iter().flat_map(|chart| &chart.curves).map(|curve| curve.step.as_str());
        figures.chain(curves).chain(self.bars.iter().map(|bars| bars.step.as_str()))
    }
}

/// The names of all papers.
pub fn names() -> [&'static str; 4] {
    PAPERS.map(|(name, _)| name)
}

/// The paper of this name.
pub fn paper(name: &str) -> Option<Paper> {
    let (_, packed) = PAPERS.iter().find(|(known, _)| *known == name)?;
    let text = decompress_to_vec_with_limit(packed, LARGEST_PAPER).expect("the build packed less than the limit");
    Some(serde_json::from_slice(&text).expect("the papers' files are as they should be"))
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use serde_json::json;

    use super::*;

    #[test]
    fn papers_are_whole() {
        for name in names() {
            let paper = paper(name).unwrap();
            let steps: HashSet<&str> = paper.steps.iter().map(|step| step.name.as_str()).collect();
            assert_eq!(steps.len(), paper.steps.len(), "{name}: two steps of one name");
            let mut needed: HashSet<&str> = paper.items.iter().flat_map(Item::steps).collect();
            for (number, step) in paper.steps.iter().enumerate() {
                let before: Vec<&str> = paper.steps[..number].iter().map(|step| step.name.as_str()).collect();
                assert!(step.after.iter().all(|name| before.contains(&name.as_str())), "{name}: {}", step.name);
                needed.extend(step.after.iter().map(String::as_str));
                let is_quicker = step.quick_seconds.is_none_or(|seconds| seconds <= step.seconds);
                assert!(is_quicker, "{name}: {} takes longer in a quick campaign", step.name);
            }
            let measures = |name: &str| paper.steps.iter().any(|step| step.name == name && step.measures);
            for figure in paper.items.iter().flat_map(|item| &item.figures) {
                let is_measured = figure.reading.terms().any(|term| measures(&term.step));
                assert_eq!(figure.of_machine, is_measured, "{name}: {} is of the machine", figure.what);
            }
            assert_eq!(needed, steps, "{name}: steps that are needed, and steps that are there");
            for item in &paper.items {
                let columns = item.published().map(|table| table.names.len() + table.values.len());
                assert!(item.table.is_empty() || columns.is_some(), "{name}: {} has no table", item.name());
                let all_columns =
                    item.published().into_iter().flat_map(|table| table.rows).all(|row| Some(row.len()) == columns);
                assert!(all_columns, "{name}: a row of {} lacks cells", item.name());
                let is_silent = item.figures.is_empty() && item.charts.is_empty() && item.table.is_empty();
                assert!(!is_silent || !item.lacking.is_empty(), "{name}: {} says nothing", item.name());
            }
        }
        assert!(paper("nobody1999").is_none());
    }

    #[test]
    fn curves_are_chosen_elements_from_left_to_right() {
        let axis = |field: &str, log| json!({ "field": field, "title": field, "unit": "plain", "log": log });
        let chart = json!({
            "x": axis("n", true),
            "y": axis("1", false),
            "curves": [{ "name": "a", "step": "s", "list": "/cells", "only": { "kind": "a" } }],
        });
        let mut chart: Chart = serde_json::from_value(chart).unwrap();
        chart.y.field = "y".to_owned();
        let document = json!({ "cells": [
            { "kind": "a", "n": 3, "y": 30.5 }, { "kind": "b", "n": 2, "y": 20 }, { "kind": "a", "n": 1, "y": -1 },
            { "kind": "a", "n": 0, "y": 1 }, { "kind": "a", "n": 4, "y": null },
        ] });
        assert_eq!(chart.points(&chart.curves[0], &document).points, [[1.0, -1.0], [3.0, 30.5]]);
        assert_eq!(chart.points(&chart.curves[0], &json!({ "rows": [] })), Points::default());
    }

    /// Intervals are shifted with the values, and drawn if every point has one; a survival function starts at 1.
    #[test]
    fn curves_have_differences_intervals_and_survivors() {
        let axis = |field: &str, log| json!({ "field": field, "title": field, "unit": "plain", "log": log });
        let curve = json!({
            "name": "minus", "named": "/who/0/is", "step": "s", "list": "/cells", "y": "all", "minus": "less",
            "band": ["low", "high"],
        });
        let chart = json!({ "x": axis("n", false), "y": axis("y", false), "curves": [curve] });
        let mut chart: Chart = serde_json::from_value(chart).unwrap();
        let mut document = json!({ "who": [{ "is": "tick" }], "cells": [
            { "n": 2, "all": 9, "less": 4, "low": 8, "high": 11 }, { "n": 1, "all": 5, "less": 4, "low": 5, "high": 6 },
        ] });
        let found = chart.points(&chart.curves[0], &document);
        assert_eq!((found.points, found.band), (vec![[1.0, 1.0], [2.0, 5.0]], vec![[1.0, 2.0], [4.0, 7.0]]));
        assert_eq!(chart.curves[0].name_in(&document), "minus tick");
        document["cells"][0]["high"] = Value::Null;
        let found = chart.points(&chart.curves[0], &document);
        assert_eq!((found.points.len(), found.band.len()), (2, 0));

        (chart.survival, chart.x.field, chart.y.field) = (true, "0".to_owned(), "1".to_owned());
        let plain = json!({ "name": "a", "named": "/who/1/is", "step": "s", "list": "/cells" });
        chart.curves = vec![serde_json::from_value(plain).unwrap()];
        let document = json!({ "cells": [[5, 0.5], [9, 0.75], [30, 1.0]] });
        let found = chart.points(&chart.curves[0], &document).points;
        assert_eq!(found, [[5.0, 1.0], [9.0, 0.5], [30.0, 0.25]]);
        assert_eq!(chart.curves[0].name_in(&document), "a");
    }

    #[test]
    fn bars_are_chosen_elements_in_their_order() {
        let bars = json!({
            "step": "s", "only": { "time": "qt" }, "name": "job", "fields": ["mean", "worst"], "titles": ["a", "b"],
            "unit": "time",
        });
        let bars: Bars = serde_json::from_value(bars).unwrap();
        let document = json!({ "rows": [
            { "time": "qt", "job": "z", "mean": 1, "worst": 2.5 }, { "time": "bt", "job": "z", "mean": 1, "worst": 2 },
            { "time": "qt", "job": "y", "mean": 3, "worst": 4 }, { "time": "qt", "job": "x", "mean": null, "worst": 4 },
        ] });
        assert_eq!(bars.pairs(&document), [("z".to_owned(), [1.0, 2.5]), ("y".to_owned(), [3.0, 4.0])]);
        assert!(bars.pairs(&json!({})).is_empty());
    }

    /// The cells of rows on the book's page.
    fn page_rows() -> Vec<Vec<String>> {
        let page = include_str!("../../../../docs/src/papers/figures.md");
        let cells = |line: &str| line.split('|').map(|cell| cell.trim().to_owned()).collect::<Vec<_>>();
        page.lines().filter(|line| line.starts_with("| ")).map(cells).filter(|cells| cells.len() == 7 + 1).collect()
    }

    /// Figures of the page that no command reproduces: those with noise that a test draws from tables in its own way, unlike `predict`; and
    /// a bound that is a formula.
    const WITHOUT_COMMAND: [&str; 11] = ["D1", "D2", "D3", "D4", "D5", "D6", "D7", "D8", "D9", "D10", "B42"];

    /// A published number and its quantity are the same here and on the book's page, which a test of `scale` writes.
    #[test]
    fn figures_are_those_of_the_book() {
        let rows = page_rows();
        let mut found = 0;
        for name in names() {
            let paper = paper(name).unwrap();
            for figure in paper.items.iter().flat_map(|item| &item.figures).filter(|figure| !figure.id.is_empty()) {
                let row = rows.iter().find(|row| row[1] == figure.id).expect("a row of that name");
                let published = figure.published.text(figure.unit);
                let published =
                    if figure.place.is_empty() { published } else { format!("{published} ({})", figure.place) };
                assert_eq!(row[3], published, "{}", figure.id);
                assert_eq!(row[2], figure.what, "{}", figure.id);
                found += 1;
            }
        }
        let is_named =
            |row: &&Vec<String>| row[1].strip_prefix(['B', 'T', 'D']).is_some_and(|rest| rest.parse::<u32>().is_ok());
        let named = rows.iter().filter(is_named).count();
        assert_eq!((found, named), (48, 48 + WITHOUT_COMMAND.len()), "figures of the papers, and of the page");
        assert!(WITHOUT_COMMAND.iter().all(|name| rows.iter().any(|row| row[1] == *name)));
    }
}
