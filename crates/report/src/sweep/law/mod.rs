//! The noise law over several grains, delays and rates: a table, a surface, and `becalm.law-sweep/1`.

mod view;

use becalm_scale::law::Law;
use becalm_units::{Nanos, Share};
use serde::Serialize;

use super::figure::RANKS;
use super::{Axes, Axis};
use crate::form::field::Object;
use crate::form::sheet::Form;
use crate::form::value::{grouped, three_digits};
use crate::html::{AxisUnit, Page};
use crate::law::LawRow;
use crate::report::Report;

/// How often a rank is delayed, as given on the command line.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum LawOften {
    /// The share of delayed phases.
    Probability(Share),
    /// The rate of delays, in Hz.
    Rate(f64),
}

/// The law for one grain, delay, rate and number of ranks.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct LawCell {
    /// The noise of a rank.
    pub law: Law,
    /// The grain (compute time of a phase).
    pub grain: Nanos,
    /// How often a rank is delayed.
    pub often: LawOften,
    /// The result of the law.
    pub row: LawRow,
}

/// The law over several grains, delays and rates.
#[derive(Clone, PartialEq, Debug)]
pub struct LawSweepReport {
    /// The grains (compute time of a phase).
    pub grains: Vec<Nanos>,
    /// The lengths of delays.
    pub delays: Vec<Nanos>,
    /// How often delays occur.
    pub often: Vec<LawOften>,
    /// The numbers of ranks.
    pub ranks: Vec<u64>,
    /// The share of its time that a job may lose, if given.
    pub tolerated: Option<Share>,
    /// One cell per combination, in this order: delay, rate, grain, ranks. The ranks vary fastest.
    pub cells: Vec<LawCell>,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub(crate) struct LawSweepDocument {
    tolerated_ratio: Option<f64>,
    cells: Vec<LawCellDocument>,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
struct LawCellDocument {
    grain_ns: i64,
    delay_ns: i64,
    rate_hz: Option<f64>,
    rank_delay_probability: f64,
    limit_ratio: f64,
    tolerable_ranks: Option<u64>,
    #[serde(flatten)]
    row: Object<LawRow>,
}

impl LawSweepReport {
    fn cell_document(&self, cell: &LawCell) -> LawCellDocument {
        LawCellDocument {
            grain_ns: cell.grain.get(),
            delay_ns: cell.law.delay().get(),
            rate_hz: match cell.often {
                LawOften::Rate(rate) => Some(rate),
                LawOften::Probability(_) => None,
            },
            rank_delay_probability: cell.law.probability(),
            limit_ratio: cell.law.limit_ratio(),
            tolerable_ranks: self.tolerated.and_then(|lost| cell.law.tolerable_ranks(lost.ratio())),
            row: Object::new(&cell.row),
        }
    }

    fn axes(&self) -> Axes {
        let often = |often: &LawOften| match often {
            LawOften::Probability(share) => share.to_string(),
            LawOften::Rate(rate) => format!("{}Hz", three_digits(*rate)),
        };
        let number = |often: LawOften| match often {
            LawOften::Probability(share) => share.ratio(),
            LawOften::Rate(rate) => rate,
        };
        let (title, unit) = match self.often.first() {
            Some(LawOften::Rate(_)) => ("rate", AxisUnit::Rate),
            _ => ("p", AxisUnit::Ratio),
        };
        let times = |title, times: &[Nanos]| {
            Axis::numbered(title, times, AxisUnit::Time, Nanos::to_string, |time| time.get() as f64)
        };
        Axes::new(vec![
            times("delay", &self.delays),
            Axis::numbered(title, &self.often, unit, often, number),
            times("grain", &self.grains),
            Axis::numbered(RANKS, &self.ranks, AxisUnit::Ranks, |ranks| grouped(*ranks), |ranks| ranks as f64),
        ])
    }

    /// The settings common to all cells.
    fn heading(&self) -> String {
        let one = |what: &str, times: &[Nanos]| match times {
            [time] => format!("{what} {time}"),
            several => format!("{} {what}s", several.len()),
        };
        let often = match self.often.as_slice() {
            [LawOften::Rate(rate)] => format!("{} a second on a rank", three_digits(*rate)),
            [LawOften::Probability(share)] => format!("in {share} of a rank's phases"),
            [LawOften::Rate(_), ..] => format!("{} rates", self.often.len()),
            _ => format!("{} probabilities", self.often.len()),
        };
        format!("{}, {often}; {}", one("delay", &self.delays), one("grain", &self.grains))
    }
}

impl Report for LawSweepReport {
    fn schema(&self) -> &'static str {
        "becalm.law-sweep/1"
    }

    fn document(&self) -> impl Serialize {
        LawSweepDocument {
            tolerated_ratio: self.tolerated.map(Share::ratio),
            cells: self.cells.iter().map(|cell| self.cell_document(cell)).collect(),
        }
    }

    fn view(&self, _: Form) -> Page {
        view::page(self)
    }
}
