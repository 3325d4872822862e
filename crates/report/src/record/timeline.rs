//! Single detours: their activities, and which of them interrupted which.

use becalm_analyze::summary::{Timeline, TimelineEntry};
use becalm_units::{Nanos, printable};

use crate::catalogue;
use crate::form::field::{Field, field, fields};
use crate::form::figure::{Number, Share};
use crate::form::section::{Block, Section};
use crate::form::table::Table;
use crate::form::value::time;

/// The width of the bar of a whole detour, in characters.
const BAR: i128 = 24;

/// An activity within its detour.
pub struct EntryRow {
    entry: TimelineEntry,
    offset: Nanos,
    duration: Nanos,
}

/// The activities of a detour as rows.
pub fn rows(timeline: &Timeline) -> Vec<EntryRow> {
    let row = |entry: &TimelineEntry| EntryRow {
        offset: entry.start.checked_sub(timeline.start).unwrap_or(Nanos::ZERO),
        duration: timeline.duration,
        entry: entry.clone(),
    };
    timeline.entries.iter().map(row).collect()
}

fields! {
    /// The fields of a detour.
    pub DETOUR, detour: Timeline {
        NODE = catalogue::NODE, |row| row.id.node.clone();
        CPU = catalogue::CPU, |row| row.id.cpu;
        DETOUR = catalogue::DETOUR, |row| Number(row.id.number);
        START_NS = catalogue::START_NS, |row| row.start;
        DURATION_NS = catalogue::DURATION_NS, |row| row.duration;
        INCOMPLETE = "incomplete", "incomplete", |row| row.incomplete;
    }
}

fields! {
    /// The fields of an activity in a detour.
    pub(crate) ENTRY, entry: EntryRow {
        OFFSET_NS = "offset_ns", "at", |row| row.offset;
        SELF_NS = "self_ns", "self", |row| row.entry.self_time;
        SHARE_RATIO = "share_ratio", "share", share;
        KIND = catalogue::KIND, |row| row.entry.kind.name();
        SOURCE = catalogue::SOURCE, |row| row.entry.source.clone();
        DETAIL = "detail", "detail", |row| row.entry.detail.clone();
        DEPTH = "depth", "depth", |row| row.entry.depth;
    }
}

fields! {
    /// Fields only for people: the bar, and the source indented by its depth.
    pub(crate) drawn: EntryRow {
        BAR = "bar", "", bar;
        NESTED = "nested", "source", |row| format!("{}{}", "  ".repeat(row.entry.depth), row.entry.source);
    }
}

/// The columns of an activity, in order.
pub const SHOWN: [&Field<EntryRow>; 7] = [
    &drawn::BAR,
    &entry::OFFSET_NS,
    &entry::SELF_NS,
    &entry::SHARE_RATIO,
    &entry::KIND,
    &drawn::NESTED,
    &entry::DETAIL,
];

/// The costliest source of a detour; the first of several equal ones.
pub const MOSTLY: Field<Timeline> = field!("mostly", "mostly", |row| {
    let mut totals: Vec<(&str, i64)> = Vec::new();
    for entry in &row.entries {
        match totals.iter_mut().find(|(source, _)| *source == entry.source) {
            Some((_, total)) => *total += entry.self_time.get(),
            None => totals.push((&entry.source, entry.self_time.get())),
        }
    }
    let most = totals.iter().rev().max_by_key(|(_, total)| *total);
    most.map(|(source, _)| (*source).to_owned())
});

fn share(row: &EntryRow) -> Option<Share> {
    match row.duration.get() {
        0 => None,
        whole => Some(Share(row.entry.self_time.get() as f64 / whole as f64)),
    }
}

/// The own time as a part of the detour, at its start; at least one character.
fn bar(row: &EntryRow) -> String {
    let whole = i128::from(row.duration.get()).max(1);
    let scale = |ns: Nanos| (i128::from(ns.get()) * BAR + whole / 2) / whole;
    let begin = scale(row.offset).clamp(0, BAR - 1);
    let length = scale(row.entry.self_time).clamp(1, BAR - begin);
    let (begin, length) = (begin as usize, length as usize);
    format!("{}{}{}", "\u{b7}".repeat(begin), "\u{2588}".repeat(length), "\u{b7}".repeat(BAR as usize - begin - length))
}

/// Detours, each with its activities in chronological order.
pub(super) fn section(timelines: &[Timeline]) -> Section {
    let mut blocks = Vec::new();
    for (at, timeline) in timelines.iter().enumerate() {
        let (id, start) = (&timeline.id, timeline.start.as_secs_f64());
        let incomplete = if timeline.incomplete { ", INCOMPLETE: kernel events were lost in it" } else { "" };
        let title = format!(
            "Detour {} of CPU {} on {}: {}, {start:.6}s into the run{incomplete}",
            id.number,
            id.cpu,
            printable(&id.node),
            time(timeline.duration.get())
        );
        let gap = (at > 0).then(String::new);
        blocks.push(Block::Lines(gap.into_iter().chain([title.clone()]).collect()));
        blocks.push(Block::OnPage(vec![Block::Heading(title)]));
        if timeline.entries.is_empty() {
            blocks.push(Block::Text("nothing of the kernel was recorded in it".to_owned()));
            continue;
        }
        let mut table = Table::filled(&SHOWN, &rows(timeline));
        table.may_leave_out(0);
        table.sorts = false;
        blocks.push(Block::Table(table));
    }
    Section::new("detours", "Detours", "Single detours", blocks)
}
