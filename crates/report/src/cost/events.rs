//! What the processor counted beside a measurement, as cells, and what is to be said of it.

use std::io::{self, Write};

use becalm_analyze::cost::MeasuredCost;
use becalm_analyze::events::EventRate;

use crate::Value;
use crate::form::field::Field;
use crate::form::paragraph::paragraph;
use crate::form::sheet::Sheet;
use crate::form::table::Table;

/// An event's name.
pub(crate) fn name(of: &EventRate) -> Value {
    Value::Text(of.event.clone())
}

/// How often it came in a repetition, if it was counted.
pub(crate) fn often(count: Option<f64>) -> Value {
    count.map_or(Value::Missing, Value::Often)
}

/// An event beside what it was counted for.
pub(crate) struct Row {
    name: String,
    of: EventRate,
}

/// Of probes, by their names.
pub(crate) fn rows<'a>(costs: impl Iterator<Item = (&'a str, Option<&'a MeasuredCost>)>) -> Vec<Row> {
    let of = |(name, cost): (&'a str, Option<&'a MeasuredCost>)| {
        let row = move |of: &EventRate| Row { name: name.to_owned(), of: of.clone() };
        cost.into_iter().flat_map(move |cost| cost.events.iter().map(row))
    };
    costs.flat_map(of).collect()
}

/// The fields of an event of a probe.
pub(crate) const ROW: &[Field<Row>] = &[
    Field { name: "name", title: "of", get: |row| Value::Text(row.name.clone()) },
    Field { name: "event", title: "event", get: |row| name(&row.of) },
    Field { name: "user_per_repetition", title: "user, each", get: |row| often(row.of.user) },
    Field { name: "kernel_per_repetition", title: "kernel, each", get: |row| often(row.of.kernel) },
    Field { name: "counted_ratio", title: "counted", get: |row| Value::Share(row.of.counted_ratio) },
];

/// Prints events of probes as a table; nothing where nothing was counted.
pub(crate) fn table(rows: &[Row], out: &mut Sheet<'_>) -> io::Result<()> {
    if rows.is_empty() {
        return Ok(());
    }
    writeln!(out, "\nThe processor's counters: in each repetition itself (user), and in the kernel meanwhile")?;
    let fields: Vec<&Field<Row>> = ROW.iter().collect();
    let mut table = Table::new(&fields);
    table.keep_names_long();
    rows.iter().for_each(|row| table.row(&fields, row));
    table.print(out)?;
    remark(rows.iter().map(|row| &row.of), out)
}

/// Below a table: what the part says for which events were counted.
pub(crate) fn remark<'a>(mut all: impl Iterator<Item = &'a EventRate>, out: &mut Sheet<'_>) -> io::Result<()> {
    if all.all(|of| of.counted_ratio >= 1.0) {
        return Ok(());
    }
    let text = "counted: for which part of the time; the processor has too few counters for all at once, so they take turns, \
                and the figures are scaled up";
    paragraph(out, "  ", text)
}

/// Which events are not counted, and why.
pub(crate) fn not_counted(reasons: &[String], out: &mut Sheet<'_>) -> io::Result<()> {
    reasons.iter().try_for_each(|reason| paragraph(out, "  ! ", &format!("not counted: {reason}")))
}
