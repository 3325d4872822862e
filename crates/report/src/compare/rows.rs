//! Groups and order of the rows.

use std::cmp::Ordering;

use becalm_analyze::compare::{ComparedFigure, Comparison, Metric, TestFamily};
use becalm_units::printable;

/// The figures of all CPUs together.
pub(crate) fn totals(comparison: &Comparison) -> Vec<&ComparedFigure> {
    comparison.rows.iter().filter(|row| row.source.is_none() && row.place.is_none()).collect()
}

/// The CPUs of the total figures.
pub(crate) fn place(comparison: &Comparison) -> String {
    let cpus = comparison.a.cpus();
    match (comparison.a.count_cpus(), comparison.b.count_cpus()) {
        (1, 1) if cpus == comparison.b.cpus() => format!("CPU {cpus}"),
        _ => "All CPUs together".to_owned(),
    }
}

/// A figure of every source, significant changes first; otherwise the order by size of the change is kept.
pub(crate) fn sources(comparison: &Comparison, metric: Metric) -> Vec<&ComparedFigure> {
    let rows = comparison.rows.iter().filter(|row| row.source.is_some() && row.metric == metric);
    let mut rows: Vec<&ComparedFigure> = rows.collect();
    rows.sort_by_key(|row| !row.verdict.is_difference());
    rows
}

/// The noise of every CPU.
pub(crate) fn cpus(comparison: &Comparison) -> Vec<&ComparedFigure> {
    noise_of(comparison, TestFamily::Cpus)
}

/// The noise of every node, if there are several.
pub(crate) fn nodes(comparison: &Comparison) -> Vec<&ComparedFigure> {
    noise_of(comparison, TestFamily::Nodes)
}

fn noise_of(comparison: &Comparison, family: TestFamily) -> Vec<&ComparedFigure> {
    comparison.rows.iter().filter(|row| row.family == family && row.metric == Metric::NoiseRatio).collect()
}

/// Sorts by the size of the change.
pub(crate) fn most_changed_first(rows: &mut [&ComparedFigure]) {
    let change = |row: &ComparedFigure| row.difference.unwrap_or(0.0).abs();
    rows.sort_by(|a, b| change(b).partial_cmp(&change(a)).unwrap_or(Ordering::Equal));
}

/// The name of the row of a node or a CPU.
pub(crate) fn place_name(row: &ComparedFigure, nodes: bool) -> String {
    let Some(place) = &row.place else { return String::new() };
    match place.cpu {
        Some(cpu) if nodes => format!("{} {cpu}", printable(&place.node)),
        Some(cpu) => cpu.to_string(),
        None => printable(&place.node).into_owned(),
    }
}
