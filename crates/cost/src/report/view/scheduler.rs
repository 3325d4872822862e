//! The page of the scheduler's cost: Figure 3 of Tsafrir 2007, the overall overhead against what is runnable.

use becalm_report::Value;
use becalm_report::form::field::Field;
use becalm_report::form::table::Table;
use becalm_report::form::value::time;
use becalm_report::html::{
    Axis, AxisScale, AxisUnit, Block, Chart, ChartSeries, Lines, Opening, Page, Section, Spec, sentence,
};

use super::{framed, headline, machine};
use crate::analysis::SchedulerCost;
use crate::report::events::EventRow;
use crate::report::scheduler::{EVENT, SchedulerReport, event_rows, meaning, shown_fields};

/// A curve: its name, and its figure of each number of runnable processes.
type Named = (&'static str, fn(&SchedulerCost) -> Option<f64>);

/// The page, made by `program`: `becalm 0.1.0`.
pub(in crate::report) fn page(report: &SchedulerReport<'_>, program: &str) -> Page {
    let mut sections = vec![summary(report), overhead(report), switches(report)];
    let fields: Vec<&Field<EventRow<SchedulerCost>>> = EVENT.iter().collect();
    let reading = "What the processor counted in a call to give way: in the thread itself (user), and in the kernel.";
    sections.extend(super::counters(reading, &fields, &event_rows(report)));
    sections.push(machine(report.doc, None, warnings(report)));
    framed(report.doc, "What ticks and switches cost", sections, program)
}

fn summary(report: &SchedulerReport<'_>) -> Section {
    let costs = || report.rows.iter().filter_map(|row| Some((row.runnable, row.overhead_ratio()?)));
    let ends = costs().min_by(|a, b| a.1.total_cmp(&b.1)).zip(costs().max_by(|a, b| a.1.total_cmp(&b.1)));
    let text = match ends {
        Some((least, most)) => format!(
            "Ticks and switches take from {} to {} of the CPU.",
            Value::Ratio(least.1).cell(),
            Value::Ratio(most.1).cell()
        ),
        None => "Which share of the CPU ticks and switches take is not known.".to_owned(),
    };
    let window = time(report.costs.window_ns);
    let basis = ends.map_or_else(
        || "That needs the kernel\u{2019}s trace.".to_owned(),
        |(least, most)| {
            format!(
                "The least with {} runnable, the most with {}; each number for {window} with the kernel\u{2019}s trace and as \
                 long without.",
                counted(report, least.0),
                most.0
            )
        },
    );
    headline("What does sharing a CPU cost?", text, basis)
}

/// A number of what is runnable: `1 process`.
fn counted(report: &SchedulerReport<'_>, count: u32) -> String {
    let (one, many) = if report.costs.processes { ("process", "processes") } else { ("thread", "threads") };
    becalm_units::counted(count.into(), one, many)
}

/// Curves over the number of what is runnable; `None` without two of them.
fn chart(id: &'static str, title: &str, report: &SchedulerReport<'_>, y: Axis, curves: &[Named]) -> Option<Chart> {
    let curve = |(name, value): &Named| ChartSeries {
        name: (*name).to_owned(),
        points: report.rows.iter().filter_map(|row| Some([f64::from(row.runnable), value(row)?])).collect(),
        dots: true,
        ..ChartSeries::default()
    };
    let series: Vec<ChartSeries> = curves.iter().map(curve).filter(|series| series.points.len() > 1).collect();
    (!series.is_empty()).then(|| Chart {
        id,
        title: title.to_owned(),
        label: format!("{title}, by the number of runnable {}.", report.what()),
        height: 320,
        spec: Spec::Lines(Lines {
            x: Axis::new(&format!("runnable {}", report.what()), AxisScale::Log, AxisUnit::Ranks),
            y: y.between(Some(0.0), None),
            series,
            marks: Vec::new(),
        }),
        figures: None,
    })
}

fn overhead(report: &SchedulerReport<'_>) -> Section {
    let share = Axis::new("of the CPU", AxisScale::Linear, AxisUnit::Ratio);
    let curves: [Named; 3] = [
        ("together", SchedulerCost::overhead_ratio),
        ("ticks", |row| row.ticks_ratio),
        ("switches", |row| row.switches_ratio),
    ];
    let chart = chart("overhead", "The share of the CPU that ticks and switches take", report, share, &curves);
    let fields = shown_fields(report);
    let mut table = Table::new(&fields).captioned("Ticks and switches");
    report.rows.iter().for_each(|row| {
        table.row(&fields, row);
    });
    table.note = sentence(&meaning(report));
    let mut blocks: Vec<Block> = chart.map(|chart| Block::Charts(vec![chart])).into_iter().collect();
    blocks.push(Block::Table(table));
    Section {
        opening: Opening::None,
        id: "overall",
        title: "Overall overhead by the number of what is runnable".to_owned(),
        short: "Overhead",
        reading: "What is left of the CPU is for work.".to_owned(),
        blocks,
    }
}

fn switches(report: &SchedulerReport<'_>) -> Section {
    let axis = || Axis::new("takes", AxisScale::Linear, AxisUnit::Time);
    let calls: [Named; 2] = [("switch", |row| row.switch_ns), ("yield", |row| row.yield_ns)];
    let ticks: [Named; 1] = [("mean tick", |row| row.tick_mean_ns)];
    let charts = [
        chart("switches", "A switch, and a call to give way", report, axis(), &calls),
        chart("ticks", "The handler of a tick", report, axis(), &ticks),
    ];
    let charts: Vec<Chart> = charts.into_iter().flatten().collect();
    let blocks = match charts.is_empty() {
        true => vec![Block::Text("There are too few numbers of what is runnable for curves.".to_owned())],
        false => vec![Block::Charts(charts)],
    };
    Section {
        opening: Opening::None,
        id: "each",
        title: "One tick, one switch".to_owned(),
        short: "Each",
        reading: "What grows with the number of what is runnable is the cost of the scheduler\u{2019}s lists and of cold caches."
            .to_owned(),
        blocks,
    }
}

fn warnings(report: &SchedulerReport<'_>) -> Vec<String> {
    let mut warnings: Vec<String> = Vec::new();
    let no_trace = report.costs.no_trace.as_ref();
    warnings.extend(no_trace.map(|why| format!("ticks and pre-emptions need the kernel's trace: {why}")));
    warnings.extend(report.costs.not_counted.iter().map(|reason| format!("not counted: {reason}")));
    warnings.extend(report.costs.warnings.iter().map(|warning| format!("{}; {}", warning.message, warning.advice)));
    warnings.extend(report.incomplete());
    warnings
}
