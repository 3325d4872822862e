//! Several noises, one after the other: requested and delivered shares of time in tables, in a surface, and in `becalm.inject-sweep/1`.

mod command;

use std::collections::BTreeMap;

use becalm_report::form::section::{Block, Page, Section};
use becalm_report::form::sheet::Form;
use becalm_report::html::AxisUnit;
use becalm_report::sweep::{Axes, Axis, SweepFigure};
use becalm_report::{Report, Value};
use becalm_units::{Nanos, printable};
use serde::Serialize;
use serde_json::Value as Json;

pub use command::{InjectSweep, run};

/// The delivered share of several noises.
struct InjectSweepReport<'a> {
    /// The option for the frequency of detours: `interval`, `rate` or `ratio`.
    option: &'static str,
    /// Its values.
    often: &'a [String],
    /// The lengths of detours.
    detours: &'a [Nanos],
    /// The noises in the order of their runs, the lengths of one value next to each other. Those at the end may be missing.
    cells: &'a [InjectedCell],
}

/// One of several noises.
struct InjectedCell {
    /// The requested frequency of its detours.
    often: String,
    /// The length of its detours.
    detour: Nanos,
    /// The delivered noise, as `becalm.inject/1`, or why it was not made.
    made: Result<Json, String>,
}

impl InjectedCell {
    /// A figure over all CPUs and threads together, requested or delivered.
    fn figure(&self, part: &str, name: &str) -> Option<f64> {
        self.made.as_ref().ok()?[part][name].as_f64()
    }
}

#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
struct CellDocument<'a> {
    #[serde(flatten)]
    #[cfg_attr(feature = "schemas", schemars(schema_with = "options"))]
    often: BTreeMap<&'static str, &'a str>,
    detour_ns: i64,
    why_not: Option<&'a str>,
    #[cfg_attr(
        feature = "schemas",
        schemars(extend(
            "type" = ["object", "null"],
            "properties" = { "schema": { "type": "string" } },
            "required" = ["schema"],
            "additionalProperties" = true
        ))
    )]
    injected: Option<&'a Json>,
}

/// The schema of the option whose values are swept.
#[cfg(feature = "schemas")]
fn options(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    let text = schemars::json_schema!({ "type": "string" });
    schemars::json_schema!({ "type": "object", "properties": { "interval": text, "rate": text, "ratio": text } })
}

#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub(crate) struct SweepDocument<'a> {
    cells: Vec<CellDocument<'a>>,
}

impl InjectSweepReport<'_> {
    fn axes(&self) -> Axes {
        let time = |time: Nanos| time.get() as f64;
        let detours = Axis::numbered("detour", self.detours, AxisUnit::Time, Nanos::to_string, time);
        Axes::new(vec![Axis::named(self.option, self.often.to_vec()), detours])
    }

    /// A figure of each cell; `None` for those that are missing.
    fn values(&self, part: &str, name: &str) -> Vec<Option<f64>> {
        let mut values: Vec<Option<f64>> = self.cells.iter().map(|cell| cell.figure(part, name)).collect();
        values.resize(self.often.len() * self.detours.len(), None);
        values
    }
}

impl Report for InjectSweepReport<'_> {
    fn schema(&self) -> &'static str {
        "becalm.inject-sweep/1"
    }

    fn document(&self) -> impl Serialize {
        let cells = self.cells.iter().map(|InjectedCell { often, detour, made }| CellDocument {
            often: [(self.option, often.as_str())].into(),
            detour_ns: detour.get(),
            why_not: made.as_ref().err().map(String::as_str),
            injected: made.as_ref().ok(),
        });
        SweepDocument { cells: cells.collect() }
    }

    fn view(&self, _: Form) -> Page {
        let axes = self.axes();
        let figure =
            |title, unit, cell, part, name| SweepFigure::new(&axes, title, unit, cell, self.values(part, name));
        let requested = figure("requested noise", AxisUnit::Ratio, Value::Ratio, "requested", "ratio");
        let delivered = figure("delivered noise", AxisUnit::Ratio, Value::Ratio, "delivered", "ratio");
        let lengths = figure("mean length", AxisUnit::Time, Value::time, "delivered", "length_ns");
        let missing = self.cells.iter().filter_map(|cell| {
            let why = cell.made.as_ref().err()?;
            let name = format!("{} {}, detour {}", self.option, printable(&cell.often), cell.detour);
            Some(Block::warning(format!("{name} was not injected: {why}")))
        });
        let sections = vec![
            requested.section("requested-", "Requested", "Requested noise"),
            delivered.section("delivered-", "Delivered", "Delivered noise"),
            lengths.section("length-", "Length", "Mean delivered length"),
            delivered.surface_section("Delivered noise", &[]),
            Section::new("missing", "Not injected", "Not injected", missing.collect()),
        ];
        let subtitle = format!("{} and length of detours", self.option);
        Page { title: "Injected noise".to_owned(), subtitle, sections, foot: Vec::new() }
    }
}

#[cfg(test)]
mod tests {
    use becalm_report::text;
    use becalm_testing::page::contents;
    use serde_json::json;

    use super::*;

    #[test]
    fn what_was_not_made_is_left_open_and_named() {
        let cell = |often: &str, detour, ratio: Option<f64>| InjectedCell {
            often: often.to_owned(),
            detour: Nanos::from_micros(detour),
            made: ratio
                .map(
                    |ratio| json!({ "requested": { "ratio": 0.1 }, "delivered": { "ratio": ratio, "length_ns": 1e5 } }),
                )
                .ok_or_else(|| "it is too short".to_owned()),
        };
        let cells = [cell("1ms", 1, None), cell("1ms", 100, Some(0.1)), cell("10ms", 1, None)];
        let often = ["1ms", "10ms"].map(str::to_owned);
        let detours = [1, 100].map(Nanos::from_micros);
        // The last noise was not reached.
        let report = InjectSweepReport { option: "interval", often: &often, detours: &detours, cells: &cells };
        let text = text(&report, Form::default());
        let lines: Vec<Vec<&str>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(lines[1], ["interval", "1us", "100us"], "{text}");
        assert_eq!((&lines[3][..], &lines[4][..]), (&["1ms", "-", "10.0%"][..], &["10ms", "-", "-"][..]), "{text}");
        assert!(text.contains("interval 10ms, detour 1us was not injected: it is too short"), "{text}");
        let mut page = Vec::new();
        report.page("becalm 0.0.0").unwrap().write(&mut page).unwrap();
        let page = contents(&String::from_utf8(page).unwrap());
        for part in
            ["<caption>Delivered noise; columns: detour</caption>", "id=\"delivered-1-chart\"", "was not injected"]
        {
            assert!(page.contains(part), "{part}: {page}");
        }
    }
}
