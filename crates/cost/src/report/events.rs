//! What the processor counted beside a measurement, as cells, and what is to be said of it.

use std::io::{self, Write};

use becalm_analyze::events::EventRate;
use becalm_report::catalogue;
use becalm_report::form::field::{Field, Title, field, fields};
use becalm_report::form::figure::{Often, Share};
use becalm_report::form::paragraph::paragraph;
use becalm_report::form::sheet::Sheet;
use becalm_report::form::table::Table;

use crate::analysis::{MeasuredCost, tick};

/// An event beside what it was counted for.
pub(crate) struct EventRow<A> {
    /// The measurement that it was counted beside.
    pub(crate) counted_in: A,
    /// How often the event came in that measurement.
    pub(crate) rate: EventRate,
}

/// A row that tells how often an event came.
pub(crate) trait EventTimes {
    /// How often the event of the row came.
    fn rate(&self) -> &EventRate;
}

impl<A> EventTimes for EventRow<A> {
    fn rate(&self) -> &EventRate {
        &self.rate
    }
}

impl EventTimes for tick::EventAtRate {
    fn rate(&self) -> &EventRate {
        &self.rate
    }
}

/// The name of the event.
pub(crate) const fn event<R: EventTimes>() -> Field<R> {
    field!(catalogue::EVENT, |row| row.rate().event.clone())
}

/// How often it came outside of the kernel.
pub(crate) const fn user<R: EventTimes>(name: &'static str, title: &'static str) -> Field<R> {
    field!(Title::new(name, title), |row| row.rate().user.map(Often))
}

/// How often it came in the kernel.
pub(crate) const fn kernel<R: EventTimes>(name: &'static str, title: &'static str) -> Field<R> {
    field!(Title::new(name, title), |row| row.rate().kernel.map(Often))
}

/// For which part of the time it was counted.
pub(crate) const fn counted<R: EventTimes>() -> Field<R> {
    field!(catalogue::COUNTED_RATIO, |row| Share(row.rate().counted_ratio))
}

/// An event of a probe, by the probe's name.
pub(crate) type ProbeEvent = EventRow<String>;

/// The events of probes, by the probes' names.
pub(crate) fn rows<'a>(costs: impl Iterator<Item = (&'a str, Option<&'a MeasuredCost>)>) -> Vec<ProbeEvent> {
    let probe_rows = |(name, cost): (&'a str, Option<&'a MeasuredCost>)| {
        let row = move |rate: &EventRate| ProbeEvent { counted_in: name.to_owned(), rate: rate.clone() };
        cost.into_iter().flat_map(move |cost| cost.events.iter().map(row))
    };
    costs.flat_map(probe_rows).collect()
}

fields! {
    /// The fields of an event of a probe.
    pub(crate) ROW, row: ProbeEvent {
        NAME = "name", "of", |row| row.counted_in.clone();
        EVENT = event();
        USER_PER_REPETITION = user("user_per_repetition", "user, each");
        KERNEL_PER_REPETITION = kernel("kernel_per_repetition", "kernel, each");
        COUNTED_RATIO = counted();
    }
}

/// Prints events of probes as a table; nothing where nothing was counted.
pub(crate) fn print_probes(rows: &[ProbeEvent], out: &mut Sheet<'_>) -> io::Result<()> {
    let title = ": in each repetition itself (user), and in the kernel meanwhile";
    let fields: Vec<&Field<ProbeEvent>> = ROW.iter().collect();
    let mut columns = Table::new(&fields);
    columns.keep_names_long();
    table(title, columns, &fields, rows, out)
}

/// Prints events in columns; nothing where nothing was counted. The title says where they were counted.
pub(crate) fn table<R: EventTimes>(
    title: &str,
    mut columns: Table,
    fields: &[&Field<R>],
    rows: &[R],
    out: &mut Sheet<'_>,
) -> io::Result<()> {
    if rows.is_empty() {
        return Ok(());
    }
    writeln!(out, "\nThe processor's counters{title}")?;
    rows.iter().for_each(|row| columns.row(fields, row));
    columns.print(out)?;
    remark(rows, out)
}

/// Below a table: what the part says for which events were counted.
fn remark<R: EventTimes>(rows: &[R], out: &mut Sheet<'_>) -> io::Result<()> {
    if rows.iter().all(|row| row.rate().counted_ratio >= 1.0) {
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
