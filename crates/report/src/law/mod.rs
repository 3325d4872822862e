//! The noise law for a terminal and as `becalm.law/1`.

use std::io::{self, Write};

use becalm_scale::law::{Law, LawPoint};
use becalm_units::Nanos;
use serde::Serialize;

use crate::Value;
use crate::catalogue;
use crate::form::field::{Object, fields};
use crate::form::paragraph::paragraph;
use crate::form::sheet::Sheet;
use crate::form::table::Table;
use crate::form::value::{factor, three_digits};
use crate::report::Report;

/// The law at some numbers of ranks.
#[derive(Clone, PartialEq, Debug)]
pub struct LawReport {
    /// The noise of a rank: how long its detours are, and how likely one is in a phase.
    pub law: Law,
    /// Useful CPU time of a phase.
    pub grain: Nanos,
    /// What the law says for each number of ranks, in their order.
    pub points: Vec<LawPoint>,
}

fields! {
    /// The fields of a row.
    ROW, row: LawPoint {
        RANKS = catalogue::RANKS, |row| Value::Count(row.ranks);
        DELAY_PROBABILITY = "delay_probability", "phases delayed", |row| Value::Ratio(row.delay_probability);
        SLOWDOWN_RATIO = catalogue::SLOWDOWN_RATIO, |row| Value::Factor(row.slowdown_ratio);
        LINEAR_RATIO = "linear_ratio", "linear law", |row| Value::Factor(row.linear_ratio);
        VALID = "valid", "linear law valid", |row| Value::Flag(row.valid);
    }
}

impl Report for LawReport {
    fn schema(&self) -> &'static str {
        "becalm.law/1"
    }

    fn document(&self) -> impl Serialize {
        document(self)
    }

    fn text(&self, out: &mut Sheet<'_>) -> io::Result<()> {
        render(self, out)
    }
}

#[derive(Serialize)]
struct LawDocument {
    grain_ns: i64,
    delay_ns: i64,
    rank_delay_probability: f64,
    limit_ratio: f64,
    rows: Vec<Object>,
}

/// The report as the document `becalm.law/1`.
fn document(report: &LawReport) -> LawDocument {
    LawDocument {
        grain_ns: report.grain.get(),
        delay_ns: report.law.delay().get(),
        rank_delay_probability: report.law.probability(),
        limit_ratio: report.law.limit_ratio(),
        rows: report.points.iter().map(|point| Object::new(ROW, point)).collect(),
    }
}

/// The report as a table for a terminal.
fn render(report: &LawReport, out: &mut Sheet<'_>) -> io::Result<()> {
    let law = &report.law;
    let p = three_digits(law.probability() * 100.0);
    let of_rank = format!("a rank loses {} in {p}% of its phases of {}", law.delay(), report.grain);
    paragraph(
        out,
        "  ",
        &format!("{of_rank}; no number of ranks is slowed down by more than {}", factor(law.limit_ratio())),
    )?;
    writeln!(out)?;
    let fields = [&row::RANKS, &row::DELAY_PROBABILITY, &row::SLOWDOWN_RATIO, &row::LINEAR_RATIO, &row::VALID];
    let mut table = Table::new(&fields);
    report.points.iter().for_each(|point| table.row(&fields, point));
    table.print(out)?;
    if report.points.iter().any(|point| !point.valid) {
        let warning = "the linear law, 1 + p n D/G, holds within 5% only up to n = 1/(10 p); beyond, read the slowdown, \
                       1 + (1 - (1-p)^n) D/G";
        paragraph(out, "  ! ", warning)?;
    }
    Ok(())
}
