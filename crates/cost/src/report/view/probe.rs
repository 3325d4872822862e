//! The page of what traps and detours cost.

use becalm_report::form::field::{Field, columns};
use becalm_report::form::table::Table;
use becalm_report::form::value::picos;
use becalm_report::html::{Block, Opening, Page, Section};

use super::{explained, framed, headline, machine, medians};
use crate::report::events;
use crate::report::header::cut_short;
use crate::report::probe::{ProbeReport, Probes, ROW, counted, not_in_all, published_ns};

/// The page, made by `program`: `becalm 0.1.0`.
pub(in crate::report) fn page(report: &ProbeReport<'_>, program: &str) -> Page {
    let title = match report.probes {
        Probes::Traps => "What ways into the kernel cost",
        Probes::Detours => "What detours cost",
    };
    let mut sections = vec![summary(report), costs(report)];
    let fields: Vec<&Field<events::ProbeEvent>> = events::ROW.iter().collect();
    let reading = "What the processor counted in each repetition itself (user), and in the kernel meanwhile.";
    sections.extend(super::counters(reading, &fields, &counted(report)));
    sections.push(methods(report));
    sections.push(machine(report.doc, Some(&report.instrument), warnings(report)));
    framed(report.doc, title, sections, program)
}

fn summary(report: &ProbeReport<'_>) -> Section {
    let costs = || report.rows.iter().filter_map(|row| Some((row, row.measured.as_ref()?.cost.median_ps)));
    let ends = costs().min_by_key(|row| row.1).zip(costs().max_by_key(|row| row.1));
    let text = match ends {
        Some((least, most)) => format!("From {} to {}.", picos(least.1), picos(most.1)),
        None => "Nothing was measured.".to_owned(),
    };
    let basis = ends.map_or_else(String::new, |(least, most)| {
        format!(
            "The shortest is \u{201c}{}\u{201d}, the longest \u{201c}{}\u{201d}; medians of {} that were measured.",
            least.0.probe.what,
            most.0.probe.what,
            costs().count()
        )
    });
    headline("How long does each take?", text, basis)
}

fn costs(report: &ProbeReport<'_>) -> Section {
    let published = report.probes == Probes::Detours;
    let rows = report.rows.iter().map(|row| {
        let other = published_ns(&row.probe.name).filter(|_| published).map(|ns| ns.saturating_mul(1_000));
        (row.probe.what.clone(), row.measured.as_ref(), other)
    });
    let chart = medians("costs", "the magnitudes of Beckman et al. 2007", rows);
    let mut names = vec!["what"];
    if published {
        names.push("published_ns");
    }
    names.extend(["median_ps", "median_low_ps", "median_high_ps", "mean_ps", "stddev_ps", "min_ps", "p5_ps", "p95_ps"]);
    names.extend(["max_ps", "samples", "slow", "interrupted"]);
    let fields = columns(ROW, &names);
    let mut table = Table::new(&fields).captioned("Costs");
    report.rows.iter().for_each(|row| {
        table.row(&fields, row);
    });
    table.note = explained(report.doc);
    let mut blocks: Vec<Block> = chart.map(|chart| Block::Charts(vec![chart])).into_iter().collect();
    blocks.push(Block::Table(table));
    Section {
        opening: Opening::None,
        id: "costs-of-each",
        title: "One by one".to_owned(),
        short: "Costs",
        reading: "Each step to the right is ten times as long.".to_owned(),
        blocks,
    }
}

fn methods(report: &ProbeReport<'_>) -> Section {
    let measured = report.rows.iter().filter(|row| row.measured.is_some());
    let facts = measured.map(|row| (row.probe.what.clone(), row.probe.method.clone())).collect();
    Section {
        opening: Opening::None,
        id: "methods",
        title: "How each is measured".to_owned(),
        short: "Methods",
        reading: String::new(),
        blocks: vec![Block::Facts(facts)],
    }
}

fn warnings(report: &ProbeReport<'_>) -> Vec<String> {
    let missing =
        report.rows.iter().filter_map(|row| Some(format!("{}: not measured: {}", row.probe.what, row.not_measured()?)));
    let mut warnings: Vec<String> = missing.collect();
    warnings.extend(not_in_all(report));
    warnings.extend(report.instrument.not_counted.iter().map(|reason| format!("not counted: {reason}")));
    warnings.extend(cut_short(report.doc));
    warnings
}
