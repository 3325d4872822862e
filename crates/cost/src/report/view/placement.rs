//! The sections on the costs of an interrupt by placement and kind of instruction.

use becalm_report::form::table::Table;
use becalm_report::form::value::{grouped, time};
use becalm_report::html::{Axis, AxisScale, AxisUnit, Block, Opening, Page, RangeRow, Ranges, Section};

use super::{counters, explanation, framed, headline, losses, ranges, verdict};
use crate::analysis::PlacedCost;
use crate::documents::WorkPlace;
use crate::report::placement::{EVENT, PlacementReport, event_rows, placed, shown};

pub(in crate::report) fn page(report: &PlacementReport<'_>) -> Page {
    let mut sections = vec![summary(report), costs(report)];
    let place = ": added by one more interrupt, in the work itself (user) and in the kernel";
    sections.extend(counters(place, EVENT, &event_rows(report)));
    let missing = report.costs.missing.iter().cloned().chain(report.incomplete());
    sections.push(losses(&report.costs.not_counted, missing));
    sections.push(explanation([meaning(report)]));
    framed(report.doc, "Cost of an interrupt, by place", sections)
}

fn summary(report: &PlacementReport<'_>) -> Section {
    let rows = report.rows.iter().filter_map(|row| Some((row, row.cost?.mean_ns)));
    let text = match rows.max_by(|a, b| a.1.total_cmp(&b.1)) {
        Some((row, cost)) => format!(
            "An interrupt costs up to {}: work of {} {}.",
            time(cost.round() as i64),
            row.body,
            match row.place {
                WorkPlace::Same => "on the same hardware thread",
                WorkPlace::Sibling => "on the sibling",
                WorkPlace::Other => "on another core",
                WorkPlace::Unbound => "bound to no CPU",
            }
        ),
        None => "Nothing was measured.".to_owned(),
    };
    let setting = format!(
        "this CPU takes {} more timer interrupts per second; {} rounds of {}, seed {}",
        grouped(report.costs.added_hz.into()),
        report.costs.rounds,
        time(report.costs.cell_ns),
        report.costs.seed
    );
    headline(report.doc, "What does an interrupt cost?", verdict(text, String::new()), &setting)
}

/// The place of work in words.
fn place(row: &PlacedCost) -> String {
    match row.place {
        WorkPlace::Unbound => row.place.name().to_owned(),
        place => format!("{} (CPU {})", place.name(), row.cpu),
    }
}

fn costs(report: &PlacementReport<'_>) -> Section {
    let range = |row: &PlacedCost| {
        let cost = row.cost?;
        Some(RangeRow {
            name: format!("{}, {}", place(row), row.body),
            middle: cost.mean_ns,
            low: cost.bounds.map(|bounds| bounds.low),
            high: cost.bounds.map(|bounds| bounds.high),
            other: None,
            text: placed::COST_NS.cell(row),
        })
    };
    let chart = Ranges {
        x: Axis::new("", AxisScale::Linear, AxisUnit::Time),
        range: "95 % CI",
        other: "",
        rows: report.rows.iter().filter_map(range).collect(),
    };
    let table = Table::filled(&shown(report), &report.rows).captioned("Cost of an interrupt");
    let chart = ranges("placed", "Cost of one more interrupt, with its 95 % CI".to_owned(), chart);
    let blocks = chart.into_iter().chain([Block::Table(table)]).collect();
    Section::new("places", "Places", "By place and kind of work", blocks).opened(Opening::Gap)
}

/// The meaning of the figures.
fn meaning(report: &PlacementReport<'_>) -> String {
    let unbound = if report.rows.iter().any(|row| row.roamed.is_some()) {
        "; unbound work starts there and may run anywhere: the share of its pieces that started on that CPU, and how often it moved"
    } else {
        ""
    };
    format!(
        "cost of one more interrupt to work on the same hardware thread, on its sibling, on another core{unbound}; 95 % CI: of the mean \
         over the rounds (Student). If it contains zero, the cost is not significant"
    )
}
