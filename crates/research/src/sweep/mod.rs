//! Several noises, one after the other: which share of the time each was to take and took, as tables, as a surface, and as
//! `becalm.inject-sweep/1`.

mod command;

use std::collections::BTreeMap;
use std::io::{self, Write};

use becalm_report::form::paragraph::paragraph;
use becalm_report::form::sheet::Sheet;
use becalm_report::form::value::three_digits;
use becalm_report::sweep::{Axes, Axis};
use becalm_report::{Report, Value};
use becalm_units::{Nanos, printable};
use serde::Serialize;
use serde_json::Value as Json;

pub use command::{InjectSweep, run};

/// What was delivered of several noises.
struct InjectSweepReport<'a> {
    /// The option that says how often detours come: `interval`, `rate` or `ratio`.
    option: &'static str,
    /// Its values.
    often: &'a [String],
    /// The lengths of detours.
    detours: &'a [Nanos],
    /// The noises in the order in which they were made, the lengths of one value next to each other. Those at the end may be missing.
    cells: &'a [InjectedCell],
}

/// One of several noises.
struct InjectedCell {
    /// How often its detours come, as it was asked for.
    often: String,
    /// How long they are.
    detour: Nanos,
    /// What was delivered, as `becalm.inject/1`, or why it was not made.
    made: Result<Json, String>,
}

impl InjectedCell {
    /// A figure of all places together, requested or delivered.
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
    /// The parameters, and the cells with nothing for those that are missing.
    fn axes(&self) -> (Axes, Vec<Option<&InjectedCell>>) {
        let mut cells: Vec<Option<&InjectedCell>> = self.cells.iter().map(Some).collect();
        cells.resize(self.often.len() * self.detours.len(), None);
        let detours = self.detours.iter().map(ToString::to_string).collect();
        (Axes::new(vec![Axis::named(self.option, self.often.to_vec()), Axis::named("detour", detours)]), cells)
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

    fn text(&self, out: &mut Sheet<'_>) -> io::Result<()> {
        let (axes, cells) = self.axes();
        let shown = [
            ("Noise asked for", "requested", "ratio", Value::Ratio as fn(f64) -> Value),
            ("Noise delivered", "delivered", "ratio", Value::Ratio),
            ("Mean length delivered", "delivered", "length_ns", Value::time),
        ];
        for (number, (title, part, name, value)) in shown.into_iter().enumerate() {
            writeln!(out, "{}{title}{}", if number > 0 { "\n" } else { "" }, axes.columns_are())?;
            let figure = |cell: &Option<&InjectedCell>| cell.and_then(|cell| cell.figure(part, name));
            let values: Vec<Value> = cells.iter().map(|cell| figure(cell).map_or(Value::Missing, value)).collect();
            axes.table(title, &values, out)?;
        }
        let delivered: Vec<Option<f64>> =
            cells.iter().map(|cell| cell.and_then(|cell| cell.figure("delivered", "ratio"))).collect();
        let written = |ratio: f64| format!("{}%", three_digits(ratio * 100.0));
        axes.surface("Noise delivered", &delivered, written, out)?;
        for cell in self.cells {
            if let Err(why) = &cell.made {
                let name = format!("{} {}, detour {}", self.option, printable(&cell.often), cell.detour);
                paragraph(out, "  ! ", &format!("{name} was not made: {why}"))?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use becalm_report::form::sheet::Form;
    use becalm_report::text;
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
        assert!(text.contains("interval 10ms, detour 1us was not made: it is too short"), "{text}");
    }
}
