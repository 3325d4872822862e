//! The lives of threads over time: a chart of a page.

use std::path::Path;

use becalm_bundle::ObservedTables;
use becalm_model::Labels;
use becalm_model::observed::LifePart;
use becalm_report::html::{Axis, AxisScale, AxisUnit, Chart, Lane, LaneSort, Lanes, Spec};
use becalm_units::fault;
use becalm_units::{Named, plural};

use crate::document::{ObservedDoc, ThreadDoc};
use crate::places::places;

/// The most threads with a lane: those that waited longest.
const THREADS: usize = 24;
/// The cells into which the time is divided. The part that has most of a cell has its color.
const CELLS: i64 = 500;

/// The color of a part.
pub const fn color(part: LifePart) -> &'static str {
    match part {
        LifePart::Ran => "kind-workqueue",
        LifePart::OnTheWay => "kind-irq",
        LifePart::Queued => "kind-task",
        LifePart::Quota => "kind-throttling",
        LifePart::Asleep => "line",
        LifePart::Stopped => "kind-self",
        LifePart::Unknown => "kind-not_traced",
    }
}

/// A part in words.
const fn words(part: LifePart) -> &'static str {
    match part {
        LifePart::Ran => "ran",
        LifePart::OnTheWay => "on the way to a CPU",
        LifePart::Queued => "queued",
        LifePart::Quota => "quota",
        LifePart::Asleep => "asleep",
        LifePart::Stopped => "stopped",
        LifePart::Unknown => "not known",
    }
}

/// The chart of a recording, whose threads have these names; `None` if it has no lives of threads. Fails if its tables cannot be read.
pub fn chart(bundle: &Path, doc: &ObservedDoc, name: impl Fn(&ThreadDoc) -> String) -> fault::Result<Option<Chart>> {
    if doc.tracing.is_none() || doc.threads.is_empty() || doc.duration_ns.get() <= 0 {
        return Ok(None);
    }
    let tables = ObservedTables::new(bundle, &doc.node, doc.rows);
    let mut labels = Labels::new();
    let rows = tables.threads(&mut labels)?;
    let shown: Vec<&ThreadDoc> = doc.threads.iter().take(THREADS).collect();
    let places = places(&rows, shown.iter().copied());
    let (start, cell) = (doc.start_ns.get(), (doc.duration_ns.get() / CELLS).max(1));
    let mut sums = vec![vec![[0_i64; LifePart::ALL.len()]; CELLS as usize]; shown.len()];
    tables.stays(&mut labels, &mut |stay, _| {
        let Some(place) = places.get(&stay.thread) else { return };
        let (mut begin, end) = (stay.start.get() - start, (stay.start + stay.duration).get() - start);
        while begin < end {
            let number = (begin / cell).clamp(0, CELLS - 1);
            let until = if number == CELLS - 1 { end } else { end.min((number + 1) * cell) };
            sums[*place][number as usize][stay.part as usize] += until - begin;
            begin = until;
        }
    })?;
    let lanes = shown.iter().zip(&sums).map(|(thread, cells)| lane(name(thread), cells, start, cell));
    let spec = Lanes {
        x: Axis::new("time since the start", AxisScale::Linear, AxisUnit::Instant)
            .between(Some(start as f64), Some((start + doc.duration_ns.get()) as f64)),
        sorts: LifePart::ALL
            .iter()
            .map(|part| LaneSort { name: words(*part).to_owned(), color: color(*part) })
            .collect(),
        rows: lanes.collect(),
    };
    let label = format!(
        "The states of {} over time; each of {CELLS} cells has the color of the state with most of it",
        plural(shown.len() as u64, "the thread", "the threads that waited longest")
    );
    Ok(Some(Chart {
        id: "lives",
        title: String::new(),
        label,
        height: 96 + 30 * shown.len() as u32,
        spec: Spec::Lanes(spec),
        figures: None,
    }))
}

/// A thread's lane: cells with the same part are one stretch.
fn lane(name: String, cells: &[[i64; LifePart::ALL.len()]], start: i64, cell: i64) -> Lane {
    let mut lane = Lane { name, start, ..Lane::default() };
    let mut is_first = true;
    for (number, parts) in cells.iter().enumerate() {
        let most = (0..parts.len()).max_by_key(|part| (parts[*part], std::cmp::Reverse(*part)));
        let Some(part) = most.filter(|part| parts[*part] > 0) else {
            // Before its life and after it.
            if is_first {
                lane.start = start + (number as i64 + 1) * cell;
            }
            continue;
        };
        is_first = false;
        let end = start + (number as i64 + 1) * cell;
        match (lane.sorts.last(), lane.ends.last_mut()) {
            (Some(last), Some(until)) if *last == part as u32 => *until = end,
            _ => {
                lane.ends.push(end);
                lane.sorts.push(part as u32);
            }
        }
    }
    lane
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_cells_are_one_stretch_and_a_late_thread_starts_late() {
        let cell = |part: LifePart| {
            let mut sums = [0; LifePart::ALL.len()];
            sums[part as usize] = 7;
            sums
        };
        let none = [0; LifePart::ALL.len()];
        let cells = [none, cell(LifePart::Ran), cell(LifePart::Ran), cell(LifePart::Queued), none];
        let lane = lane("a".to_owned(), &cells, 100, 10);
        assert_eq!((lane.start, lane.ends, lane.sorts), (110, vec![130, 140], vec![0, 2]));
    }
}
