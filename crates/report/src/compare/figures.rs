//! The fields of a row: names and formats of the compared figures.

use becalm_analyze::compare::{ComparedFigure, Metric, MetricUnit, TestFamily, Verdict};

use super::doubt::reason;
use crate::Value;
use crate::catalogue;
use crate::form::field::{Field, fields};
use crate::form::figure::{self, Change, Factor, Quantity, Time};
use crate::form::value::time;

/// A figure in its metric's unit.
pub fn figure(row: &ComparedFigure, number: Option<f64>) -> Option<Quantity> {
    let number = number?;
    Some(Quantity(match row.metric.unit() {
        MetricUnit::Nanoseconds => Value::time(number),
        MetricUnit::Hertz => Value::Rate(number),
        MetricUnit::Ratio => Value::Ratio(number),
    }))
}

pub(crate) fn ratio(row: &ComparedFigure) -> Option<f64> {
    row.effect.and_then(|effect| effect.ratio)
}

/// A change by the ratio of two figures.
pub fn change(ratio: Option<f64>) -> Option<Change> {
    ratio.map(|ratio| Change(ratio - 1.0))
}

fields! {
    /// The fields of a row.
    pub(crate) ROW, row: ComparedFigure {
        WHAT = "what", "", |row| row.metric.name();
        TITLE = "title", "", title;
        FAMILY = "family", "family", |row| family(row.family);
        NODE = catalogue::NODE, |row| row.place.as_ref().map(|place| place.node.clone());
        CPU = catalogue::CPU, |row| row.place.as_ref().and_then(|place| place.cpu);
        SOURCE = catalogue::SOURCE, |row| row.source.as_ref().map(|(_, source)| source.clone());
        KIND = catalogue::KIND, |row| row.source.as_ref().map(|(kind, _)| kind.name());
        STRETCH_NS = "stretch_ns", "stretch", |row| row.stretch_ns.map(Time);
        UNIT = "unit", "unit", |row| unit(row.metric.unit());
        A = "a", "A", |row| figure(row, row.a);
        B = "b", "B", |row| figure(row, row.b);
        DIFFERENCE = "difference", "B - A", |row| figure(row, row.difference);
        LOW = "low", "low", |row| figure(row, row.low);
        HIGH = "high", "high", |row| figure(row, row.high);
        EFFECT = "effect", "effect", |row| ratio(row).map(Factor);
        EFFECT_RATIO = "effect_ratio", "B / A", |row| ratio(row).map(Factor);
        EFFECT_RATIO_LOW = "effect_ratio_low", "low", |row| row.effect.and_then(|effect| effect.ratio_low).map(Factor);
        EFFECT_RATIO_HIGH = "effect_ratio_high", "high", |row| row.effect.and_then(|effect| effect.ratio_high).map(Factor);
        P_VALUE = "p_value", "p", |row| row.p_value.map(Factor);
        P_ADJUSTED = "p_adjusted", "adjusted p", |row| row.p_adjusted.map(Factor);
        VERDICT = "verdict", "verdict", |row| row.verdict.name();
        NOTE = "note", "note", |row| row.doubt.map(reason);
    }
}

fields! {
    /// Fields only of tables.
    columns: ComparedFigure {
        CHANGE = "change", "change", |row| change(ratio(row));
        INTERVAL = "interval", "95 % CI", interval;
        DIFFERENCE = "difference", "difference", |row| said(row.verdict);
    }
}

/// The columns of a table after the row's name, narrow enough for 80 columns.
pub(crate) const COLUMNS: [&Field<ComparedFigure>; 5] =
    [&row::A, &row::B, &columns::CHANGE, &columns::INTERVAL, &columns::DIFFERENCE];

/// The columns of a table of shares after the row's name: how many percent of time became more or less, since shares of 0 have no relative change.
pub const SHARE_COLUMNS: [&Field<ComparedFigure>; 4] = [&row::A, &row::B, &row::DIFFERENCE, &columns::DIFFERENCE];

/// The 95 % interval of a change.
pub fn interval(row: &ComparedFigure) -> Option<String> {
    let effect = row.effect?;
    figure::interval(change(effect.ratio_low), change(effect.ratio_high))
}

/// The verdict in the column "difference".
pub const fn said(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Worse | Verdict::Higher => "higher",
        Verdict::Better | Verdict::Lower => "lower",
        Verdict::NoDifferenceShown => "not significant",
        Verdict::NotEnoughData => "not enough data",
    }
}

const fn unit(unit: MetricUnit) -> &'static str {
    match unit {
        MetricUnit::Nanoseconds => "ns",
        MetricUnit::Hertz => "hz",
        MetricUnit::Ratio => "ratio",
    }
}

const fn family(family: TestFamily) -> &'static str {
    match family {
        TestFamily::Headline => "headline",
        TestFamily::Total => "total",
        TestFamily::Sources => "sources",
        TestFamily::Nodes => "nodes",
        TestFamily::Cpus => "cpus",
    }
}

/// The name of a figure in a table.
pub(crate) fn title(row: &ComparedFigure) -> String {
    match (row.metric, row.stretch_ns) {
        (Metric::NoiseRatio, _) => "noise".to_owned(),
        (Metric::Rate, _) => "rate".to_owned(),
        (Metric::Mean, _) => "mean".to_owned(),
        (Metric::P99, _) => "p99".to_owned(),
        (Metric::P999, _) => "p99.9".to_owned(),
        (Metric::StretchMax, Some(ns)) => format!("longest in {}", time(ns)),
        (Metric::StretchMax, None) => "longest in a stretch".to_owned(),
        (Metric::Max, _) => "max".to_owned(),
        (Metric::TimeRatio, _) => "of time".to_owned(),
    }
}
