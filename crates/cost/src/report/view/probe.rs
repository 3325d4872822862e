//! The sections on the costs of traps and detours.

use becalm_report::form::field::columns;
use becalm_report::form::table::Table;
use becalm_report::html::{Block, Opening, Page, Section};

use super::{EACH, counters, explanation, extremes, framed, headline, losses, medians, samples, timed};
use crate::report::events;
use crate::report::header::cut_short;
use crate::report::probe::{ProbeReport, Probes, ROW, costs_by_name, probe_columns, published_ns};

/// Explains the published figures of detours.
const PUBLISHED: &str = "B07: the magnitudes of Beckman et al. 2007, on machines of that time";

pub(in crate::report) fn page(report: &ProbeReport<'_>) -> Page {
    let title = match report.probes {
        Probes::Traps => "Costs of entering the kernel",
        Probes::Detours => "Costs of detours",
    };
    let named = report.rows.iter().map(|row| (row.probe.what.as_str(), row.measured.as_ref()));
    let summary = headline(report.doc, "How long does each take?", extremes("Each", named), &timed(report.instrument));
    let mut sections = vec![summary, costs(report)];
    sections.extend(counters(EACH, events::ROW, &events::rows(costs_by_name(report))));
    let published = (report.probes == Probes::Detours).then(|| PUBLISHED.to_owned());
    sections.extend([
        losses(&report.instrument.not_counted, cut_short(report.doc)),
        methods(report),
        explanation([samples(report.doc)].into_iter().chain(published)),
    ]);
    framed(report.doc, title, sections)
}

fn costs(report: &ProbeReport<'_>) -> Section {
    let published = report.probes == Probes::Detours;
    let rows = report.rows.iter().map(|row| {
        let other = published_ns(&row.probe.name).filter(|_| published).map(|ns| ns.saturating_mul(1_000));
        (row.probe.what.clone(), row.measured.as_ref(), other)
    });
    let chart = medians("costs", "the magnitudes of Beckman et al. 2007", rows);
    let mut names = vec!["what"];
    names.extend(published.then_some("published_ns"));
    names.push("median_ps");
    let interval = names.len();
    names.extend(["mean_ps", "stddev_ps", "min_ps", "p5_ps", "p95_ps", "max_ps", "samples", "slow", "interrupted"]);
    let mut fields = columns(ROW, &names);
    fields.insert(interval, &probe_columns::INTERVAL);
    let for_page = if published { &["mean", "stddev", "max"][..] } else { &["max"] };
    let table = Table::filled(&fields, &report.rows).captioned("Costs");
    let mut table = table.without_on_terminal(for_page);
    table.keep_names_long();
    let mut blocks: Vec<Block> = chart.into_iter().chain([Block::Table(table)]).collect();
    blocks.extend(not_measured(report).into_iter().map(Block::warning));
    Section::new("costs-of-each", "Costs", "One by one", blocks)
        .opened(Opening::Gap)
        .explained("Each step to the right is ten times as long.")
}

/// Probes that failed in all or in some processes, with the reasons.
fn not_measured(report: &ProbeReport<'_>) -> Vec<String> {
    let missing =
        report.rows.iter().filter_map(|row| Some(format!("{}: not measured: {}", row.probe.what, row.not_measured()?)));
    let processes = report.doc.spread.as_ref().map_or(1, |spread| spread.processes.len());
    let not_in_all = report.rows.iter().filter_map(|row| {
        let (why, measured) = (row.probe.not_in_all.as_ref()?, row.measured.as_ref()?.cost.processes);
        Some(format!("{}: measured by {measured} of {processes} processes; the others: {why}", row.probe.what))
    });
    missing.chain(not_in_all).collect()
}

fn methods(report: &ProbeReport<'_>) -> Section {
    let measured = report.rows.iter().filter(|row| row.measured.is_some());
    let methods = measured.map(|row| Block::Item(format!("{}: {}", row.probe.what, row.probe.method)));
    Section::new("methods", "Methods", "How each is measured", methods.collect()).opened(Opening::Gap)
}
