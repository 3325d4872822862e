//! The sections on the scheduler's cost: Figure 3 of Tsafrir 2007, the overhead by the number of runnable processes.

use becalm_report::Value;
use becalm_report::form::table::Table;
use becalm_report::form::value::time;
use becalm_report::html::{Axis, AxisScale, AxisUnit, Block, Chart, ChartSeries, Lines, Opening, Page, Section, Spec};

use super::{counters, explanation, framed, headline, losses, verdict};
use crate::analysis::SchedulerCost;
use crate::report::scheduler::{EVENT, SchedulerReport, event_rows, shown_fields};

/// A curve: its name, and its value for each number of runnable processes.
type Named = (&'static str, fn(&SchedulerCost) -> Option<f64>);

pub(in crate::report) fn page(report: &SchedulerReport<'_>) -> Page {
    let mut sections = vec![summary(report), overhead(report)];
    let place = " per sched_yield of a thread: in the thread itself (user), and in the kernel";
    sections.extend(counters(place, EVENT, &event_rows(report)));
    let why = report.costs.no_trace.iter().map(|why| format!("ticks and preemptions need the kernel's trace: {why}"));
    let mut losses = losses(&report.costs.not_counted, why);
    losses.blocks.extend(report.costs.warnings.iter().map(Block::from));
    losses.blocks.extend(report.incomplete().map(Block::warning));
    sections.extend([losses, explanation([meaning(report)])]);
    framed(report.doc, "Costs of ticks and switches", sections)
}

fn summary(report: &SchedulerReport<'_>) -> Section {
    let costs = || report.rows.iter().filter_map(|row| Some((row.runnable, row.overhead_ratio()?)));
    let ends = costs().min_by(|a, b| a.1.total_cmp(&b.1)).zip(costs().max_by(|a, b| a.1.total_cmp(&b.1)));
    let verdict = match ends {
        Some((least, most)) => verdict(
            format!(
                "Ticks and switches take from {} to {} of the CPU.",
                Value::Ratio(least.1).cell(),
                Value::Ratio(most.1).cell()
            ),
            format!("The least is with {} runnable, the most with {}.", counted(report, least.0), most.0),
        ),
        None => verdict(
            "The share of the CPU that ticks and switches take is unknown.".to_owned(),
            "That needs the kernel\u{2019}s trace.".to_owned(),
        ),
    };
    let window = time(report.costs.window_ns);
    let setting = format!("each number of {} for {window} with the kernel's trace, and as long without", report.what());
    headline(report.doc, "What does sharing a CPU cost?", verdict, &setting)
}

/// A number of runnable tasks: `1 process`.
fn counted(report: &SchedulerReport<'_>, count: u32) -> String {
    let (one, many) = if report.costs.processes { ("process", "processes") } else { ("thread", "threads") };
    becalm_units::counted(count.into(), one, many)
}

/// Curves over the number of runnable tasks; `None` without two of them.
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
    let axis = || Axis::new("takes", AxisScale::Linear, AxisUnit::Time);
    let together: [Named; 3] = [
        ("together", SchedulerCost::overhead_ratio),
        ("ticks", |row| row.ticks_ratio),
        ("switches", |row| row.switches_ratio),
    ];
    let calls: [Named; 2] = [("switch", |row| row.switch_ns), ("yield", |row| row.yield_ns)];
    let ticks: [Named; 1] = [("mean tick", |row| row.tick_mean_ns)];
    let charts = [
        chart("overhead", "The share of the CPU that ticks and switches take", report, share, &together),
        chart("switches", "A switch, and a call of sched_yield", report, axis(), &calls),
        chart("ticks", "The handler of a tick", report, axis(), &ticks),
    ];
    let table = Table::filled(&shown_fields(report), &report.rows).captioned("Ticks and switches");
    let blocks = vec![Block::Charts(charts.into_iter().flatten().collect()), Block::Table(table)];
    Section::new("overall", "Overhead", "Overhead by the number of runnable tasks", blocks)
        .opened(Opening::Gap)
        .explained("Costs that grow with the number are those of the scheduler\u{2019}s lists and of cold caches.")
}

/// The meaning of the columns.
fn meaning(report: &SchedulerReport<'_>) -> String {
    format!(
        "ticks: the kernel's record of its timer handler while the {0} only count; preemptions: switches meanwhile. switch: time of \
         {0} that call sched_yield, per switch that the kernel counts; yield: per call; of the CPU: ticks and preemptions together",
        report.what()
    )
}
