//! Predictions compared with an actual job at several grains: each grain in turn, all noises side by side, and `becalm.mpi-validate-sweep/1`.

use becalm_analyze::validation::error_ratio;
use becalm_model::validation::{ValidationCell, ValidationDoc};
use becalm_units::Nanos;
use serde::Serialize;

use super::{TITLE, ValidateDocument, document, heading};
use crate::Value;
use crate::form::section::{Block, Page, Section};
use crate::form::sheet::Form;
use crate::html::AxisUnit;
use crate::report::Report;
use crate::sweep::{Axes, Axis, SweepFigure};

/// The same noises for a job of each grain.
pub struct ValidationSweepReport<'a> {
    /// The result of each grain, in the given order; at least one.
    pub grains: &'a [ValidationDoc],
}

#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub(crate) struct SweepDocument<'a> {
    grains: Vec<ValidateDocument<'a>>,
}

/// A noise in a few words, unique within a grid: `apart 1ms 50us`.
fn named(cell: &ValidationCell) -> String {
    let when = if cell.synchronized { "together" } else { "apart" };
    let ratio = cell.constant_ratio.map_or_else(String::new, |ratio| format!(" ({})", Value::Ratio(ratio).cell()));
    format!("{when} {} {}{ratio}", cell.interval_ns, cell.detour_ns)
}

impl ValidationSweepReport<'_> {
    /// A figure of each noise at each grain; the grain varies fastest.
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

    fn view(&self, form: Form) -> Page {
        let noises = self.grains[0].cells.iter().map(named).collect();
        let grains: Vec<Nanos> = self.grains.iter().map(|doc| doc.grain_ns).collect();
        let names = grains.iter().map(Nanos::to_string).collect::<Vec<_>>().join(", ");
        let grains = Axis::numbered("grain", &grains, AxisUnit::Time, Nanos::to_string, |grain| grain.get() as f64);
        let axes = Axes::new(vec![Axis::named("noise", noises), grains]);
        let measured = self.by_noise(|cell| cell.measured.map(|estimate| estimate.mean));
        let predicted = self.by_noise(|cell| cell.predicted.map(|estimate| estimate.mean));
        let measured = SweepFigure::new(&axes, "measured slowdown", AxisUnit::Factor, Value::Factor, measured);
        let predicted = SweepFigure::new(&axes, "predicted slowdown", AxisUnit::Factor, Value::Factor, predicted);
        let errors = SweepFigure::new(&axes, "error", AxisUnit::Ratio, Value::Change, self.by_noise(error_ratio));
        let mut blocks = vec![Block::facts([("grains", names)])];
        for doc in self.grains {
            blocks.push(Block::Heading(format!("Grain {}", doc.grain_ns)));
            blocks.extend(super::blocks(doc, form));
        }
        let sections = vec![
            Section::new("grains", "Grains", "Grain by grain", blocks),
            measured.section("slowdown-", "Measured", "Slowdown, measured"),
            predicted.section("predicted-slowdown-", "Predicted", "Slowdown, predicted"),
            errors.section("error-", "Error", "Error of the prediction"),
            measured.surface_section("Surface: the measured slowdowns as shades", &[]),
        ];
        Page { title: TITLE.to_owned(), subtitle: heading(&self.grains[0]), sections, foot: Vec::new() }
    }
}
