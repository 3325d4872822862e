//! The noise law for a terminal and as `becalm.law/1`.

pub(crate) mod view;

use becalm_scale::law::{Law, LawPoint, TolerablePoint};
use becalm_units::{Nanos, Share};
use serde::Serialize;

use crate::catalogue;
use crate::form::field::{Field, Object, fields};
use crate::form::figure::{Factor, Ratio};
use crate::form::section::Page;
use crate::form::sheet::Form;
use crate::form::value::three_digits;
use crate::report::Report;

/// The law for some numbers of ranks.
#[derive(Clone, PartialEq, Debug)]
pub struct LawReport {
    /// The noise of a rank: the length of its detours, and the probability of one per phase.
    pub law: Law,
    /// The grain (compute time of a phase).
    pub grain: Nanos,
    /// The share of its time that a job may lose, if given.
    pub tolerated: Option<Share>,
    /// The law for each number of ranks, in order.
    pub rows: Vec<LawRow>,
}

/// The law at one number of ranks.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct LawRow {
    /// The result of the law.
    pub point: LawPoint,
    /// The tolerable noise there, if requested.
    pub tolerable: Option<TolerablePoint>,
}

fields! {
    /// The fields of a row.
    pub(crate) ROW, row: LawRow {
        RANKS = catalogue::RANKS, |row| row.point.ranks;
        DELAY_PROBABILITY = "delay_probability", "phases delayed", |row| Ratio(row.point.delay_probability);
        SLOWDOWN_RATIO = catalogue::SLOWDOWN_RATIO, |row| Factor(row.point.slowdown_ratio);
        LINEAR_RATIO = "linear_ratio", "linear law", |row| Factor(row.point.linear_ratio);
        VALID = "valid", "linear law valid", |row| row.point.valid;
        TOLERABLE_DELAY_NS = "tolerable_delay_ns", "D may be", |row| {
            row.tolerable.and_then(|tolerable| tolerable.delay)
        };
        TOLERABLE_PROBABILITY = "tolerable_probability", "p may be",
            |row| row.tolerable.map(|tolerable| Ratio(tolerable.probability));
    }
}

impl Report for LawReport {
    fn schema(&self) -> &'static str {
        "becalm.law/1"
    }

    fn document(&self) -> impl Serialize {
        document(self)
    }

    fn view(&self, _: Form) -> Page {
        view::page(self)
    }
}

#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub(crate) struct LawDocument {
    grain_ns: i64,
    delay_ns: i64,
    rank_delay_probability: f64,
    limit_ratio: f64,
    tolerated_ratio: Option<f64>,
    tolerable_ranks: Option<u64>,
    rows: Vec<Object<LawRow>>,
}

/// The report as the document `becalm.law/1`.
fn document(report: &LawReport) -> LawDocument {
    LawDocument {
        grain_ns: report.grain.get(),
        delay_ns: report.law.delay().get(),
        rank_delay_probability: report.law.probability(),
        limit_ratio: report.law.limit_ratio(),
        tolerated_ratio: report.tolerated.map(Share::ratio),
        tolerable_ranks: report.tolerated.and_then(|lost| report.law.tolerable_ranks(lost.ratio())),
        rows: report.rows.iter().map(Object::new).collect(),
    }
}

/// The noise of a rank in words.
fn rank_of(report: &LawReport) -> String {
    let p = three_digits(report.law.probability() * 100.0);
    format!("a rank loses {} in {p}% of its phases of {}", report.law.delay(), report.grain)
}

/// The columns of the table.
fn row_fields(report: &LawReport) -> Vec<&'static Field<LawRow>> {
    let mut fields: Vec<&'static Field<LawRow>> =
        vec![&row::RANKS, &row::DELAY_PROBABILITY, &row::SLOWDOWN_RATIO, &row::LINEAR_RATIO, &row::VALID];
    if report.tolerated.is_some() {
        fields.push(&row::TOLERABLE_DELAY_NS);
        fields.push(&row::TOLERABLE_PROBABILITY);
    }
    fields
}
