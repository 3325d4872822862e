//! The section of a page that says who took the time.

use becalm_analyze::summary::{CategoryTotal, NodeSummary, SourceSummary, Summary, categories};
use becalm_model::node::Rung;

use crate::form::field::Field;
use crate::form::table::Table;
use crate::form::value::{grouped, time};
use crate::html::{Axis, AxisScale, AxisUnit, Bar, Bars, Chart, Spec};
use crate::html::{Block, Opening, Section};
use crate::record::figures::{self, CATEGORY, counter, source};

/// How many sources have a bar.
const BARS: usize = 12;

/// How many rows a table has at most.
const ROWS: usize = 300;

pub(super) fn section(summary: &Summary) -> Option<Section> {
    let counters: Vec<Block> = summary.nodes.iter().filter_map(|node| counters(summary, node)).collect();
    let mut blocks = Vec::new();
    if let Some(worst) = summary.sources.first() {
        let most = summary.sources.iter().max_by_key(|source| source.times.max()).unwrap_or(worst);
        let text = format!(
            "In all {} cost most, {} with all that goes with it in {} activities; the longest at once was {}, {}.",
            worst.source,
            time(worst.whole_ns),
            grouped(worst.times.count()),
            most.source,
            time(most.times.max().unwrap_or(0))
        );
        let costly = summary.sources.iter().filter(|source| source.whole_ns > 0);
        let total = bars("sources-total", "In all, whole", &text, costly, |source| source.whole_ns);
        let mut by_max: Vec<&SourceSummary> = summary.sources.iter().collect();
        by_max.sort_by_key(|source| std::cmp::Reverse(source.times.max()));
        let highest = bars("sources-max", "Longest at once", &text, by_max, |source| source.times.max().unwrap_or(0));
        blocks.extend([
            Block::Text(text),
            Block::Charts(vec![total, highest]),
            Block::Table(by_category(summary)),
            Block::Table(table(summary)),
        ]);
    } else if summary.rung == Rung::Tracepoints {
        return None;
    } else {
        blocks.push(Block::Text(
            "The sources have no names here: the kernel\u{2019}s tracepoints were not recorded. Run becalm alone to see what \
             is missing, and how to get it."
                .to_owned(),
        ));
    }
    blocks.extend(counters);
    Some(Section {
        opening: Opening::None,
        id: "sources",
        title: "Sources".to_owned(),
        short: "Sources",
        reading:
            "Who took the time: on the left what each source cost in all, with the ways in and out, softirqs and aftermath that go \
                  with it, which is what a job loses on average, on the \
                  right its longest time at once, which is what a synchronized job waits for."
                .to_owned(),
        blocks,
    })
}

fn bars<'a>(
    id: &'static str,
    title: &str,
    text: &str,
    sources: impl IntoIterator<Item = &'a SourceSummary>,
    value: fn(&SourceSummary) -> i64,
) -> Chart {
    let bar = |source: &SourceSummary| Bar {
        name: source.source.clone(),
        value: value(source) as f64,
        text: time(value(source)),
        kind: Some(source.kind.name()),
    };
    let bars: Vec<Bar> = sources.into_iter().take(BARS).map(bar).collect();
    Chart {
        id,
        title: title.to_owned(),
        label: format!("{title}, by source. {text}"),
        height: 44 + 28 * bars.len() as u32,
        spec: Spec::Bars(Bars { x: Axis::new("", AxisScale::Linear, AxisUnit::Time).between(Some(0.0), None), bars }),
        figures: None,
    }
}

/// De et al.'s categories, with what each took itself.
fn by_category(summary: &Summary) -> Table {
    let fields: Vec<&Field<CategoryTotal>> = CATEGORY.iter().collect();
    let mut table = Table::new(&fields).captioned("Sources by category");
    for total in categories(&summary.sources).iter().filter(|total| total.sources > 0) {
        table.row(&fields, total);
    }
    table
}

fn table(summary: &Summary) -> Table {
    let fields = [
        &source::SOURCE,
        &source::KIND,
        &source::COUNT,
        &source::MAX_NS,
        &source::MEAN_NS,
        &source::TOTAL_NS,
        &source::WHOLE_MEAN_NS,
        &source::WHOLE_NS,
        &source::SHARE_RATIO,
        &source::TIME_RATIO,
    ];
    let mut table = Table::new(&fields).captioned("Sources");
    for source in summary.sources.iter().take(ROWS) {
        table.row(&fields, source);
    }
    if summary.sources.len() > ROWS {
        table.note = format!("The {ROWS} that took most of {} sources.", grouped(summary.sources.len() as u64));
    }
    table
}

fn counters(summary: &Summary, node: &NodeSummary) -> Option<Block> {
    let rows = if node.doc.rung == Rung::Tracepoints { Vec::new() } else { figures::counters(node, false) };
    if rows.is_empty() {
        return None;
    }
    let on_node = if summary.nodes.len() > 1 { format!(" on {}", node.doc.node) } else { String::new() };
    let fields = [&counter::NAME, &counter::GROWTH, &counter::RATE_HZ];
    let mut table = Table::new(&fields).captioned(&format!("Kernel counters that grew{on_node}"));
    rows.iter().take(ROWS).for_each(|row| {
        table.row(&fields, row);
    });
    Some(Block::Table(table))
}
