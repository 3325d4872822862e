//! The fields of a row: how each figure of two runs is called and written.

use becalm_analyze::compare::{Family, Metric, Row, Unit, Verdict};

use super::words::reason;
use crate::Value;
use crate::form::field::Field;
use crate::form::value::time;

/// A figure in its metric's unit.
pub(crate) fn figure(row: &Row, number: Option<f64>) -> Value {
    let Some(number) = number else { return Value::Missing };
    match row.metric.unit() {
        Unit::Nanoseconds => Value::time(number),
        Unit::Hertz => Value::Rate(number),
        Unit::Ratio => Value::Ratio(number),
    }
}

fn text(text: Option<impl Into<String>>) -> Value {
    text.map_or(Value::Missing, |text| Value::Text(text.into()))
}

fn plain(number: Option<f64>) -> Value {
    number.map_or(Value::Missing, Value::Factor)
}

pub(crate) fn ratio(row: &Row) -> Option<f64> {
    row.effect.and_then(|effect| effect.ratio)
}

pub(crate) fn change(ratio: Option<f64>) -> Value {
    ratio.map_or(Value::Missing, |ratio| Value::Change(ratio - 1.0))
}

/// The fields of a row.
pub(super) const ROW: &[Field<Row>] = &[
    Field { name: "what", title: "", get: |row| Value::Text(row.metric.name().to_owned()) },
    Field { name: "title", title: "", get: |row| Value::Text(title(row)) },
    Field { name: "family", title: "family", get: |row| Value::Text(family(row.family).to_owned()) },
    Field { name: "node", title: "node", get: |row| text(row.place.as_ref().map(|place| place.node.as_str())) },
    Field {
        name: "cpu",
        title: "cpu",
        get: |row| row.place.as_ref().map_or(Value::Missing, |place| Value::Number(u64::from(place.cpu.get()))),
    },
    Field { name: "source", title: "source", get: |row| text(row.source.as_ref().map(|(_, source)| source.as_str())) },
    Field { name: "kind", title: "kind", get: |row| text(row.source.as_ref().map(|(kind, _)| kind.name())) },
    Field { name: "stretch_ns", title: "stretch", get: |row| row.stretch_ns.map_or(Value::Missing, Value::Time) },
    Field { name: "unit", title: "unit", get: |row| Value::Text(unit(row.metric.unit()).to_owned()) },
    Field { name: "a", title: "A", get: |row| figure(row, row.a) },
    Field { name: "b", title: "B", get: |row| figure(row, row.b) },
    Field { name: "difference", title: "B - A", get: |row| figure(row, row.difference) },
    Field { name: "low", title: "low", get: |row| figure(row, row.low) },
    Field { name: "high", title: "high", get: |row| figure(row, row.high) },
    Field { name: "effect", title: "effect", get: |row| plain(ratio(row)) },
    Field { name: "effect_ratio", title: "B / A", get: |row| plain(ratio(row)) },
    Field { name: "effect_ratio_low", title: "low", get: |row| plain(row.effect.and_then(|effect| effect.ratio_low)) },
    Field {
        name: "effect_ratio_high",
        title: "high",
        get: |row| plain(row.effect.and_then(|effect| effect.ratio_high)),
    },
    Field { name: "cliffs_delta", title: "delta", get: |row| plain(row.effect.and_then(|effect| effect.cliffs_delta)) },
    Field { name: "p_value", title: "p", get: |row| plain(row.p_value) },
    Field { name: "p_adjusted", title: "adjusted p", get: |row| plain(row.p_adjusted) },
    Field { name: "verdict", title: "verdict", get: |row| Value::Text(row.verdict.name().to_owned()) },
    Field { name: "note", title: "note", get: |row| text(row.doubt.map(reason)) },
];

/// The columns of a table beside the row's name, narrow enough for 80 columns.
pub(crate) const COLUMNS: &[Field<Row>] = &[
    Field { name: "a", title: "A", get: |row| figure(row, row.a) },
    Field { name: "b", title: "B", get: |row| figure(row, row.b) },
    Field { name: "change", title: "change", get: |row| change(ratio(row)) },
    Field { name: "low", title: "low", get: |row| change(row.effect.and_then(|effect| effect.ratio_low)) },
    Field { name: "high", title: "high", get: |row| change(row.effect.and_then(|effect| effect.ratio_high)) },
    Field { name: "difference", title: "difference", get: |row| Value::Text(said(row.verdict).to_owned()) },
];

/// The verdict below the title "difference".
const fn said(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Worse => "worse",
        Verdict::Better => "better",
        Verdict::NoDifferenceShown => "none shown",
        Verdict::NotEnoughData => "too little data",
    }
}

const fn unit(unit: Unit) -> &'static str {
    match unit {
        Unit::Nanoseconds => "ns",
        Unit::Hertz => "hz",
        Unit::Ratio => "ratio",
    }
}

const fn family(family: Family) -> &'static str {
    match family {
        Family::Headline => "headline",
        Family::Total => "total",
        Family::Sources => "sources",
        Family::Cpus => "cpus",
    }
}

/// What a figure is called in a table.
pub(crate) fn title(row: &Row) -> String {
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
