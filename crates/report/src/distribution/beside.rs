//! Distributions beside each other: `becalm.compare-distributions/1`, and as a table.

use std::io;

use becalm_analyze::distribution::{Beside, Pair, SeriesFigures};
use becalm_units::Named;
use serde::Serialize;

use super::{COMPARED, ROW};
use crate::Value;
use crate::form::field::{columns, fields};
use crate::form::paragraph::{heading, line, paragraph};
use crate::form::sheet::Sheet;
use crate::form::table::Table;
use crate::report::Report;

/// Two distributions, or a distribution and a recording.
pub struct BesideReport<'a> {
    /// What was put beside each other.
    pub beside: &'a Beside,
}

/// One figure of both.
struct FigureRow {
    series: String,
    title: &'static str,
    name: &'static str,
    a: Value,
    b: Value,
}

impl FigureRow {
    fn change(&self) -> Value {
        let number = |value: &Value| match value {
            Value::Time(number) => Some(*number as f64),
            Value::Count(number) => Some(*number as f64),
            Value::Rate(number) | Value::Ratio(number) => Some(*number),
            _ => None,
        };
        match (number(&self.a), number(&self.b)) {
            (Some(a), Some(b)) if a > 0.0 => Value::Change(b / a - 1.0),
            _ => Value::Missing,
        }
    }
}

fields! {
    FIGURE, figure: FigureRow {
        SERIES = "series", "series", |row| Value::Text(row.series.clone());
        FIGURE_NAME = "figure", "figure", |row| Value::Text(row.title.to_owned());
        A = "a", "A", |row| row.a.clone();
        B = "b", "B", |row| row.b.clone();
        CHANGE = "change_ratio", "B / A - 1", FigureRow::change;
    }
}

fn rows(pair: &Pair) -> Vec<FigureRow> {
    let fields = columns(ROW, COMPARED);
    let row = |field: &&crate::form::field::Field<SeriesFigures>| FigureRow {
        series: pair.name.clone(),
        title: field.title,
        name: field.name,
        a: (field.get)(&pair.a),
        b: (field.get)(&pair.b),
    };
    let known = |row: &FigureRow| !matches!((&row.a, &row.b), (Value::Missing, Value::Missing));
    fields.iter().map(row).filter(known).collect()
}

#[derive(Serialize)]
struct PairDocument<'a> {
    series: &'a str,
    cut_ns: i64,
    figures: Vec<FigureDocument>,
}

#[derive(Serialize)]
struct FigureDocument {
    figure: &'static str,
    a: Value,
    b: Value,
    change_ratio: Value,
}

#[derive(Serialize)]
struct BesideDocument<'a> {
    a: &'a str,
    b: &'a str,
    quantity: &'static str,
    loop_subtracted_a: Option<bool>,
    loop_subtracted_b: Option<bool>,
    pairs: Vec<PairDocument<'a>>,
    single: &'a [String],
}

impl Report for BesideReport<'_> {
    fn schema(&self) -> &'static str {
        "becalm.compare-distributions/1"
    }

    fn document(&self) -> impl Serialize {
        let Beside { names, quantity, loop_subtracted, pairs, single } = self.beside;
        let figure =
            |row: FigureRow| FigureDocument { figure: row.name, change_ratio: row.change(), a: row.a, b: row.b };
        let pair = |pair| -> PairDocument<'_> {
            let pair: &Pair = pair;
            let figures = rows(pair).into_iter().map(figure).collect();
            PairDocument { series: &pair.name, cut_ns: pair.cut_ns, figures }
        };
        BesideDocument {
            a: &names[0],
            b: &names[1],
            quantity: quantity.name(),
            loop_subtracted_a: loop_subtracted[0],
            loop_subtracted_b: loop_subtracted[1],
            pairs: pairs.iter().map(pair).collect(),
            single,
        }
    }

    fn text(&self, out: &mut Sheet<'_>) -> io::Result<()> {
        let Beside { names, quantity, loop_subtracted, pairs, single } = self.beside;
        line(out, "A", &names[0])?;
        line(out, "B", &names[1])?;
        line(out, "lengths", quantity.words())?;
        heading(out, "Beside each other")?;
        let shown: Vec<_> = FIGURE.iter().collect();
        let mut table = Table::new(&shown);
        for pair in pairs {
            rows(pair).iter().for_each(|row| table.row(&shown, row));
            table.rule();
        }
        table.print(out)?;
        let cut = pairs.iter().map(|pair| pair.cut_ns).max().unwrap_or(0);
        if cut > 0 {
            let cut = Value::Time(cut).cell();
            let text = format!("lengths below the higher threshold of the two, {cut} at most, are left out of both");
            paragraph(out, "  ", &text)?;
        }
        if loop_subtracted[0] != loop_subtracted[1] {
            let text = "the loop's own time is in the lengths of one side alone: each of these is longer by a step of its loop";
            paragraph(out, "  ", text)?;
        }
        if !single.is_empty() {
            paragraph(out, "  ", &format!("on one side alone: {}", single.join(", ")))?;
        }
        let text = "there is no verdict: how much of a change is chance can be told only from when each length came, which a \
                    distribution does not know";
        paragraph(out, "  ", text)
    }
}
