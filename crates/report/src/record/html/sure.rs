//! How sure the figures of a run are, and what more follows from them: intervals, the longest detour to expect, what
//! comes with a period, what may have been missed.

use std::cmp::Ordering;

use becalm_analyze::summary::Summary;

use crate::form::field::Field;
use crate::form::table::Table;
use crate::form::value::grouped;
use crate::form::words::capital;
use crate::html::{Block, Grade, Opening, Section, Tile};
use crate::record::figures::{CpuRow, cpu};
use crate::record::notes;
use crate::record::sure::{self, PERIODIC, TAIL, periodic};
use crate::record::tails;

/// How many CPUs a table has at most: the noisiest.
const ROWS: usize = 256;

/// How many periods are listed at most.
const PERIODS: usize = 100;

/// Figures with the ends of their intervals.
const INTERVALS: [&Field<CpuRow>; 13] = [
    &cpu::CPU,
    &cpu::RATE_HZ,
    &cpu::RATE_LOW_HZ,
    &cpu::RATE_HIGH_HZ,
    &cpu::MEDIAN_NS,
    &cpu::MEDIAN_LOW_NS,
    &cpu::MEDIAN_HIGH_NS,
    &cpu::P99_NS,
    &cpu::P99_LOW_NS,
    &cpu::P99_HIGH_NS,
    &cpu::P999_NS,
    &cpu::P999_LOW_NS,
    &cpu::P999_HIGH_NS,
];

pub(super) fn section(summary: &Summary) -> Option<Section> {
    if summary.cpus.is_empty() {
        return None;
    }
    let noise = |row: &CpuRow| row.figures.noise_ratio().unwrap_or(0.0);
    let mut rows: Vec<CpuRow> = summary.cpus.iter().map(CpuRow::new).collect();
    if rows.len() > ROWS {
        rows.sort_by(|a, b| noise(b).partial_cmp(&noise(a)).unwrap_or(Ordering::Equal));
    }
    let mut intervals = table(summary, "95 % intervals of rates and lengths", &INTERVALS, rows.iter(), true);
    intervals.note =
        "low and high: the 95 % interval of the figure before them; - where the run is too short to bound it, or \
                      drifts."
            .to_owned();
    if rows.len() > ROWS {
        intervals.note.push_str(&format!(" The noisiest {ROWS} of {} CPUs.", grouped(rows.len() as u64)));
    }
    let mut blocks = vec![Block::Table(intervals)];
    let missed = sure::missed(summary).into_iter().map(|(what, text)| (capital(what), text));
    let missed: Vec<(String, String)> = missed.collect();
    if !missed.is_empty() {
        blocks.push(Block::Facts(missed));
    }
    let with_total = sure::fits(&CpuRow::total(summary));
    if with_total || rows.iter().any(sure::fits) {
        blocks.push(Block::Text(format!("The longest detour to expect. {}", expected(&CpuRow::total(summary)))));
        let fitting = rows.iter().filter(|row| sure::fits(row));
        let mut tail = table(summary, "Longest detours to expect", &TAIL, fitting, with_total);
        tail.note =
            "over: exceeded once in that time; low and high: its 95 % interval (peaks over threshold).".to_owned();
        blocks.push(Block::Table(tail));
    }
    let notes = notes::notes(summary, &rows, |row| row.figures.tail.as_ref().and_then(tails::note));
    let note = |(place, note): (String, String)| Block::Note(format!("{place}, no longest detour to expect: {note}."));
    blocks.extend(notes.into_iter().map(note));
    Some(Section {
        opening: Opening::None,
        id: "sure",
        title: "How sure the figures are".to_owned(),
        short: "How sure",
        reading: "Another run as long as this one would give other figures: in 95 of 100 cases the true ones lie between low and \
                  high; what is rarer than the run is long may not have shown itself at all."
            .to_owned(),
        blocks,
    })
}

fn table<'a>(
    summary: &Summary,
    caption: &str,
    fields: &[&'static Field<CpuRow>],
    rows: impl Iterator<Item = &'a CpuRow>,
    with_total: bool,
) -> Table {
    let mut fields = fields.to_vec();
    if summary.nodes.len() > 1 {
        fields.insert(0, &cpu::NODE);
    }
    let mut table = Table::new(&fields).captioned(caption);
    rows.take(ROWS).for_each(|row| {
        table.row(&fields, row);
    });
    if with_total && summary.cpus.len() > 1 {
        table.total(&fields, &CpuRow::total(summary), "all");
    }
    table
}

/// The return level in a sentence, or why there is none.
fn expected(row: &CpuRow) -> String {
    match &row.figures.tail {
        Some(Ok(_)) => format!(
            "Over {} once in {}, 95 %: {} to {}.",
            cpu::RETURN_LEVEL_NS.cell(row),
            cpu::RETURN_PERIOD_NS.cell(row),
            cpu::RETURN_LEVEL_LOW_NS.cell(row),
            cpu::RETURN_LEVEL_HIGH_NS.cell(row)
        ),
        Some(refused) => format!("{}.", capital(&tails::note(refused).unwrap_or_default())),
        None => "It is not known.".to_owned(),
    }
}

/// The longest detour to expect of all CPUs together.
pub(super) fn tile(summary: &Summary) -> Option<Tile> {
    let row = CpuRow::total(summary);
    let refused = row.figures.tail.as_ref()?.as_ref().err();
    let (figure, detail) = match refused {
        None => (
            format!("over {}", cpu::RETURN_LEVEL_NS.cell(&row)),
            format!(
                "once in {}, 95 %: {} to {}",
                cpu::RETURN_PERIOD_NS.cell(&row),
                cpu::RETURN_LEVEL_LOW_NS.cell(&row),
                cpu::RETURN_LEVEL_HIGH_NS.cell(&row)
            ),
        ),
        Some(_) => ("not known".to_owned(), row.figures.tail.as_ref().and_then(tails::note).unwrap_or_default()),
    };
    Some(Tile { name: "Longest to expect".to_owned(), figure, detail, tone: Grade::Plain })
}

/// What comes with a period, where there is such a thing.
pub(super) fn periods(summary: &Summary) -> Option<Section> {
    let rows = sure::periods(summary);
    let first = rows.first()?;
    let mut fields: Vec<&Field<sure::PeriodRow>> = PERIODIC.iter().collect();
    if summary.nodes.len() > 1 {
        fields.insert(0, &sure::NODE);
    }
    let mut table = Table::new(&fields).captioned("Periods");
    rows.iter().take(PERIODS).for_each(|row| {
        table.row(&fields, row);
    });
    table.note =
        "jitter: how far the events lie from their beats; of beats: how many of the beats there were brought one."
            .to_owned();
    if rows.len() > PERIODS {
        table.note.push_str(&format!(" The first {PERIODS} of {}.", grouped(rows.len() as u64)));
    }
    let (source, every) = (periodic::SOURCE.cell(first), periodic::INTERVAL_NS.cell(first));
    let text = match rows.len() {
        1 => format!("One was found: {} every {}.", source, every),
        all => format!("{} were found, first of all {} every {}.", grouped(all as u64), source, every),
    };
    Some(Section {
        opening: Opening::None,
        id: "periods",
        title: "What comes with a period".to_owned(),
        short: "Periods",
        reading:
            "What comes again and again after the same time, source by source: a timer that can be found, and often \
                  switched off."
                .to_owned(),
        blocks: vec![Block::Text(text), Block::Table(table)],
    })
}
