//! Tables of the live view, independent of drawing: the figures of the columns with their names, titles, units and rounding, from the same fields as
//! the report's tables and JSON.
//!
//! Nothing here knows about terminals, colors or widths.

use std::cmp::Ordering;

use becalm_report::Value;
use becalm_report::form::field::Field;
use serde::ser::{Serialize, SerializeMap, SerializeSeq, Serializer};

/// The header of a column, and its alignment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct GridColumn {
    /// The figure's name in JSON.
    pub name: &'static str,
    /// The title above the column.
    pub title: &'static str,
    /// Whether it contains text, which is left-aligned; numbers are right-aligned.
    pub is_text: bool,
}

/// A table: columns, and rows with a value for each.
///
/// It serializes to an array of objects.
#[derive(Clone, PartialEq, Default, Debug)]
pub struct Grid {
    /// The columns, from left to right.
    pub columns: Vec<GridColumn>,
    /// Its rows, each as long as `columns`.
    pub rows: Vec<Vec<Value>>,
}

impl Grid {
    /// A table with a column for each field.
    pub fn new<R>(fields: &[&Field<R>], rows: &[R]) -> Self {
        Self::from_values(
            fields,
            rows.iter().map(|row| fields.iter().map(|field| (field.get)(row)).collect()).collect(),
        )
    }

    /// A table of values; each row has the length of `fields`.
    pub fn from_values<R>(fields: &[&Field<R>], rows: Vec<Vec<Value>>) -> Self {
        let column = |(at, field): (usize, &&Field<R>)| GridColumn {
            name: field.name,
            title: field.title,
            is_text: rows.iter().any(|row| row[at].is_text()),
        };
        Self { columns: fields.iter().enumerate().map(column).collect(), rows }
    }

    pub fn column(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|column| column.name == name)
    }

    /// The order of the rows by one column: names and identifying numbers ascending, everything else descending, with the noisiest first; `reverse`
    /// inverts that. Missing values come last, and equal ones keep their order.
    pub fn order(&self, column: usize, reverse: bool) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.rows.len()).collect();
        order.sort_by(|a, b| {
            let (a, b) = (&self.rows[*a][column], &self.rows[*b][column]);
            let missing = |value: &Value| matches!(value, Value::Missing);
            let order = missing(a).cmp(&missing(b));
            order.then_with(|| {
                let by_value = compare(a, b);
                let rising = matches!(a, Value::Text(_) | Value::Number(_)) != reverse;
                if rising { by_value } else { by_value.reverse() }
            })
        });
        order
    }
}

fn compare(a: &Value, b: &Value) -> Ordering {
    match (a, b) {
        (Value::Text(a), Value::Text(b)) => a.cmp(b),
        (Value::Count(a), Value::Count(b)) | (Value::Number(a), Value::Number(b)) => a.cmp(b),
        (Value::Time(a), Value::Time(b)) => a.cmp(b),
        (Value::Flag(a), Value::Flag(b)) => a.cmp(b),
        (Value::Rate(a), Value::Rate(b))
        | (Value::Ratio(a), Value::Ratio(b))
        | (Value::Share(a), Value::Share(b))
        | (Value::Factor(a), Value::Factor(b)) => a.total_cmp(b),
        _ => Ordering::Equal,
    }
}

impl Serialize for Grid {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        struct GridRow<'a>(&'a [GridColumn], &'a [Value]);
        impl Serialize for GridRow<'_> {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                let mut map = serializer.serialize_map(Some(self.0.len()))?;
                for (column, value) in self.0.iter().zip(self.1) {
                    map.serialize_entry(column.name, value)?;
                }
                map.end()
            }
        }
        let mut rows = serializer.serialize_seq(Some(self.rows.len()))?;
        for row in &self.rows {
            rows.serialize_element(&GridRow(&self.columns, row))?;
        }
        rows.end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grid(values: &[Value]) -> Grid {
        let column = GridColumn { name: "x", title: "x", is_text: false };
        Grid { columns: vec![column], rows: values.iter().map(|value| vec![value.clone()]).collect() }
    }

    #[test]
    fn the_noisiest_stands_first_and_what_is_missing_last() {
        let times = grid(&[Value::Time(3), Value::Missing, Value::Time(9), Value::Time(3)]);
        assert_eq!(times.order(0, false), [2, 0, 3, 1]);
        assert_eq!(times.order(0, true), [0, 3, 2, 1]);
        let cpus = grid(&[Value::Number(2), Value::Number(0)]);
        assert_eq!(cpus.order(0, false), [1, 0]);
        assert_eq!(cpus.order(0, true), [0, 1]);
    }

    #[test]
    fn it_is_an_array_of_objects() {
        let json = serde_json::to_string(&grid(&[Value::Time(3), Value::Missing])).unwrap();
        assert_eq!(json, r#"[{"x":3},{"x":null}]"#);
    }
}
