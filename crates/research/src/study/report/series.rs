//! The noise of each configuration over time, one below the other, as in Figures 3 and 5 of De et al. 2009.

use becalm_report::html::{Axis, AxisScale, AxisUnit, Block, Chart, ChartSeries, Lines, Mark, Section, Spec};
use becalm_units::Nanos;
use serde::Serialize;

use super::StudyEntry;
use crate::study::analysis::Studied;

/// The time series of the recorded configurations, with the same axes for all; `None` if no detour was recorded.
pub(super) fn section(recorded: &[StudyEntry<'_>]) -> Option<Section> {
    let lengths = || {
        let turns = recorded.iter().filter_map(|entry| entry.studied).flat_map(|studied| &studied.turns);
        turns.flat_map(|turn| turn.longest.iter().map(|(_, length)| length.get() as f64))
    };
    let (low, high) = (lengths().reduce(f64::min)?, lengths().reduce(f64::max)?);
    let charts: Vec<Chart> = recorded.iter().filter_map(|entry| chart(entry, low, high)).collect();
    let is_silent = |entry: &&StudyEntry<'_>| {
        entry.studied.is_some_and(|studied| studied.turns.iter().all(|turn| turn.longest.is_empty()))
    };
    let silent = recorded.iter().filter(is_silent).map(|entry| entry.doc.name.as_str()).collect::<Vec<_>>();
    let mut blocks = vec![Block::Charts(charts)];
    if !silent.is_empty() {
        let text = format!("No detour was recorded under {}.", silent.join(", "));
        blocks.push(Block::OnPage(vec![Block::Text(text)]));
    }
    Some(Section::new("time", "Over time", "Detours over time", blocks).explained(
        "The longest interruption of every two-hundredth of each turn, on any of the CPUs. The turns follow each other, and all \
         configurations have the same axes.",
    ))
}

/// The longest detour of a part of a turn.
#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub(super) struct LongestJson {
    /// Its start, with the turns one after another.
    at_ns: i64,
    longest_ns: i64,
}

/// The start of each turn if they follow each other, and the end of the last.
fn begins(studied: &Studied) -> Vec<i64> {
    let ends = studied.turns.iter().scan(0, |end, turn| {
        *end += turn.length.get();
        Some(*end)
    });
    std::iter::once(0).chain(ends).collect()
}

/// The longest detours of the parts of all turns, with the turns following each other.
pub(super) fn longest(studied: &Studied) -> impl Iterator<Item = LongestJson> + '_ {
    studied.turns.iter().zip(begins(studied)).flat_map(|(turn, begin)| {
        let point = move |(start, length): &(Nanos, Nanos)| LongestJson {
            at_ns: begin + start.get(),
            longest_ns: length.get(),
        };
        turn.longest.iter().map(point)
    })
}

/// One configuration, turn after turn.
fn chart(entry: &StudyEntry<'_>, low: f64, high: f64) -> Option<Chart> {
    let studied = entry.studied?;
    let name = &entry.doc.name;
    let points: Vec<[f64; 2]> = longest(studied).map(|point| [point.at_ns as f64, point.longest_ns as f64]).collect();
    if points.is_empty() {
        return None;
    }
    let begins = begins(studied);
    let marks = begins.iter().enumerate().skip(1).take(studied.turns.len().saturating_sub(1));
    let marks = marks.map(|(turn, at)| Mark { at: *at as f64, label: format!("turn {}", turn + 1) }).collect();
    let end = begins.last().map_or(0.0, |end| *end as f64);
    Some(Chart {
        id: "series-",
        title: name.clone(),
        label: format!("The longest detours under {name} against time"),
        height: 200,
        spec: Spec::Lines(Lines {
            x: Axis::new("time recorded", AxisScale::Linear, AxisUnit::Instant).between(Some(0.0), Some(end)),
            y: Axis::new("detour", AxisScale::Log, AxisUnit::Time).between(Some(low), Some(high.max(low * 10.0))),
            series: vec![ChartSeries { points, dots: true, scattered: true, ..ChartSeries::default() }],
            marks,
        }),
        figures: None,
    })
}
