//! Predictions held against a real job at several grains: what each grain came to, one after the other, all noises beside each other, and
//! `becalm.mpi-validate-sweep/1`.

use std::io::{self, Write};

use becalm_analyze::validation::error_ratio;
use becalm_model::validation::{ValidationCell, ValidationDoc};
use serde::Serialize;

use super::{ValidateDocument, document, render};
use crate::Value;
use crate::form::sheet::Sheet;
use crate::form::value::factor;
use crate::report::Report;
use crate::sweep::{Axes, Axis};

/// The same noises under a job of each grain.
pub struct ValidationSweepReport<'a> {
    /// What each grain came to, in the order in which they were asked for; at least one.
    pub grains: &'a [ValidationDoc],
}

#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub(crate) struct SweepDocument<'a> {
    grains: Vec<ValidateDocument<'a>>,
}

/// A noise in a few words, other than every other one of a grid: `apart 1ms 50us`.
fn named(cell: &ValidationCell) -> String {
    let when = if cell.synchronized { "together" } else { "apart" };
    let ratio = cell.constant_ratio.map_or_else(String::new, |ratio| format!(" ({})", Value::Ratio(ratio).cell()));
    format!("{when} {} {}{ratio}", cell.interval_ns, cell.detour_ns)
}

impl ValidationSweepReport<'_> {
    /// A figure of each noise at each grain, the grains of a noise next to each other.
    fn by_noise<T>(&self, figure: impl Fn(&ValidationCell) -> Option<T>) -> Vec<Option<T>> {
        let noises = 0..self.grains[0].cells.len();
        noises
            .flat_map(|noise| self.grains.iter().map(move |doc| (noise, doc)))
            .map(|(noise, doc)| doc.cells.get(noise).and_then(&figure))
            .collect()
    }
}

impl Report for ValidationSweepReport<'_> {
    fn schema(&self) -> &'static str {
        "becalm.mpi-validate-sweep/1"
    }

    fn document(&self) -> impl Serialize {
        SweepDocument { grains: self.grains.iter().map(document).collect() }
    }

    fn text(&self, out: &mut Sheet<'_>) -> io::Result<()> {
        for doc in self.grains {
            writeln!(out, "Grain {}", doc.grain_ns)?;
            render(doc, out)?;
            writeln!(out)?;
        }
        let noises = self.grains[0].cells.iter().map(named).collect();
        let grains = self.grains.iter().map(|doc| doc.grain_ns.to_string()).collect();
        let axes = Axes::new(vec![Axis::named("noise", noises), Axis::named("grain", grains)]);
        let measured = self.by_noise(|cell| cell.measured.map(|estimate| estimate.mean));
        let predicted = self.by_noise(|cell| cell.predicted.map(|estimate| estimate.mean));
        let errors = self.by_noise(error_ratio);
        let cells = |values: &[Option<f64>], cell: fn(f64) -> Value| -> Vec<Value> {
            values.iter().map(|value| value.map_or(Value::Missing, cell)).collect()
        };
        let tables = [
            ("Slowdown, measured", &measured, Value::Factor as fn(f64) -> Value),
            ("Slowdown, predicted", &predicted, Value::Factor),
            ("Error of the prediction", &errors, Value::Change),
        ];
        for (title, values, cell) in tables {
            writeln!(out, "{title}{}", axes.columns_are())?;
            axes.table(title, &cells(values, cell), out)?;
            writeln!(out)?;
        }
        axes.surface("Surface: the measured slowdowns as shades", &measured, factor, out)
    }
}
