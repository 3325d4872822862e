//! The pages of what `becalm cost` measured: what they have in common.

pub(super) mod clock;
pub(super) mod placement;
pub(super) mod probe;
pub(super) mod scheduler;

use becalm_report::form::field::Field;
use becalm_report::form::table::Table;
use becalm_report::form::value::{picos, three_digits};
use becalm_report::html::{
    Axis, AxisScale, AxisUnit, Block, Chart, Grade, Opening, Page, RangeRow, Ranges, Section, Spec, foot, sentence,
};

use super::events::EventTimes;
use super::header::interval;
use super::probe::SLOW;
use crate::analysis::MeasuredCost;
use crate::documents::{CostDoc, InstrumentDoc};

/// What the columns mean that all cost tables have.
fn explained(doc: &CostDoc) -> String {
    let interval = doc.spread.as_ref().map_or_else(String::new, |spread| sentence(&interval(spread)) + " ");
    interval + &sentence(&SLOW.replace("interrupted:", "Interrupted:"))
}

/// A page of what was measured on a CPU.
fn framed(doc: &CostDoc, title: &str, sections: Vec<Section>, program: &str) -> Page {
    Page {
        title: title.to_owned(),
        subtitle: format!("{} \u{b7} Linux {}", doc.node, doc.machine.kernel),
        sections,
        foot: foot(format!("Made by {program}.")),
    }
}

/// The answer, and what it rests on.
fn headline(title: &str, text: String, basis: String) -> Section {
    Section {
        opening: Opening::None,
        id: "headline",
        title: title.to_owned(),
        short: "Summary",
        reading: String::new(),
        blocks: vec![Block::Verdict { tone: Grade::Plain, text, basis }],
    }
}

/// The machine, the CPU and what timed the samples, below what is to be known of them.
fn machine(doc: &CostDoc, instrument: Option<&InstrumentDoc>, warnings: Vec<String>) -> Section {
    let warning = |text: String| Block::Warning { text: format!("{text}."), advice: String::new() };
    let mut blocks: Vec<Block> = warnings.into_iter().map(warning).collect();
    let mut facts = vec![
        ("processor", doc.machine.processor.clone()),
        ("hypervisor", doc.machine.hypervisor.clone().unwrap_or_else(|| "none".to_owned())),
        ("CPU", format!("{} ({})", doc.cpu, doc.cpu_reason)),
        ("class", doc.sched.clone()),
    ];
    if let Some(instrument) = instrument {
        let timed = format!(
            "{} at {} MHz, known to {}%; the {} of reading it around a sample are taken off",
            instrument.counter,
            three_digits(instrument.rate_hz / 1e6),
            three_digits(instrument.rate_error_ratio * 100.0),
            picos(instrument.overhead_ps)
        );
        facts.push(("timed by", timed));
    }
    blocks.push(Block::Facts(facts.into_iter().map(|(name, text)| (name.to_owned(), text)).collect()));
    Section {
        opening: Opening::None,
        id: "machine",
        title: "Machine, clock and losses".to_owned(),
        short: "Machine",
        reading: "Read this before believing the numbers.".to_owned(),
        blocks,
    }
}

/// What the processor counted, if it counted anything.
fn counters<R: EventTimes>(reading: &str, fields: &[&Field<R>], rows: &[R]) -> Option<Section> {
    let mut table = Table::new(fields).captioned("Counts");
    rows.iter().for_each(|row| {
        table.row(fields, row);
    });
    if rows.iter().any(|row| row.rate().counted_ratio < 1.0) {
        table.note = "Counted: for which part of the time; the processor has too few counters for all at once, so they take turns, \
                      and the figures are scaled up."
            .to_owned();
    }
    (!rows.is_empty()).then(|| Section {
        opening: Opening::None,
        id: "counters",
        title: "The processor\u{2019}s counters".to_owned(),
        short: "Counters",
        reading: reading.to_owned(),
        blocks: vec![Block::Table(table)],
    })
}

/// The medians of what was measured with their 5th and 95th percentiles on a logarithmic axis, each with a second mark if it has
/// one; `None` where nothing was measured.
fn medians<'a>(
    id: &'static str,
    other: &'static str,
    rows: impl Iterator<Item = (String, Option<&'a MeasuredCost>, Option<i64>)>,
) -> Option<Chart> {
    // What takes no time has no place on a logarithmic axis.
    let above = |ps: i64| Some(ps as f64).filter(|ps| *ps > 0.0);
    let row = |(name, measured, other): (String, Option<&MeasuredCost>, Option<i64>)| {
        let cost = &measured?.cost;
        Some(RangeRow {
            name,
            middle: above(cost.median_ps)?,
            low: above(cost.p5_ps),
            high: above(cost.p95_ps),
            other: other.and_then(above),
            text: picos(cost.median_ps),
        })
    };
    let rows: Vec<RangeRow> = rows.filter_map(row).collect();
    let other = if rows.iter().any(|row| row.other.is_some()) { other } else { "" };
    let marks = if other.is_empty() { String::new() } else { format!("; the diamonds: {other}") };
    (!rows.is_empty()).then(|| Chart {
        id,
        title: format!("Medians, with the 5th and 95th percentiles{marks}"),
        label: format!("The medians of {} on a logarithmic axis; the table has them.", rows.len()),
        height: 62 + 28 * rows.len() as u32,
        spec: Spec::Ranges(Ranges {
            x: Axis::new("", AxisScale::Log, AxisUnit::Picos),
            range: "p5 to p95",
            other,
            rows,
        }),
        figures: None,
    })
}
