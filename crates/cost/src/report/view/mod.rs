//! The sections common to all reports of measured costs.

pub(super) mod clock;
pub(super) mod placement;
pub(super) mod probe;
pub(super) mod scheduler;

use becalm_report::form::field::Field;
use becalm_report::form::known::machine;
use becalm_report::form::table::Table;
use becalm_report::form::value::{picos, three_digits};
use becalm_report::html::{
    Axis, AxisScale, AxisUnit, Block, Chart, Grade, Opening, Page, RangeRow, Ranges, Section, Spec,
};

use super::events::EventTimes;
use super::header::interval;
use crate::analysis::MeasuredCost;
use crate::documents::{CostDoc, InstrumentDoc};

/// Explains slow and interrupted samples.
const SLOW: &str = "slow: samples at least 1us longer than the others. interrupted: the slowest of those, as many as the kernel \
                    counted interrupts and preemptions; the percentiles include them, the mean does not";

/// The place of the counts of probes.
const EACH: &str = ": in each repetition itself (user), and in the kernel meanwhile";

/// A page on a measurement.
fn framed(doc: &CostDoc, title: &str, sections: Vec<Section>) -> Page {
    Page {
        title: title.to_owned(),
        subtitle: format!("{} \u{b7} Linux {}", doc.node, doc.machine.kernel),
        sections,
        foot: Vec::new(),
    }
}

/// The answer of a page; the machine, the CPU, its scheduling class, and `setting`.
fn headline(doc: &CostDoc, question: &str, verdict: Block, setting: &str) -> Section {
    let cpu = format!("CPU {} ({}), class {}; {setting}", doc.cpu, doc.cpu_reason, doc.sched);
    let machine = Block::Remark(doc.node.clone(), machine(&doc.machine));
    Section::new("headline", "Summary", question, vec![Block::OnPage(vec![verdict]), machine, Block::Text(cpu)])
}

fn verdict(text: String, basis: String) -> Block {
    Block::Verdict { tone: Grade::Plain, text, basis }
}

/// The counter that timed the samples.
fn timed(instrument: &InstrumentDoc) -> String {
    format!(
        "timed by {} at {} MHz, within {} ppm; the {} of reading it around a sample are subtracted",
        instrument.counter,
        three_digits(instrument.rate_hz / 1e6),
        three_digits(instrument.rate_error_ratio * 1e6),
        picos(instrument.overhead_ps),
    )
}

/// The shortest and the longest median.
fn extremes<'a>(subject: &str, costs: impl Iterator<Item = (&'a str, Option<&'a MeasuredCost>)>) -> Block {
    let medians: Vec<(&str, i64)> = costs.filter_map(|(name, cost)| Some((name, cost?.cost.median_ps))).collect();
    let ends = medians.iter().min_by_key(|row| row.1).zip(medians.iter().max_by_key(|row| row.1));
    let Some((least, most)) = ends else { return verdict("Nothing was measured.".to_owned(), String::new()) };
    verdict(
        format!("{subject} takes from {} to {}.", picos(least.1), picos(most.1)),
        format!(
            "The shortest is \u{201c}{}\u{201d}, the longest \u{201c}{}\u{201d}; {} medians.",
            least.0,
            most.0,
            medians.len()
        ),
    )
}

/// The counts of the processor, if any. The title says where they were counted.
pub(super) fn counters<R: EventTimes>(place: &str, fields: &[Field<R>], rows: &[R]) -> Option<Section> {
    let title = format!("The processor's counters{place}");
    let mut table = Table::filled(&fields.iter().collect::<Vec<_>>(), rows).captioned("Counts");
    table.keep_names_long();
    let mut blocks = vec![Block::Table(table)];
    if rows.iter().any(|row| row.rate().counted_ratio < 1.0) {
        let text = "counted: the share of the time; the processor has too few counters for all at once, so they take turns, and the \
                    figures are scaled up";
        blocks.push(Block::Text(text.to_owned()));
    }
    let section = Section::new("counters", "Counters", title.clone(), blocks).opened(Opening::Title(title));
    (!rows.is_empty()).then_some(section)
}

/// Events that were not counted, and other gaps.
pub(super) fn losses(not_counted: &[String], others: impl IntoIterator<Item = String>) -> Section {
    let reasons = not_counted.iter().map(|reason| format!("not counted: {reason}"));
    Section::new("losses", "Losses", "Missing figures", reasons.chain(others).map(Block::warning).collect())
        .explained("Read this before believing the numbers.")
}

/// Notes on the figures.
fn explanation(texts: impl IntoIterator<Item = String>) -> Section {
    Section::new("reading", "Reading", "How to read the figures", Block::texts(texts)).opened(Opening::Gap)
}

/// The columns of all tables of samples, explained.
fn samples(doc: &CostDoc) -> String {
    let interval = doc.spread.as_ref().map_or_else(String::new, |spread| interval(spread) + ". ");
    format!("{interval}{SLOW}")
}

/// Values with their ranges, if there are any.
fn ranges(id: &'static str, title: String, ranges: Ranges) -> Option<Block> {
    let count = ranges.rows.len();
    let chart = Chart {
        id,
        label: format!("{title}: {count} rows; the table has their figures."),
        title,
        height: 62 + 28 * count as u32,
        spec: Spec::Ranges(ranges),
        figures: None,
    };
    (count > 0).then(|| Block::Charts(vec![chart]))
}

/// Medians with their 5th and 95th percentiles on a logarithmic axis, each with a second mark if it has one.
fn medians<'a>(
    id: &'static str,
    other: &'static str,
    rows: impl Iterator<Item = (String, Option<&'a MeasuredCost>, Option<i64>)>,
) -> Option<Block> {
    // A time of zero has no place on a logarithmic axis.
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
    let title = format!("Medians, with the 5th and 95th percentiles{marks}");
    ranges(id, title, Ranges { x: Axis::new("", AxisScale::Log, AxisUnit::Picos), range: "p5 to p95", other, rows })
}
