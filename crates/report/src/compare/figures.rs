//! The fields of a row: how each figure of two runs is called and written.

use becalm_analyze::compare::{ComparedFigure, Metric, MetricUnit, TestFamily, Verdict};

use super::doubt::reason;
use crate::Value;
use crate::catalogue;
use crate::form::field::fields;
use crate::form::value::time;

/// A figure in its metric's unit.
pub(crate) fn figure(row: &ComparedFigure, number: Option<f64>) -> Value {
    let Some(number) = number else { return Value::Missing };
    match row.metric.unit() {
        MetricUnit::Nanoseconds => Value::time(number),
        MetricUnit::Hertz => Value::Rate(number),
        MetricUnit::Ratio => Value::Ratio(number),
    }
}

fn text(text: Option<impl Into<String>>) -> Value {
    text.map_or(Value::Missing, |text| Value::Text(text.into()))
}

fn plain(number: Option<f64>) -> Value {
    number.map_or(Value::Missing, Value::Factor)
}

pub(crate) fn ratio(row: &ComparedFigure) -> Option<f64> {
    row.effect.and_then(|effect| effect.ratio)
}

pub(crate) fn change(ratio: Option<f64>) -> Value {
    ratio.map_or(Value::Missing, |ratio| Value::Change(ratio - 1.0))
}

fields! {
    /// The fields of a row.
    pub(crate) ROW, row: ComparedFigure {
        WHAT = "what", "", |row| Value::Text(row.metric.name().to_owned());
        TITLE = "title", "", |row| Value::Text(title(row));
        FAMILY = "family", "family", |row| Value::Text(family(row.family).to_owned());
        NODE = catalogue::NODE, |row| text(row.place.as_ref().map(|place| place.node.as_str()));
        CPU = catalogue::CPU,
            |row| row.place.as_ref().and_then(|place| place.cpu).map_or(Value::Missing, |cpu| Value::Number(u64::from(cpu.get())));
        SOURCE = catalogue::SOURCE, |row| text(row.source.as_ref().map(|(_, source)| source.as_str()));
        KIND = catalogue::KIND, |row| text(row.source.as_ref().map(|(kind, _)| kind.name()));
        STRETCH_NS = "stretch_ns", "stretch", |row| row.stretch_ns.map_or(Value::Missing, Value::Time);
        UNIT = "unit", "unit", |row| Value::Text(unit(row.metric.unit()).to_owned());
        A = "a", "A", |row| figure(row, row.a);
        B = "b", "B", |row| figure(row, row.b);
        DIFFERENCE = "difference", "B - A", |row| figure(row, row.difference);
        LOW = "low", "low", |row| figure(row, row.low);
        HIGH = "high", "high", |row| figure(row, row.high);
        EFFECT = "effect", "effect", |row| plain(ratio(row));
        EFFECT_RATIO = "effect_ratio", "B / A", |row| plain(ratio(row));
        EFFECT_RATIO_LOW = "effect_ratio_low", "low", |row| plain(row.effect.and_then(|effect| effect.ratio_low));
        EFFECT_RATIO_HIGH = "effect_ratio_high", "high", |row| plain(row.effect.and_then(|effect| effect.ratio_high));
        P_VALUE = "p_value", "p", |row| plain(row.p_value);
        P_ADJUSTED = "p_adjusted", "adjusted p", |row| plain(row.p_adjusted);
        VERDICT = "verdict", "verdict", |row| Value::Text(row.verdict.name().to_owned());
        NOTE = "note", "note", |row| text(row.doubt.map(reason));
    }
}

fields! {
    /// The columns of a table beside the row's name, narrow enough for 80 columns.
    pub(crate) COLUMNS, columns: ComparedFigure {
        A = row::A;
        B = row::B;
        CHANGE = "change", "change", |row| change(ratio(row));
        LOW = "low", "low", |row| change(row.effect.and_then(|effect| effect.ratio_low));
        HIGH = "high", "high", |row| change(row.effect.and_then(|effect| effect.ratio_high));
        DIFFERENCE = "difference", "difference", |row| Value::Text(said(row.verdict).to_owned());
    }
}

/// The verdict below the title "difference".
pub(crate) const fn said(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Worse => "worse",
        Verdict::Better => "better",
        Verdict::Higher => "higher",
        Verdict::Lower => "lower",
        Verdict::NoDifferenceShown => "none shown",
        Verdict::NotEnoughData => "too little data",
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

/// What a figure is called in a table.
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
