//! Distributions next to each other: `becalm.compare-distributions/1`, and as a table.

use becalm_report::Value;
use becalm_report::form::field::columns;
use becalm_report::form::figure::{Change, Figure, Quantity};
use becalm_report::form::table::Table;
use becalm_report::html::{Block, Opening, Page, Section};
use becalm_report::{Form, Report, fields};
use becalm_units::Named;
use serde::Serialize;

use super::{COMPARED, ROW};
use crate::distribution::{Pair, SeriesFigures, Shown, SideBySide, Tested, TestedFigure, Untested};

/// Two distributions, or a distribution and a recording.
pub struct SideBySideReport<'a> {
    pub sides: &'a SideBySide,
}

struct FigureRow {
    series: String,
    title: &'static str,
    name: &'static str,
    a: Value,
    b: Value,
}

impl FigureRow {
    fn change(&self) -> Option<Change> {
        let number = |value: &Value| match value {
            Value::Time(number) => Some(*number as f64),
            Value::Count(number) => Some(*number as f64),
            Value::Rate(number) | Value::Ratio(number) => Some(*number),
            _ => None,
        };
        match (number(&self.a), number(&self.b)) {
            (Some(a), Some(b)) if a > 0.0 => Some(Change(b / a - 1.0)),
            _ => None,
        }
    }
}

fields! {
    FIGURE, figure: FigureRow {
        SERIES = "series", "series", |row| row.series.clone();
        FIGURE_NAME = "figure", "figure", |row| row.title;
        A = "a", "A", |row| row.a.clone();
        B = "b", "B", |row| row.b.clone();
        CHANGE = "change_ratio", "B / A - 1", FigureRow::change;
    }
}

fn rows(pair: &Pair) -> Vec<FigureRow> {
    let fields = columns(ROW, COMPARED);
    let row = |field: &&becalm_report::form::field::Field<SeriesFigures>| FigureRow {
        series: pair.name.clone(),
        title: field.title,
        name: field.name,
        a: pair.a.first().map_or(Value::Missing, field.get),
        b: pair.b.first().map_or(Value::Missing, field.get),
    };
    let known = |row: &FigureRow| !matches!((&row.a, &row.b), (Value::Missing, Value::Missing));
    fields.iter().map(row).filter(known).collect()
}

struct TestedRow {
    series: String,
    tested: Tested,
}

impl TestedRow {
    /// A figure in its unit.
    fn quantity(&self, value: f64) -> Quantity {
        Quantity(match self.tested.figure {
            TestedFigure::Rate => Value::Rate(value),
            TestedFigure::NoiseRatio | TestedFigure::Shares => Value::Ratio(value),
            TestedFigure::Median | TestedFigure::P99 => Value::time(value),
        })
    }

    const fn is_distance(&self) -> bool {
        matches!(self.tested.figure, TestedFigure::Shares)
    }

    /// An end of the interval: of B / A, or for shares of their distance.
    fn end(&self, end: f64) -> Quantity {
        Quantity(if self.is_distance() { Value::Ratio(end) } else { Value::Change(end - 1.0) })
    }

    fn change(&self) -> Option<Change> {
        match (self.is_distance(), self.tested.a, self.tested.b) {
            (false, Some(a), Some(b)) if a > 0.0 => Some(Change(b / a - 1.0)),
            _ => None,
        }
    }

    fn shown(&self) -> String {
        match self.tested.shown {
            Shown::NoneBeyond(part) => format!("none beyond {}", Value::Ratio(part).cell()),
            Shown::TooLittle => "too little data".to_owned(),
            shown => shown.name().to_owned(),
        }
    }
}

/// The name of a tested figure, in documents and in tables.
const fn title(figure: TestedFigure) -> (&'static str, &'static str) {
    match figure {
        TestedFigure::Rate => ("rate_hz", "rate"),
        TestedFigure::NoiseRatio => ("noise_ratio", "noise"),
        TestedFigure::Median => ("median_ns", "median"),
        TestedFigure::P99 => ("p99_ns", "p99"),
        TestedFigure::Shares => ("shares_distance_ratio", "shares apart"),
    }
}

fields! {
    TESTED, row: TestedRow {
        TESTED_SERIES = "series", "series", |row| row.series.clone();
        TESTED_FIGURE = "figure", "figure", |row| title(row.tested.figure).1;
        TESTED_A = "a", "A", |row| row.tested.a.map(|a| row.quantity(a));
        TESTED_B = "b", "B", |row| row.tested.b.map(|b| row.quantity(b));
        TESTED_CHANGE = "change_ratio", "change", TestedRow::change;
        TESTED_LOW = "low", "low", |row| row.end(row.tested.low);
        TESTED_HIGH = "high", "high", |row| row.tested.high.map(|high| row.end(high));
        TESTED_SHOWN = "shown", "difference", |row| row.shown();
    }
}

const fn untested(why: Untested) -> &'static str {
    match why {
        Untested::NoTimes => {
            "whether they differ is unknown: only the time of each length shows how much of a change is chance, and a distribution has \
             none; compare with a recording of the same CPU, or several a side: becalm compare A1 A2 A3 -- B1 B2 B3"
        }
        Untested::FewLengths => {
            "whether they differ is unknown: a side has fewer than 10 such lengths; measure for longer"
        }
        Untested::ShortRecording => {
            "whether they differ is unknown: the recording is too short for how its detours drift or come in trains; record for longer"
        }
        Untested::NoFigure => {
            "whether they differ is unknown: a file without a histogram does not say how many lengths were as long as those of the other \
             side, nor how they were distributed"
        }
    }
}

const fn untested_name(why: Untested) -> &'static str {
    match why {
        Untested::NoTimes => "no times",
        Untested::FewLengths => "few lengths",
        Untested::ShortRecording => "short recording",
        Untested::NoFigure => "no common figure",
    }
}

#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
struct PairDocument<'a> {
    series: &'a str,
    cut_ns: i64,
    figures: Vec<FigureDocument>,
    tested_from_ns: i64,
    slack_a_ns: i64,
    slack_b_ns: i64,
    tested: Vec<TestedDocument>,
    untested: Option<&'static str>,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
struct TestedDocument {
    figure: &'static str,
    a: Option<f64>,
    b: Option<f64>,
    low: f64,
    high: Option<f64>,
    p_adjusted: f64,
    verdict: &'static str,
    bound_ratio: Option<f64>,
}

impl TestedDocument {
    const fn new(tested: &Tested) -> Self {
        let Tested { figure, a, b, low, high, p_adjusted, shown } = *tested;
        let bound_ratio = if let Shown::NoneBeyond(part) = shown { Some(part) } else { None };
        Self { figure: title(figure).0, a, b, low, high, p_adjusted, verdict: shown.name(), bound_ratio }
    }
}

#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
struct FigureDocument {
    figure: &'static str,
    a: Value,
    b: Value,
    change_ratio: Value,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub(crate) struct SideBySideDocument<'a> {
    a: &'a str,
    b: &'a str,
    runs_a: &'a [String],
    runs_b: &'a [String],
    quantity: &'static str,
    loop_subtracted_a: Option<bool>,
    loop_subtracted_b: Option<bool>,
    pairs: Vec<PairDocument<'a>>,
    single: &'a [String],
}

impl Report for SideBySideReport<'_> {
    fn schema(&self) -> &'static str {
        "becalm.compare-distributions/1"
    }

    fn document(&self) -> impl Serialize {
        let SideBySide { names, quantity, loop_subtracted, pairs, single, .. } = self.sides;
        let figure = |row: FigureRow| FigureDocument {
            figure: row.name,
            change_ratio: row.change().value(),
            a: row.a,
            b: row.b,
        };
        let pair = |pair| -> PairDocument<'_> {
            let pair: &Pair = pair;
            let figures = if self.has_several() { Vec::new() } else { rows(pair).into_iter().map(figure).collect() };
            let tested = pair.tested.as_deref().unwrap_or_default().iter().map(TestedDocument::new).collect();
            PairDocument {
                series: &pair.name,
                cut_ns: pair.cut_ns,
                figures,
                tested_from_ns: pair.tested_from_ns,
                slack_a_ns: pair.slack_ns[0],
                slack_b_ns: pair.slack_ns[1],
                tested,
                untested: pair.tested.as_ref().err().map(|why| untested_name(*why)),
            }
        };
        SideBySideDocument {
            a: &names[0][0],
            b: &names[1][0],
            runs_a: &names[0],
            runs_b: &names[1],
            quantity: quantity.name(),
            loop_subtracted_a: loop_subtracted[0],
            loop_subtracted_b: loop_subtracted[1],
            pairs: pairs.iter().map(pair).collect(),
            single,
        }
    }

    fn view(&self, _form: Form) -> Page {
        let SideBySide { names, quantity, pairs, .. } = self.sides;
        let several = self.has_several();
        let side = |(side, runs): (&str, &Vec<String>)| -> Vec<(String, String)> {
            let label = |number| if several { format!("{side}{number}") } else { side.to_owned() };
            (1..).zip(runs).map(|(number, name): (usize, _)| (label(number), name.clone())).collect()
        };
        let mut facts: Vec<_> = ["A", "B"].into_iter().zip(names).flat_map(side).collect();
        facts.push(("lengths".to_owned(), quantity.words().to_owned()));
        let mut sections =
            vec![Section::new("sides", "Sides", "Distributions that are compared", vec![Block::Facts(facts)])];
        sections.extend((!several).then(|| figures(pairs)));
        sections.push(Section::new("notes", "Notes", "Differences between the files", Block::texts(self.remarks())));
        sections.extend(tested(pairs));
        sections.push(Section::new("open", "Open", "Questions that stay open", Block::texts(reasons(pairs))));
        Page {
            title: "Lengths of two sides".to_owned(),
            subtitle: names.iter().map(|runs| runs.join(", ")).collect::<Vec<_>>().join(" \u{2192} "),
            sections,
            foot: Vec::new(),
        }
    }
}

impl SideBySideReport<'_> {
    fn has_several(&self) -> bool {
        self.sides.names.iter().any(|runs| runs.len() > 1)
    }

    fn remarks(&self) -> Vec<String> {
        let SideBySide { loop_subtracted, pairs, single, steps, .. } = self.sides;
        let mut remarks = Vec::new();
        let cut = pairs.iter().map(|pair| pair.cut_ns).max().unwrap_or(0);
        if cut > 0 && !self.has_several() {
            let cut = Value::Time(cut).cell();
            remarks.push(format!("lengths below the higher threshold of the two, {cut} at most, are left out of both"));
        }
        if loop_subtracted[0] != loop_subtracted[1] && !self.has_several() {
            let text = "the loop's own time is in the lengths of one side alone: each of these is longer by a step of its loop";
            remarks.push(text.to_owned());
        }
        if let Some(side) = steps.iter().position(|is_steps| *is_steps) {
            let side = ["A", "B"][side];
            let text = "counted all steps of its loop: compared are those that are longer than its commonest ones";
            remarks.push(format!("{side} {text}"));
        }
        if !single.is_empty() {
            remarks.push(format!("on one side alone: {}", single.join(", ")));
        }
        remarks
    }
}

fn figures(pairs: &[Pair]) -> Section {
    let title = "Side by side";
    let shown: Vec<_> = FIGURE.iter().collect();
    let mut table = Table::new(&shown).captioned(title);
    for pair in pairs {
        rows(pair).iter().for_each(|row| table.row(&shown, row));
        table.rule();
    }
    Section::new("figures", "Figures", title, vec![Block::Table(table)]).opened(Opening::Title(title.to_owned()))
}

/// The tests of the lengths of both sides, if there are any.
fn tested(pairs: &[Pair]) -> Option<Section> {
    let title = "Whether they differ";
    let shown: Vec<_> = TESTED.iter().collect();
    let mut table = Table::new(&shown).captioned(title);
    let found = || pairs.iter().filter_map(|pair| Some((pair, pair.tested.as_ref().ok()?)));
    for (pair, rows) in found() {
        let row = |tested: &Tested| TestedRow { series: pair.name.clone(), tested: *tested };
        rows.iter().map(row).for_each(|row| table.row(&shown, &row));
        table.rule();
    }
    let from = found().map(|(pair, _)| pair.tested_from_ns).max()?;
    let text = format!(
        "of lengths from {} on. low and high: the 95 % interval of the change, with what the files leave open: the widths of buckets, \
         the loops' own time, seconds that are given as whole ones. 'none beyond': no larger difference is possible with these data, \
         in 95 of 100 cases. shares apart: by how much the cumulative shares of the lengths are apart at most, beyond what the files \
         leave open and 2 % of a length",
        Value::Time(from).cell()
    );
    let blocks = vec![Block::Table(table), Block::Text(text)];
    Some(Section::new("tested", "Tested", title, blocks).opened(Opening::Title(title.to_owned())))
}

/// The reasons for which pairs are not tested, each once.
fn reasons(pairs: &[Pair]) -> Vec<String> {
    let mut reasons = Vec::new();
    for why in pairs.iter().filter_map(|pair| pair.tested.as_ref().err()) {
        if !reasons.contains(why) {
            reasons.push(*why);
        }
    }
    reasons.into_iter().map(|why| untested(why).to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::distribution::sides::SidesError;
    use crate::distribution::{Bucket, Quantity as Lengths, Series, Side, side_by_side};

    #[test]
    fn a_page_shows_both_sides_and_why_they_are_not_tested() {
        let side = |name: &str, count| {
            let series = Series {
                name: "CPU 0".to_owned(),
                buckets: vec![Bucket { from_ns: 1_000, below_ns: 2_000, count }],
                count: Some(count),
                ..Series::default()
            };
            Side { name: name.to_owned(), quantity: Lengths::Stolen, loop_subtracted: None, series: vec![series] }
        };
        let never = &mut |_, _, _, _| Ok::<_, SidesError>(None);
        let sides = side_by_side(&[side("one", 7)], &[side("other", 9)], 0, never).unwrap();
        let page = SideBySideReport { sides: &sides }.page("becalm 0.0.0").unwrap();
        assert_eq!(page.subtitle, "one \u{2192} other");
        let shown: Vec<&str> =
            page.sections.iter().filter(|section| !section.blocks.is_empty()).map(|section| section.id).collect();
        assert_eq!(shown, ["sides", "figures", "notes", "open"]);
        let Block::Table(table) = &page.sections[1].blocks[0] else { panic!("{page:?}") };
        assert!(!table.is_empty());
    }
}
