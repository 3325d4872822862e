//! The sections on the costs of reading the time.

use becalm_report::form::field::columns;
use becalm_report::form::table::Table;
use becalm_report::form::value::{grouped, picos};
use becalm_report::html::{Axis, AxisScale, AxisUnit, Bar, Bars, Block, Chart, Opening, Page, Section, Spec};
use becalm_units::plural;

use super::{EACH, counters, explanation, extremes, framed, headline, losses, medians, samples, timed};
use crate::documents::SuccessiveDoc;
use crate::report::clock::{ClockReport, ROW, SuccessiveStep, clock_columns, costs_by_name, step, steps};
use crate::report::events;
use crate::report::header::cut_short;

/// The number of steps shown.
const STEPS: usize = 8;

pub(in crate::report) fn page(report: &ClockReport<'_>) -> Page {
    let verdict = extremes("A reading", costs_by_name(report));
    let question = "How long does it take to read the time?";
    let mut sections = vec![headline(report.doc, question, verdict, &timed(report.instrument)), readings(report)];
    sections.extend(report.costs.successive.as_ref().map(successive));
    sections.extend(counters(EACH, events::ROW, &events::rows(costs_by_name(report))));
    sections.push(losses(&report.instrument.not_counted, cut_short(report.doc)));
    let step = "step: the smallest change between two readings; - if the clock did not change for 50ms. backwards: readings \
                smaller than the one before, on this CPU and across CPUs";
    sections.push(explanation([path_found(report), step.to_owned(), samples(report.doc)]));
    framed(report.doc, "What reading the time costs", sections)
}

fn readings(report: &ClockReport<'_>) -> Section {
    let rows = report.rows.iter().map(|row| {
        let syscall = row.by_syscall.as_ref().map(|measured| measured.cost.median_ps);
        (format!("{} ({})", row.way.name, row.way.path.name()), row.measured.as_ref(), syscall)
    });
    let chart = medians("readings", "by a raw system call", rows);
    let mut names = vec!["name", "path", "median_ps", "mean_ps", "stddev_ps", "min_ps", "p5_ps", "p95_ps"];
    names.extend(["interrupted", "syscall_median_ps", "stated_resolution_ns", "smallest_step_ps", "median_step_ps"]);
    names.extend(["readings", "backwards", "cross_backwards"]);
    let mut fields = columns(ROW, &names);
    fields.insert(3, &clock_columns::INTERVAL);
    let table = Table::filled(&fields, &report.rows).captioned("Readings");
    let mut table = table.without_on_terminal(&["mean", "stddev", "readings"]);
    table.keep_names_long();
    let mut blocks: Vec<Block> = chart.into_iter().chain([Block::Table(table)]).collect();
    blocks.extend(backwards(report).map(Block::warning));
    Section::new("readings-of-each", "Readings", "One by one", blocks)
        .opened(Opening::Gap)
        .explained("Each step to the right is ten times as long.")
}

/// The clocks that showed an earlier time on another CPU.
fn backwards<'a>(report: &'a ClockReport<'_>) -> impl Iterator<Item = String> + 'a {
    report.rows.iter().filter_map(|row| {
        let cross = row.way.cross.filter(|cross| cross.backwards > 0)?;
        Some(format!(
            "{}: of {} readings after one on another CPU, {} {} smaller, by up to {}",
            row.way.name,
            grouped(cross.compared),
            grouped(cross.backwards),
            plural(cross.backwards, "was", "were"),
            picos(cross.largest_ps),
        ))
    })
}

/// The most frequent steps between successive readings of the counter.
fn successive(found: &SuccessiveDoc) -> Section {
    let rows = steps(found);
    let shown = &rows[..rows.len().min(STEPS)];
    let bar = |row: &SuccessiveStep| Bar {
        name: step::STEP_PS.cell(row),
        value: row.step.count as f64 / row.all.max(1) as f64,
        text: step::SHARE_RATIO.cell(row),
        kind: None,
    };
    let bars: Vec<Bar> = shown.iter().map(bar).collect();
    let longest = i64::try_from(found.max_ticks).unwrap_or(i64::MAX).saturating_mul(found.tick_ps);
    let text = format!(
        "{} different steps, the longest of {} ticks ({}); a run is several equal steps in a row",
        grouped(found.distinct),
        grouped(found.max_ticks),
        picos(longest)
    );
    let title = format!("Steps between {} readings of the counter back to back", grouped(found.readings));
    let chart = Chart {
        id: "steps",
        title: "The most frequent steps".to_owned(),
        label: format!("{title}: the most frequent ones."),
        height: 44 + 30 * bars.len() as u32,
        spec: Spec::Bars(Bars { x: Axis::new("", AxisScale::Linear, AxisUnit::Ratio).between(Some(0.0), None), bars }),
        figures: None,
    };
    let table = Table::whole(shown).captioned("Steps");
    let blocks = vec![Block::Charts(vec![chart]), Block::Table(table), Block::Text(text)];
    Section::new("successive", "Steps", title.clone(), blocks).opened(Opening::Title(title))
}

/// How it was determined whether a clock is read in the kernel.
fn path_found(report: &ClockReport<'_>) -> String {
    let found = match &report.costs.not_counted {
        None => "the kernel counted the system calls (tracepoint raw_syscalls:sys_enter)".to_owned(),
        Some(why) => format!(
            "by its time: a call that saves less than half a getpid over the raw system call enters the kernel; system calls could \
             not be counted: {why}"
        ),
    };
    format!("read by vdso or syscall: {found}")
}
