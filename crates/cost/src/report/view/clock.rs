//! The page of what reading the time costs.

use becalm_report::form::field::{Field, columns};
use becalm_report::form::table::Table;
use becalm_report::form::value::{grouped, picos};
use becalm_report::html::{Axis, AxisScale, AxisUnit, Bar, Bars, Block, Chart, Opening, Page, Section, Spec, sentence};

use super::{explained, framed, headline, machine, medians};
use crate::report::clock::{ClockReport, ROW, STEP, STEPS, backwards, counted, path_found, steps};
use crate::report::events;
use crate::report::header::cut_short;

/// The page, made by `program`: `becalm 0.1.0`.
pub(in crate::report) fn page(report: &ClockReport<'_>, program: &str) -> Page {
    let mut sections = vec![summary(report), readings(report)];
    sections.extend(successive(report));
    let fields: Vec<&Field<events::ProbeEvent>> = events::ROW.iter().collect();
    let reading = "What the processor counted in each reading itself (user), and in the kernel meanwhile.";
    sections.extend(super::counters(reading, &fields, &counted(report)));
    sections.push(machine(report.doc, Some(&report.instrument), warnings(report)));
    framed(report.doc, "What reading the time costs", sections, program)
}

fn summary(report: &ClockReport<'_>) -> Section {
    let costs = || report.rows.iter().filter_map(|row| Some((row, row.measured.as_ref()?.cost.median_ps)));
    let ends = costs().min_by_key(|row| row.1).zip(costs().max_by_key(|row| row.1));
    let text = match ends {
        Some((least, most)) => format!("A reading takes from {} to {}.", picos(least.1), picos(most.1)),
        None => "Nothing was measured.".to_owned(),
    };
    let basis = ends.map_or_else(String::new, |(least, most)| {
        format!("{} is the cheapest to read, {} the dearest; medians.", least.0.way.name, most.0.way.name)
    });
    headline("How long does it take to read the time?", text, basis)
}

fn readings(report: &ClockReport<'_>) -> Section {
    let rows = report.rows.iter().map(|row| {
        let syscall = row.by_syscall.as_ref().map(|measured| measured.cost.median_ps);
        (format!("{} ({})", row.way.name, row.way.path.name()), row.measured.as_ref(), syscall)
    });
    let chart = medians("readings", "by a raw system call", rows);
    let names = [
        "name",
        "path",
        "median_ps",
        "median_low_ps",
        "median_high_ps",
        "mean_ps",
        "stddev_ps",
        "min_ps",
        "p5_ps",
        "p95_ps",
        "interrupted",
        "syscall_median_ps",
    ];
    let fields = columns(ROW, &names);
    let mut costs = Table::new(&fields).captioned("Readings");
    let names = [
        "name",
        "stated_resolution_ns",
        "smallest_step_ps",
        "median_step_ps",
        "readings",
        "backwards",
        "cross_backwards",
    ];
    let steps = columns(ROW, &names);
    let mut resolution = Table::new(&steps).captioned("Steps of each clock");
    report.rows.iter().for_each(|row| {
        costs.row(&fields, row);
        resolution.row(&steps, row);
    });
    costs.note = format!("{} {}", sentence(&path_found(report)), explained(report.doc));
    resolution.note =
        "Step: the smallest change between two readings; - where the clock stood still for 50ms. Backwards: readings \
                       smaller than the one before, on this CPU and across CPUs."
            .to_owned();
    let mut blocks: Vec<Block> = chart.map(|chart| Block::Charts(vec![chart])).into_iter().collect();
    blocks.extend([Block::Table(costs), Block::Table(resolution)]);
    Section {
        opening: Opening::None,
        id: "readings-of-each",
        title: "One by one".to_owned(),
        short: "Readings",
        reading: "Each step to the right is ten times as long.".to_owned(),
        blocks,
    }
}

fn successive(report: &ClockReport<'_>) -> Option<Section> {
    let found = report.costs.successive.as_ref()?;
    let rows = steps(found);
    let fields: Vec<&Field<_>> = STEP.iter().collect();
    let mut table = Table::new(&fields).captioned("Steps");
    rows.iter().for_each(|row| {
        table.row(&fields, row);
    });
    let share = &STEP[3];
    let bar = |row: &crate::report::clock::SuccessiveStep| Bar {
        name: STEP[1].cell(row),
        value: row.step.count as f64 / row.all.max(1) as f64,
        text: share.cell(row),
        kind: None,
    };
    let bars: Vec<Bar> = rows.iter().take(STEPS).map(bar).collect();
    let text = format!(
        "{} readings of the counter back to back, {} different steps.",
        grouped(found.readings),
        grouped(found.distinct)
    );
    let chart = Chart {
        id: "steps",
        title: "The most frequent steps".to_owned(),
        label: text.clone(),
        height: 44 + 30 * bars.len() as u32,
        spec: Spec::Bars(Bars { x: Axis::new("", AxisScale::Linear, AxisUnit::Ratio).between(Some(0.0), None), bars }),
        figures: None,
    };
    Some(Section {
        opening: Opening::None,
        id: "successive",
        title: "Steps between readings of the counter back to back".to_owned(),
        short: "Steps",
        reading: "A run is steps of the same length one after the other.".to_owned(),
        blocks: vec![Block::Text(text), Block::Charts(vec![chart]), Block::Table(table)],
    })
}

fn warnings(report: &ClockReport<'_>) -> Vec<String> {
    let mut warnings = backwards(report);
    warnings.extend(report.instrument.not_counted.iter().map(|reason| format!("not counted: {reason}")));
    warnings.extend(cut_short(report.doc));
    warnings
}
