//! Single detours: activity by activity, what interrupted what.

use std::io::{self, Write};

use becalm_analyze::summary::{Entry, Timeline};
use becalm_units::Nanos;

use crate::Value;
use crate::form::field::{Field, columns};
use crate::form::sheet::Sheet;
use crate::form::table::Table;
use crate::form::value::time;

/// How many characters the bar of a whole detour has.
const BAR: i128 = 24;

/// An activity with what it is part of.
pub(crate) struct EntryRow {
    entry: Entry,
    offset: Nanos,
    duration: Nanos,
}

pub(crate) fn rows(timeline: &Timeline) -> Vec<EntryRow> {
    let row = |entry: &Entry| EntryRow {
        offset: entry.start.checked_sub(timeline.start).unwrap_or(Nanos::ZERO),
        duration: timeline.duration,
        entry: entry.clone(),
    };
    timeline.entries.iter().map(row).collect()
}

/// The fields of a detour.
pub(crate) const DETOUR: &[Field<Timeline>] = &[
    Field { name: "node", title: "node", get: |row| Value::Text(row.id.node.clone()) },
    Field { name: "cpu", title: "cpu", get: |row| Value::Number(u64::from(row.id.cpu.get())) },
    Field { name: "detour", title: "detour", get: |row| Value::Number(row.id.number) },
    Field { name: "start_ns", title: "start", get: |row| Value::Time(row.start.get()) },
    Field { name: "duration_ns", title: "duration", get: |row| Value::Time(row.duration.get()) },
    Field { name: "incomplete", title: "incomplete", get: |row| Value::Flag(row.incomplete) },
];

/// The fields of an activity in it.
pub(crate) const ENTRY: &[Field<EntryRow>] = &[
    Field { name: "offset_ns", title: "at", get: |row| Value::Time(row.offset.get()) },
    Field { name: "self_ns", title: "self", get: |row| Value::Time(row.entry.self_time.get()) },
    Field { name: "share_ratio", title: "share", get: |row| share(row) },
    Field { name: "kind", title: "kind", get: |row| Value::Text(row.entry.kind.name().to_owned()) },
    Field { name: "source", title: "source", get: |row| Value::Text(row.entry.source.clone()) },
    Field { name: "detail", title: "detail", get: |row| Value::Text(row.entry.detail.clone()) },
    Field { name: "depth", title: "depth", get: |row| Value::Count(row.entry.depth as u64) },
];

/// What only people need: the bar, and the source indented by what it interrupted.
pub(crate) const DRAWN: &[Field<EntryRow>] = &[
    Field { name: "bar", title: "", get: |row| Value::Text(bar(row)) },
    Field {
        name: "nested",
        title: "source",
        get: |row| Value::Text(format!("{}{}", "  ".repeat(row.entry.depth), row.entry.source)),
    },
];

/// What took most of a detour; of equal ones the first.
pub(crate) const MOSTLY: Field<Timeline> = Field {
    name: "mostly",
    title: "mostly",
    get: |row| {
        let mut totals: Vec<(&str, i64)> = Vec::new();
        for entry in &row.entries {
            match totals.iter_mut().find(|(source, _)| *source == entry.source) {
                Some((_, total)) => *total += entry.self_time.get(),
                None => totals.push((&entry.source, entry.self_time.get())),
            }
        }
        let most = totals.iter().rev().max_by_key(|(_, total)| *total);
        most.map_or(Value::Missing, |(source, _)| Value::Text((*source).to_owned()))
    },
};

fn share(row: &EntryRow) -> Value {
    match row.duration.get() {
        0 => Value::Missing,
        whole => Value::Share(row.entry.self_time.get() as f64 / whole as f64),
    }
}

/// The self time as a part of the detour, placed where it began; at least one character.
fn bar(row: &EntryRow) -> String {
    let whole = i128::from(row.duration.get()).max(1);
    let scale = |ns: Nanos| (i128::from(ns.get()) * BAR + whole / 2) / whole;
    let begin = scale(row.offset).clamp(0, BAR - 1);
    let length = scale(row.entry.self_time).clamp(1, BAR - begin);
    let (begin, length) = (begin as usize, length as usize);
    format!("{}{}{}", "\u{b7}".repeat(begin), "\u{2588}".repeat(length), "\u{b7}".repeat(BAR as usize - begin - length))
}

/// Prints detours, each with its activities in order of time.
pub(super) fn print(timelines: &[Timeline], out: &mut Sheet<'_>) -> io::Result<()> {
    let mut fields = columns(ENTRY, &["offset_ns", "self_ns", "share_ratio", "kind"]);
    fields.insert(0, &DRAWN[0]);
    fields.push(&DRAWN[1]);
    fields.extend(columns(ENTRY, &["detail"]));
    for (at, timeline) in timelines.iter().enumerate() {
        if at > 0 {
            writeln!(out)?;
        }
        let (id, start) = (&timeline.id, timeline.start.as_secs_f64());
        let incomplete = if timeline.incomplete { ", INCOMPLETE: kernel events were lost in it" } else { "" };
        writeln!(
            out,
            "Detour {} of CPU {} on {}: {}, {start:.6}s into the run{incomplete}",
            id.number,
            id.cpu,
            id.node,
            time(timeline.duration.get())
        )?;
        if timeline.entries.is_empty() {
            writeln!(out, "  nothing of the kernel was recorded in it")?;
            continue;
        }
        let mut table = Table::new(&fields);
        table.may_leave_out(0);
        rows(timeline).iter().for_each(|row| table.row(&fields, row));
        table.print(out)?;
    }
    Ok(())
}
