//! Several noises, one after the other: which share of the time each was to take and took, as tables, as a surface, and as
//! `becalm.inject-sweep/1`.

use std::collections::BTreeMap;
use std::io::{self, Write};

use becalm_units::{Nanos, printable};
use serde::Serialize;
use serde_json::Value as Json;

use crate::Value;
use crate::form::paragraph::paragraph;
use crate::form::sheet::Sheet;
use crate::form::value::three_digits;
use crate::report::Report;
use crate::sweep::{Axes, Axis};

/// What was delivered of several noises.
pub struct InjectSweepReport<'a> {
    /// How it is said how often detours come: `interval`, `rate` or `ratio`.
    pub option: &'static str,
    /// Its values.
    pub often: &'a [String],
    /// The lengths of detours.
    pub detours: &'a [Nanos],
    /// The noises, in the order in which they were made: those of one value of the option next to each other, and of each the same lengths.
    /// Those at the end may be missing.
    pub cells: &'a [InjectedCell],
}

/// One of several noises.
#[derive(Clone, Debug)]
pub struct InjectedCell {
    /// How often its detours come, as it was asked for.
    pub often: String,
    /// How long they are.
    pub detour: Nanos,
    /// What was delivered, as `becalm.inject/1`; `None` where it was not made.
    pub document: Option<Json>,
    /// Why it was not made.
    pub why_not: Option<String>,
}

impl InjectedCell {
    /// A figure of all places together, asked for or delivered.
    fn figure(&self, of: &str, name: &str) -> Option<f64> {
        self.document.as_ref()?[of][name].as_f64()
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

impl<'a> CellDocument<'a> {
    fn of(option: &'static str, cell: &'a InjectedCell) -> Self {
        let InjectedCell { often, detour, document, why_not } = cell;
        Self {
            often: [(option, often.as_str())].into(),
            detour_ns: detour.get(),
            why_not: why_not.as_deref(),
            injected: document.as_ref(),
        }
    }
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
        let cell = |cell| CellDocument::of(self.option, cell);
        SweepDocument { cells: self.cells.iter().map(cell).collect() }
    }

    fn text(&self, out: &mut Sheet<'_>) -> io::Result<()> {
        let (axes, cells) = self.axes();
        let shown = [
            ("Noise asked for", "requested", "ratio", Value::Ratio as fn(f64) -> Value),
            ("Noise delivered", "delivered", "ratio", Value::Ratio),
            ("Mean length delivered", "delivered", "length_ns", Value::time),
        ];
        for (number, (title, of, name, value)) in shown.into_iter().enumerate() {
            writeln!(out, "{}{title}{}", if number > 0 { "\n" } else { "" }, axes.columns_are())?;
            let figure = |cell: &Option<&InjectedCell>| cell.and_then(|cell| cell.figure(of, name));
            let values: Vec<Value> = cells.iter().map(|cell| figure(cell).map_or(Value::Missing, value)).collect();
            axes.table(title, &values, out)?;
        }
        let delivered: Vec<Option<f64>> =
            cells.iter().map(|cell| cell.and_then(|cell| cell.figure("delivered", "ratio"))).collect();
        let written = |ratio: f64| format!("{}%", three_digits(ratio * 100.0));
        axes.surface("Noise delivered", &delivered, written, out)?;
        for cell in self.cells {
            if let Some(why) = &cell.why_not {
                let name = format!("{} {}, detour {}", self.option, printable(&cell.often), cell.detour);
                paragraph(out, "  ! ", &format!("{name} was not made: {why}"))?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::form::sheet::Form;
    use crate::report::text;

    #[test]
    fn what_was_not_made_is_left_open_and_named() {
        let cell = |often: &str, detour, ratio: Option<f64>| InjectedCell {
            often: often.to_owned(),
            detour: Nanos::from_micros(detour),
            document: ratio.map(
                |ratio| json!({ "requested": { "ratio": 0.1 }, "delivered": { "ratio": ratio, "length_ns": 1e5 } }),
            ),
            why_not: ratio.is_none().then(|| "it is too short".to_owned()),
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
