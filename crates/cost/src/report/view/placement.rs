//! The page of what an interrupt costs by placement and kind of instruction.

use becalm_report::form::field::Field;
use becalm_report::form::table::Table;
use becalm_report::form::value::time;
use becalm_report::html::{
    Axis, AxisScale, AxisUnit, Block, Chart, Opening, Page, RangeRow, Ranges, Section, Spec, sentence,
};

use super::{framed, headline, machine};
use crate::analysis::PlacedCost;
use crate::documents::WorkPlace;
use crate::report::events::EventRow;
use crate::report::placement::{EVENT, PlacementReport, event_rows, meaning, placed, setting, shown};

/// The page, made by `program`: `becalm 0.1.0`.
pub(in crate::report) fn page(report: &PlacementReport<'_>, program: &str) -> Page {
    let mut sections = vec![summary(report), costs(report)];
    let fields: Vec<&Field<EventRow<PlacedCost>>> = EVENT.iter().collect();
    let reading = "What one more interrupt adds, in the work itself (user) and in the kernel.";
    sections.extend(super::counters(reading, &fields, &event_rows(report)));
    let mut warnings: Vec<String> =
        report.costs.not_counted.iter().map(|reason| format!("not counted: {reason}")).collect();
    warnings.extend(report.costs.missing.iter().cloned().chain(report.incomplete()));
    sections.push(machine(report.doc, None, warnings));
    framed(report.doc, "What an interrupt costs, by place", sections, program)
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
    headline("What does an interrupt cost, and whom?", text, sentence(&setting(report)))
}

/// Where work ran, in words.
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
    let rows: Vec<RangeRow> = report.rows.iter().filter_map(range).collect();
    let fields = shown(report);
    let mut table = Table::new(&fields).captioned("Cost of an interrupt");
    report.rows.iter().for_each(|row| {
        table.row(&fields, row);
    });
    table.note = sentence(&meaning(report));
    let chart = (!rows.is_empty()).then(|| Chart {
        id: "placed",
        title: "Cost of one more interrupt, with its 95 % limits".to_owned(),
        label: format!("The cost of an interrupt at {} places and kinds of work.", rows.len()),
        height: 62 + 28 * rows.len() as u32,
        spec: Spec::Ranges(Ranges {
            x: Axis::new("", AxisScale::Linear, AxisUnit::Time),
            range: "95 % limits",
            other: "",
            rows,
        }),
        figures: None,
    });
    let mut blocks: Vec<Block> = chart.map(|chart| Block::Charts(vec![chart])).into_iter().collect();
    blocks.push(Block::Table(table));
    Section {
        opening: Opening::None,
        id: "places",
        title: "By place and kind of work".to_owned(),
        short: "Places",
        reading: "Same is the hardware thread that takes the interrupts, sibling the other one of its core, other another core, and unbound work that the scheduler may put anywhere."
            .to_owned(),
        blocks,
    }
}
