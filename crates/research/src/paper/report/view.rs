//! A paper for people.

use becalm_report::Value;
use becalm_report::form::table::Table;
use becalm_report::html::{
    Axis, AxisScale, AxisUnit, BarPair, Block, Chart, ChartSeries, Grade, Lines, Opening, Page, PairedBars, Section,
    Spec, sentence,
};

use super::{PaperReport, Row, SHORT_HERE, SHORT_VERDICT, row};
use crate::paper::catalogue::{Bars, Chart as Drawn, ChartAxis, Curve, Item, Points, PublishedTable};

/// Joined curves with more points have no dots.
const DOTS: usize = 60;

/// A paper for people.
pub(super) fn page(report: &PaperReport) -> Page {
    let blocks = report.items.iter().flat_map(|item| blocks(report, item)).collect();
    let items = Section::new("figures", "Tables and figures", "Tables and figures, in the order of the paper", blocks)
        .explained(
            "Published figures and those of this machine. A figure is reproduced if it is within 10 % of the published one, or within \
             25 % of one given with an \"about\", or within the published bounds. Times that depend on the machine are shown for \
             comparison only.",
        );
    Page {
        title: format!("{}: published and reproduced figures", report.name),
        subtitle: report.paper.citation.clone(),
        sections: vec![headline(report), items, outcomes(report)],
        foot: vec!["The documents of all steps are in the directory steps next to this page.".to_owned()],
    }
}

fn headline(report: &PaperReport) -> Section {
    let counts = report.counts();
    let tone = if counts.not + counts.broken == 0 && counts.hold > 0 { Grade::Good } else { Grade::Fair };
    let basis = if report.quick { "Quick campaign: the long steps were skipped." } else { "All steps were run." };
    let (machine, here) = (&report.paper.machine, &report.here);
    let machines = [("Paper's machine", machine), ("This machine", here)];
    let facts = report.outcomes().into_iter().chain(machines.map(|(name, what)| (name.to_owned(), what.clone())));
    let citation = Block::Text(report.paper.citation.clone());
    let on_terminal =
        vec![citation, Block::entry("  paper's machine  ", machine), Block::entry("  this machine  ", here)];
    let verdict = Block::Verdict { tone, text: sentence(&report.summary()), basis: basis.to_owned() };
    let on_page = vec![verdict, Block::Facts(facts.collect())];
    let blocks = vec![Block::OnTerminal(on_terminal), Block::OnPage(on_page)];
    Section::new("headline", "Summary", "Reproduced?", blocks)
}

/// The outcomes, at the end of a text, where readers see them first.
fn outcomes(report: &PaperReport) -> Section {
    let outcomes = report.outcomes().into_iter().map(|(name, outcome)| Block::entry(format!("  {name}  "), outcome));
    let blocks = outcomes.chain([Block::Text(report.summary())]).collect();
    Section::new("outcomes", "Outcomes", "Outcomes", vec![Block::OnTerminal(blocks)]).opened(Opening::Gap)
}

fn blocks(report: &PaperReport, item: &Item) -> Vec<Block> {
    let name = format!("{}: {}", item.name(), item.title);
    let mut blocks = vec![Block::Heading(name.clone())];
    if let Some(PublishedTable { names, values, rows }) = item.published() {
        let mut table = Table::texts(names, values).captioned(&format!("{name}, as published"));
        table.sorts = false;
        rows.into_iter().for_each(|row| table.cells(row));
        blocks.push(Block::Table(table));
    }
    let rows = report.rows(item);
    let (others, by_platform): (Vec<&Row>, Vec<&Row>) = rows.iter().partition(|found| found.figure.platform.is_empty());
    if !others.is_empty() {
        let fields = [&row::PUBLISHED, &SHORT_HERE, &row::DIFFERENCE, &SHORT_VERDICT];
        let mut table = Table::named("what", &fields).captioned(&name);
        table.sorts = false;
        table.keep_names_long();
        others.iter().for_each(|found| table.named_row(found.figure.what.clone(), &fields, found));
        blocks.push(Block::Table(table));
    }
    if !by_platform.is_empty() {
        blocks.push(Block::Table(platforms(&by_platform).captioned(&name)));
    }
    blocks.extend(report.reasons(item).into_iter().map(|reason| Block::warning(format!("not measured: {reason}"))));
    if !item.lacking.is_empty() {
        blocks.push(Block::warning(&item.lacking));
    }
    let charts = item.charts.iter().filter_map(|drawn| chart(report, item, drawn));
    let charts: Vec<Chart> = charts.chain(item.bars.iter().filter_map(|drawn| bars(report, item, drawn))).collect();
    if !charts.is_empty() {
        blocks.push(Block::Charts(charts));
    }
    let notes = rows.iter().filter(|found| !found.figure.note.is_empty());
    let notes = notes.map(|found| Block::Remark(found.figure.what.clone(), found.figure.note.clone()));
    let commands = report.commands(item).into_iter().map(|command| ("command".to_owned(), command));
    blocks.push(Block::OnPage(notes.chain([Block::Facts(commands.collect())]).collect()));
    let files = report.files(item);
    if !files.is_empty() {
        blocks.push(Block::Files("files", files));
    }
    blocks
}

/// Quantities that the paper has for several machines: a row for each, with a column for each machine.
fn platforms(rows: &[&Row]) -> Table {
    let mut machines: Vec<&str> = Vec::new();
    let mut quantities: Vec<(String, Vec<&Row>)> = Vec::new();
    for row in rows {
        let (what, machine) = (&row.figure.what, row.figure.platform.as_str());
        let quantity = what.replacen(machine, "", 1).trim_matches([':', ',', ' ']).to_owned();
        if !machines.contains(&machine) {
            machines.push(machine);
        }
        match quantities.iter_mut().find(|(known, _)| *known == quantity) {
            Some((_, found)) => found.push(row),
            None => quantities.push((quantity, vec![row])),
        }
    }
    let titles = ["this machine"].into_iter().chain(machines.iter().copied()).chain(["verdict"]);
    let mut table = Table::matrix(&["what"], titles.map(str::to_owned).collect());
    table.sorts = false;
    for (quantity, found) in quantities {
        let published = machines.iter().map(|machine| {
            let row = found.iter().find(|row| row.figure.platform == **machine);
            row.map_or_else(|| "-".to_owned(), |row| row::PUBLISHED.cell(row))
        });
        let first = [quantity, SHORT_HERE.cell(found[0])];
        table.cells(first.into_iter().chain(published).chain([SHORT_VERDICT.cell(found[0])]));
    }
    table
}

/// The curves of a figure; `None` if none of its steps was completed.
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
        id: "chart-",
        title: title(item, &drawn.title),
        label,
        height: 360,
        spec: Spec::Lines(Lines { x: axis(&drawn.x), y: upward(&drawn.y, &series), series, marks: Vec::new() }),
        figures: None,
    })
}

/// True if the points of a joined curve have dots as well.
const fn has_dots(drawn: &Drawn, curve: &Curve, points: usize) -> bool {
    !drawn.steps && !curve.dashed && points <= DOTS
}

/// Stacks each curve on those before it: its band is its own share. Between points, the last value below applies.
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

/// The bars of a figure; `None` if its step was not completed.
fn bars(report: &PaperReport, item: &Item, drawn: &Bars) -> Option<Chart> {
    let text = |value: f64| match drawn.unit {
        AxisUnit::Time | AxisUnit::Instant => Value::time(value).cell(),
        _ => Value::Often(value).cell(),
    };
    let pair = |(name, values): (String, [f64; 2])| BarPair { name, values, texts: values.map(text) };
    let pairs: Vec<BarPair> = drawn.pairs(report.documents.get(&drawn.step)?).into_iter().map(pair).collect();
    if pairs.is_empty() {
        return None;
    }
    let texts: Vec<String> =
        pairs.iter().map(|pair| format!("{} {} and {}", pair.name, pair.texts[0], pair.texts[1])).collect();
    Some(Chart {
        id: "chart-",
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

/// The subject of a drawing: the figure's, or its own if there are several.
fn what<'a>(item: &'a Item, own: &'a str) -> &'a str {
    if own.is_empty() { &item.title } else { own }
}

fn title(item: &Item, own: &str) -> String {
    format!("{}, on this machine{}", item.name(), if own.is_empty() { String::new() } else { format!(": {own}") })
}

fn axis(axis: &ChartAxis) -> Axis {
    let scale = if axis.log { AxisScale::Log } else { AxisScale::Linear };
    Axis::new(&axis.title, scale, axis.unit)
}

/// A slowdown axis starts at 1, unless something ended early.
fn upward(drawn: &ChartAxis, series: &[ChartSeries]) -> Axis {
    let all = series.iter().flat_map(|curve| curve.points.iter().chain(&curve.band));
    let is_slowdown = drawn.unit == AxisUnit::Factor && !drawn.log && all.flatten().all(|value| *value >= 1.0);
    axis(drawn).between(is_slowdown.then_some(1.0), None)
}

#[cfg(test)]
mod tests {
    use super::{ChartSeries, stack};

    /// Points that are not joined need dots to be seen, however many they are.
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
}
