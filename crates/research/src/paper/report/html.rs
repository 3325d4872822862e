//! A paper as a page for a browser.

use becalm_report::Value;
use becalm_report::form::table::Table;
use becalm_report::html::{
    Axis, AxisScale, AxisUnit, BarPair, Block, Chart, ChartSeries, Grade, Lines, Opening, Page, PairedBars, Section,
    Spec, sentence,
};

use super::{PaperReport, row};
use crate::paper::catalogue::{Bars, Chart as Drawn, ChartAxis, Curve, Item, Points, PublishedTable};
use crate::paper::verdict::{Verdict, digits};

/// The names of charts on a page, in their order; a test holds that they are enough.
const CHARTS: [&str; 52] = [
    "chart-a", "chart-b", "chart-c", "chart-d", "chart-e", "chart-f", "chart-g", "chart-h", "chart-i", "chart-j",
    "chart-k", "chart-l", "chart-m", "chart-n", "chart-o", "chart-p", "chart-q", "chart-r", "chart-s", "chart-t",
    "chart-u", "chart-v", "chart-w", "chart-x", "chart-y", "chart-z", "chart-aa", "chart-ab", "chart-ac", "chart-ad",
    "chart-ae", "chart-af", "chart-ag", "chart-ah", "chart-ai", "chart-aj", "chart-ak", "chart-al", "chart-am",
    "chart-an", "chart-ao", "chart-ap", "chart-aq", "chart-ar", "chart-as", "chart-at", "chart-au", "chart-av",
    "chart-aw", "chart-ax", "chart-ay", "chart-az",
];

/// A curve of more points, which are joined, has no dots.
const DOTS: usize = 60;

/// The page of a paper, made by `program`: `becalm 0.1.0`.
pub(super) fn page(report: &PaperReport, program: &str) -> Page {
    let mut charts = CHARTS.into_iter();
    let blocks = report.items.iter().flat_map(|item| blocks(report, item, &mut charts)).collect();
    let items = Section {
        opening: Opening::None,
        id: "figures",
        title: "Tables and figures, in the order of the paper".to_owned(),
        short: "Tables and figures",
        reading: "What was published, beside what was found here: a number holds within 10 % of the published one, one that is given \
                  with an \"about\" within 25 %, and a bound is kept or not. Times of the paper's machine are shown beside those of \
                  this one, and are no reproduction."
            .to_owned(),
        blocks,
    };
    Page {
        title: format!("{}: published, and here", report.name),
        subtitle: report.paper.citation.clone(),
        sections: vec![headline(report), items],
        foot: vec![
            format!("Made by {program}. The documents of all steps are in the folder steps beside this page."),
            "Drawn with Apache ECharts 6.1.0, which is part of this file; nothing is loaded from elsewhere.".to_owned(),
        ],
    }
}

fn headline(report: &PaperReport) -> Section {
    let counts = report.counts();
    let tone = if counts.not + counts.broken == 0 && counts.hold > 0 { Grade::Good } else { Grade::Fair };
    let basis = if report.quick { "A quick campaign: the long steps were left out." } else { "All steps were run." };
    let facts = [("Paper's machine", &report.paper.machine), ("This machine", &report.here)]
        .map(|(name, what)| (name.to_owned(), what.clone()));
    let facts = report.outcomes().into_iter().chain(facts).collect();
    Section {
        opening: Opening::None,
        id: "headline",
        title: "Is it found again?".to_owned(),
        short: "Summary",
        reading: String::new(),
        blocks: vec![
            Block::Verdict { tone, text: format!("{}.", report.summary()), basis: basis.to_owned() },
            Block::Facts(facts),
        ],
    }
}

fn blocks(report: &PaperReport, item: &Item, ids: &mut impl Iterator<Item = &'static str>) -> Vec<Block> {
    let name = format!("{}: {}", item.name(), item.title);
    let mut blocks = Vec::new();
    let rows = report.rows(item);
    let fields = [&row::PUBLISHED, &row::HERE, &row::DIFFERENCE, &row::VERDICT];
    let mut table = Table::named("what", &fields).captioned(&name);
    table.sorts = false;
    rows.iter().for_each(|found| table.named_row(found.figure.what.clone(), &fields, found));
    blocks.push(Block::Heading(name.clone()));
    if let Some(PublishedTable { names, values, rows }) = item.published() {
        let titles: Vec<&str> = names.iter().map(String::as_str).collect();
        let mut published = Table::matrix(&titles, values).captioned(&format!("{name}, as published"));
        published.sorts = false;
        for row in rows {
            let (names, values) = row.split_at(titles.len());
            published.values(names, values.iter().cloned().map(Value::Text));
        }
        blocks.push(Block::Table(published));
    }
    if !table.is_empty() {
        blocks.push(Block::Table(table));
    }
    // Those of figures stand in the table.
    let is_told = |reason: &String| rows.iter().any(|row| row.verdict == Verdict::Lacking(reason.clone()));
    let untold = report.reasons(item).into_iter().filter(|reason| !is_told(reason));
    blocks.extend(untold.map(|reason| Block::Note(sentence(&format!("not here: {reason}")))));
    if !item.lacking.is_empty() {
        blocks.push(Block::Note(sentence(&item.lacking)));
    }
    let charts: Vec<Chart> = item
        .charts
        .iter()
        .filter_map(|drawn| chart(report, item, drawn))
        .chain(item.bars.iter().filter_map(|drawn| bars(report, item, drawn)))
        .zip(ids)
        .map(|(chart, id)| Chart { id, ..chart })
        .collect();
    if !charts.is_empty() {
        blocks.push(Block::Charts(charts));
    }
    let notes = rows.iter().filter(|found| !found.figure.note.is_empty());
    blocks.extend(notes.map(|found| Block::Note(format!("{}: {}", found.figure.what, found.figure.note))));
    let commands = report.commands(item).into_iter().map(|command| ("command".to_owned(), command)).collect::<Vec<_>>();
    if !commands.is_empty() {
        blocks.push(Block::Facts(commands));
    }
    let files = report.files(item);
    if !files.is_empty() {
        blocks.push(Block::Files("files", files));
    }
    blocks
}

/// The curves of a figure, not named yet; `None` where no step of it was done.
fn chart(report: &PaperReport, item: &Item, drawn: &Drawn) -> Option<Chart> {
    let curve = |curve: &Curve| {
        let document = report.documents.get(&curve.step)?;
        let Points { points, band } = drawn.points(curve, document);
        let scattered = drawn.scattered || curve.scattered;
        (!points.is_empty()).then(|| ChartSeries {
            name: curve.name_in(document),
            dots: scattered || has_dots(drawn, curve, points.len()),
            points,
            band,
            scattered,
            step: drawn.steps,
            dashed: curve.dashed,
            ..ChartSeries::default()
        })
    };
    let mut series: Vec<ChartSeries> = drawn.curves.iter().filter_map(curve).collect();
    if drawn.stacked {
        stack(&mut series);
    }
    if series.is_empty() {
        return None;
    }
    let label = format!(
        "{}: {} against {}, {}.",
        what(item, &drawn.title),
        drawn.y.title,
        drawn.x.title,
        becalm_units::counted(series.len() as u64, "curve", "curves")
    );
    Some(Chart {
        id: "",
        title: title(item, &drawn.title),
        label,
        height: 360,
        spec: Spec::Lines(Lines { x: axis(&drawn.x), y: upward(&drawn.y, &series), series, marks: Vec::new() }),
        figures: None,
    })
}

/// Whether the points of a curve that joins them have dots as well.
const fn has_dots(drawn: &Drawn, curve: &Curve, points: usize) -> bool {
    !drawn.steps && !curve.dashed && points <= DOTS
}

/// Lays each curve on those before it: its band is what it adds. Where they are apart, a curve goes on from the last value below it.
fn stack(series: &mut [ChartSeries]) {
    let mut below: Vec<[f64; 2]> = Vec::new();
    for curve in series {
        let bottom = |x: f64| below.iter().rev().find(|[at, _]| *at <= x).map_or(0.0, |[_, y]| *y);
        curve.band = curve.points.iter().map(|[x, y]| [bottom(*x), bottom(*x) + y]).collect();
        for (point, [_, top]) in curve.points.iter_mut().zip(&curve.band) {
            point[1] = *top;
        }
        below.clone_from(&curve.points);
    }
}

/// The bars of a figure, not named yet; `None` where its step was not done.
fn bars(report: &PaperReport, item: &Item, drawn: &Bars) -> Option<Chart> {
    let text = |value: f64| match drawn.unit {
        AxisUnit::Time | AxisUnit::Instant => Value::time(value).cell(),
        _ => digits(value),
    };
    let pair = |(name, values): (String, [f64; 2])| BarPair { name, values, texts: values.map(text) };
    let pairs: Vec<BarPair> = drawn.pairs(report.documents.get(&drawn.step)?).into_iter().map(pair).collect();
    if pairs.is_empty() {
        return None;
    }
    let texts: Vec<String> =
        pairs.iter().map(|pair| format!("{} {} and {}", pair.name, pair.texts[0], pair.texts[1])).collect();
    Some(Chart {
        id: "",
        title: title(item, &drawn.title),
        label: format!("{}, {}: {}.", what(item, &drawn.title), drawn.titles.join(" and "), texts.join("; ")),
        height: 74 + 40 * pairs.len() as u32,
        spec: Spec::Pairs(PairedBars {
            x: Axis::new("", AxisScale::Linear, drawn.unit).between(Some(0.0), None),
            names: drawn.titles.clone(),
            pairs,
        }),
        figures: None,
    })
}

/// What a drawing shows: the figure, or where that has several, its own.
fn what<'a>(item: &'a Item, own: &'a str) -> &'a str {
    if own.is_empty() { &item.title } else { own }
}

fn title(item: &Item, own: &str) -> String {
    format!("{}, from here{}", item.name(), if own.is_empty() { String::new() } else { format!(": {own}") })
}

fn axis(axis: &ChartAxis) -> Axis {
    let scale = if axis.log { AxisScale::Log } else { AxisScale::Linear };
    Axis::new(&axis.title, scale, axis.unit)
}

/// Slowdowns begin with none, unless something ended early.
fn upward(drawn: &ChartAxis, series: &[ChartSeries]) -> Axis {
    let all = series.iter().flat_map(|curve| curve.points.iter().chain(&curve.band));
    let is_slowdown = drawn.unit == AxisUnit::Factor && !drawn.log && all.flatten().all(|value| *value >= 1.0);
    axis(drawn).between(is_slowdown.then_some(1.0), None)
}

#[cfg(test)]
mod tests {
    use crate::paper::catalogue;

    use super::{CHARTS, ChartSeries, stack};

    /// Points that nothing joins would not be seen without dots, however many they are.
    #[test]
    fn scattered_points_are_seen() {
        let axis = serde_json::json!({ "field": "n", "title": "n", "unit": "plain" });
        let chart = |scattered: bool| {
            let curves = serde_json::json!([{ "name": "a", "step": "s" }]);
            let drawn = serde_json::json!({ "x": axis, "y": axis, "curves": curves, "scattered": scattered });
            let mut report = super::super::tests::empty("de2009");
            let rows: Vec<_> = (0..100).map(|n| serde_json::json!({ "n": n })).collect();
            report.documents.insert("s".to_owned(), serde_json::json!({ "rows": rows }));
            let chart = super::chart(&report, &report.items[0], &serde_json::from_value(drawn).unwrap()).unwrap();
            let super::Spec::Lines(lines) = chart.spec else { panic!("no curves") };
            (lines.series[0].scattered, lines.series[0].dots)
        };
        assert_eq!((chart(true), chart(false)), ((true, true), (false, false)));
    }

    #[test]
    fn stacked_curves_add_up() {
        let curve = |points: &[[f64; 2]]| ChartSeries { points: points.to_vec(), ..ChartSeries::default() };
        let mut all =
            [curve(&[[1.0, 2.0], [2.0, 3.0]]), curve(&[[1.0, 5.0], [2.0, 1.0]]), curve(&[[0.0, 9.0], [3.0, 1.0]])];
        stack(&mut all);
        assert_eq!(all[0].band, [[0.0, 2.0], [0.0, 3.0]]);
        assert_eq!(all[1].points, [[1.0, 7.0], [2.0, 4.0]]);
        assert_eq!(all[1].band, [[2.0, 7.0], [3.0, 4.0]]);
        assert_eq!(all[2].points, [[0.0, 9.0], [3.0, 5.0]]);
    }

    #[test]
    fn charts_have_names_enough() {
        for name in catalogue::names() {
            let charts: usize =
                catalogue::paper(name).unwrap().items.iter().map(|item| item.charts.len() + item.bars.len()).sum();
            assert!(charts > 0 && charts <= CHARTS.len(), "{name} has {charts} charts");
        }
    }
}
