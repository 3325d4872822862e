//! The sources on a page: charts and categories.

use becalm_analyze::summary::{CategoryTotal, SourceSummary, Summary, categories};
use becalm_model::node::Rung;

use crate::form::field::Field;
use crate::form::section::Block;
use crate::form::table::Table;
use crate::form::value::{grouped, time};
use crate::html::{Axis, AxisScale, AxisUnit, Bar, Bars, Chart, Spec};
use crate::record::figures::CATEGORY;

/// The number of sources with a bar.
const BARS: usize = 12;

/// The costliest source, the charts and the categories; without sources, why they have no names.
pub(in crate::record) fn blocks(summary: &Summary) -> Vec<Block> {
    let Some(worst) = summary.sources.first() else {
        let unnamed = "Sources are not named, because the kernel\u{2019}s events were not recorded. becalm doctor shows what is missing, \
                       and how to get it.";
        let is_unnamed = summary.rung != Rung::Tracepoints;
        return is_unnamed.then(|| Block::Text(unnamed.to_owned())).into_iter().collect();
    };
    let most = summary.sources.iter().max_by_key(|source| source.times.max()).unwrap_or(worst);
    let text = format!(
        "The top source is {}: {} in total, with everything that it causes, in {} activities. The longest at once was {}, {}.",
        worst.source,
        time(worst.whole_ns),
        grouped(worst.times.count()),
        most.source,
        time(most.times.max().unwrap_or(0))
    );
    let costly = summary.sources.iter().filter(|source| source.whole_ns > 0);
    let total = bars("sources-total", "Total", &text, costly, |source| source.whole_ns);
    let mut by_max: Vec<&SourceSummary> = summary.sources.iter().collect();
    by_max.sort_by_key(|source| std::cmp::Reverse(source.times.max()));
    let highest = bars("sources-max", "Longest at once", &text, by_max, |source| source.times.max().unwrap_or(0));
    vec![Block::Text(text), Block::Charts(vec![total, highest]), Block::Table(by_category(summary))]
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

/// The categories of De et al., with their own time.
fn by_category(summary: &Summary) -> Table {
    let fields: Vec<&Field<CategoryTotal>> = CATEGORY.iter().collect();
    let mut table = Table::new(&fields).captioned("Sources by category");
    for total in categories(&summary.sources).iter().filter(|total| total.sources > 0) {
        table.row(&fields, total);
    }
    table
}
