//! The page that compares jobs: Figure 8 of De et al. 2009, the average and the worst case of each, and their distributions.

use becalm_analyze::compare::Verdict;
use becalm_analyze::job::JobPhases;
use becalm_analyze::jobs::{JobFigure, PhaseTime};
use becalm_analyze::phases::survival;

use super::{AVERAGE, JobsReport, LEGEND, NamedRow, WORST, rows_table, warnings, words};
use crate::Value;
use crate::form::field::Field;
use crate::form::value::time;
use crate::html::{
    Axis, AxisScale, AxisUnit, BarPair, Block, Chart, ChartSeries, Forest, ForestRow, Grade, Lines, Page, PairedBars,
    Section, Spec, Tile,
};

/// The number of points of a survival function.
const POINTS: usize = 200;

/// The number of jobs drawn at most.
const DRAWN: usize = 16;

/// The times, with the names of their charts and their meanings.
const TIMES: [(PhaseTime, [&str; 4], &str); 3] = [
    (PhaseTime::Qt, ["bars-qt", "changes-qt", "worst-qt", "survival-qt"], "the compute phase, qt"),
    (PhaseTime::Bt, ["bars-bt", "changes-bt", "worst-bt", "survival-bt"], "the collective, bt"),
    (PhaseTime::Qtbt, ["bars-qtbt", "changes-qtbt", "worst-qtbt", "survival-qtbt"], "the whole phase, qtbt"),
];

/// Jobs for people.
pub(super) fn page(report: &JobsReport<'_>) -> Page {
    let rows = report.rows();
    let mut sections = vec![headline(report, &rows), cases(&rows)];
    sections.extend(changes(report, &rows));
    sections.extend(distributions(report));
    sections.push(tables(&rows));
    sections.push(basis(report));
    let names: Vec<&str> = report.jobs.iter().map(|(name, _)| name.as_str()).collect();
    Page {
        title: format!("Parallel jobs: {}", names.join(", ")),
        subtitle: "The largest time of each phase over the ranks, average and worst case".to_owned(),
        sections,
        foot: vec!["The benchmark and its figures are those of P. De et al., IPDPS 2009.".to_owned()],
    }
}

/// The drawn rows of a time.
fn drawn(rows: &[NamedRow], time: PhaseTime) -> impl Iterator<Item = &NamedRow> {
    rows.iter().filter(move |row| row.row.time == time).take(DRAWN)
}

const fn tone(verdict: Option<Verdict>) -> Grade {
    match verdict {
        Some(Verdict::Lower | Verdict::Better) => Grade::Good,
        Some(Verdict::Higher | Verdict::Worse) => Grade::Bad,
        Some(Verdict::NotEnoughData) => Grade::Fair,
        Some(Verdict::NoDifferenceShown) | None => Grade::Plain,
    }
}

/// A change with its 95 % interval; empty for the first job.
fn change_words(figure: &JobFigure) -> String {
    let percent = |ratio: f64| Value::Change(ratio).cell();
    match (figure.change, figure.interval) {
        (Some(change), Some(ends)) => {
            format!("{} ({} to {})", percent(change), percent(ends.low), percent(ends.high))
        }
        (Some(change), None) => percent(change),
        (None, _) => String::new(),
    }
}

fn headline(report: &JobsReport<'_>, rows: &[NamedRow]) -> Section {
    let (first, _) = &report.jobs[0];
    let whole: Vec<&NamedRow> = rows.iter().filter(|row| row.row.time == PhaseTime::Qtbt).collect();
    let of_first = whole.iter().find(|row| row.row.worst.change.is_none());
    let later = || whole.iter().filter(|row| row.row.worst.change.is_some());
    let least = later().min_by(|one, other| one.row.worst.ns.total_cmp(&other.row.worst.ns));
    let mut on_page = Vec::new();
    if let (Some(least), Some(of_first)) = (least, of_first) {
        let worst = &least.row.worst;
        let [here, there] = [worst.ns, of_first.row.worst.ns].map(|ns| Value::time(ns).cell());
        let said = worst.verdict.map_or("", Verdict::name);
        on_page.push(Block::Verdict {
            tone: tone(worst.verdict),
            text: format!(
                "Of the jobs against {first}, the worst case of {} is the shortest: {here}, against {there}.",
                least.name
            ),
            basis: format!("Whole phases: {}, {said}.", change_words(worst)),
        });
    }
    let tile = |row: &&NamedRow| {
        let worst = &row.row.worst;
        let change = change_words(worst);
        let change = if change.is_empty() { change } else { format!(", {change}") };
        Tile {
            name: row.name.clone(),
            figure: Value::time(row.row.average.ns).cell(),
            detail: format!("worst 1 % {}{change}, longest {}", Value::time(worst.ns).cell(), time(row.row.max_ns)),
            tone: tone(worst.verdict),
        }
    };
    on_page.push(Block::Tiles(whole.iter().take(DRAWN).map(tile).collect()));
    let blocks = vec![Block::OnTerminal(job_blocks(report)), Block::OnPage(on_page)];
    Section::new("headline", "Summary", format!("How do they differ from {first}?"), blocks)
}

/// Each job with its warnings.
fn job_blocks(report: &JobsReport<'_>) -> Vec<Block> {
    let job = |(name, phases): &(String, JobPhases)| {
        let facts = Block::facts([("job", format!("{name}: {}", words(phases)))]);
        let warning = |text| Block::warning(format!("{name}: {text}"));
        std::iter::once(facts).chain(warnings(phases).into_iter().map(warning)).collect::<Vec<_>>()
    };
    report.jobs.iter().flat_map(job).collect()
}

fn cases(rows: &[NamedRow]) -> Section {
    let chart = |(time, [id, ..], what): (PhaseTime, [&'static str; 4], &str)| {
        let pair = |row: &NamedRow| BarPair {
            name: row.name.clone(),
            values: [row.row.average.ns, row.row.worst.ns],
            texts: [row.row.average.ns, row.row.worst.ns].map(|ns| Value::time(ns).cell()),
        };
        let pairs: Vec<BarPair> = drawn(rows, time).map(pair).collect();
        let texts: Vec<String> =
            pairs.iter().map(|pair| format!("{} {} and {}", pair.name, pair.texts[0], pair.texts[1])).collect();
        let title = format!("Average and worst 1 % of {what}");
        Chart {
            id,
            label: format!("{title}: {}.", texts.join("; ")),
            title,
            height: 74 + 40 * pairs.len() as u32,
            spec: Spec::Pairs(PairedBars {
                x: Axis::new("", AxisScale::Linear, AxisUnit::Time).between(Some(0.0), None),
                names: ["average", "worst 1 %"].map(str::to_owned),
                pairs,
            }),
            figures: None,
        }
    };
    let [compute, collective, whole] = TIMES.map(chart);
    let blocks = vec![Block::Charts(vec![whole]), Block::Charts(vec![compute, collective])];
    Section::new("cases", "Cases", "Average and worst case", blocks).explained(
        "Of each phase the largest time over the ranks is taken, of each time by itself; the worst case is the mean of the largest \
         hundredth of these.",
    )
}

/// The ratios of the cases to those of the first job.
fn changes(report: &JobsReport<'_>, rows: &[NamedRow]) -> Option<Section> {
    let (first, _) = &report.jobs[0];
    let chart = |time, id, title: String, figure: fn(&NamedRow) -> &JobFigure| {
        let rows: Vec<ForestRow> =
            drawn(rows, time).filter_map(|row| forest_row(row.name.clone(), figure(row))).collect();
        let texts: Vec<String> = rows.iter().map(|row| format!("{} {}, {}", row.name, row.text, row.verdict)).collect();
        (!rows.is_empty()).then(|| Chart {
            id,
            label: format!("{title}, against {first}: {}.", texts.join("; ")),
            title,
            height: 74 + 34 * rows.len() as u32,
            spec: Spec::Forest(Forest { title: format!("times that of {first}"), rows }),
            figures: None,
        })
    };
    let both = |(time, [_, average, worst, _], what): (PhaseTime, [&'static str; 4], &str)| {
        let average = chart(time, average, format!("Change of the average of {what}"), |row| &row.row.average);
        let worst = chart(time, worst, format!("Change of its worst 1 %, {}", time.name()), |row| &row.row.worst);
        average.into_iter().chain(worst).collect::<Vec<Chart>>()
    };
    let charts: Vec<Vec<Chart>> = TIMES.into_iter().map(both).filter(|row| !row.is_empty()).collect();
    let blocks: Vec<Block> = charts.into_iter().map(Block::Charts).collect();
    (!blocks.is_empty()).then(|| {
        Section::new("changes", "Changes", "Against the first job", blocks).explained(
            "How many times as long as in the first job: the point is what was measured, the bar its 95 % interval; what lies wholly to \
             the left of the line is shorter, wholly to the right longer, and a bar across the line shows no difference.",
        )
    })
}

/// `None` for a time that fell to 0, which has no place on a logarithmic axis, and for one that is not compared.
fn forest_row(name: String, figure: &JobFigure) -> Option<ForestRow> {
    let ratio = figure.change.map(|change| change + 1.0).filter(|ratio| *ratio > 0.0)?;
    let (low, high) = figure.interval.map_or((None, None), |ends| (Some(ends.low + 1.0), Some(ends.high + 1.0)));
    let verdict = figure.verdict?;
    Some(ForestRow {
        name,
        ratio,
        low: low.filter(|low| *low > 0.0),
        high,
        text: change_words(figure),
        verdict: verdict.name(),
        tone: tone(Some(verdict)).class(),
    })
}

fn distributions(report: &JobsReport<'_>) -> Option<Section> {
    let chart = |(time, [.., id], what): (PhaseTime, [&'static str; 4], &str)| {
        let line = |(name, phases): &(String, JobPhases)| {
            let points = survival(time.durations(&phases.slowest), POINTS).into_iter().filter(|(value, _)| *value > 0);
            let points = points.map(|(value, share)| [value as f64, share]).collect();
            ChartSeries { name: name.clone(), points, ..ChartSeries::default() }
        };
        let series: Vec<ChartSeries> =
            report.jobs.iter().take(DRAWN).map(line).filter(|series| series.points.len() > 1).collect();
        (!series.is_empty()).then(|| Chart {
            id,
            title: format!("Share of phases with at least this time: {what}"),
            label: format!("The share of phases with at least a given time ({what}), on two logarithmic axes."),
            height: 340,
            spec: Spec::Lines(Lines {
                x: Axis::new("takes", AxisScale::Log, AxisUnit::Time),
                y: Axis::new("phases that take at least so long", AxisScale::Log, AxisUnit::Ratio)
                    .between(None, Some(1.0)),
                series,
                marks: Vec::new(),
            }),
            figures: None,
        })
    };
    let [compute, collective, whole] = TIMES.map(chart);
    let beside: Vec<Chart> = compute.into_iter().chain(collective).collect();
    let charts = [whole.into_iter().collect(), beside].into_iter().filter(|row: &Vec<Chart>| !row.is_empty());
    let blocks: Vec<Block> = charts.map(Block::Charts).collect();
    (!blocks.is_empty()).then(|| {
        Section::new("distributions", "Distributions", "How long phases take", blocks).explained(
            "A curve further to the left has shorter phases. The mean of the phases below a share of 1 % is the worst case.",
        )
    })
}

fn tables(rows: &[NamedRow]) -> Section {
    let table = |title: &str, fields: &[&'static Field<NamedRow>]| {
        [Block::OnTerminal(vec![Block::Heading(title.to_owned())]), Block::Table(rows_table(title, fields, rows))]
    };
    let mut blocks = Vec::new();
    blocks.extend(table("Average of the largest time of each phase over the ranks, against the first job", &AVERAGE));
    blocks.extend(table("Worst case: the mean of the largest hundredth of them", &WORST));
    blocks.push(Block::Note(LEGEND.to_owned()));
    Section::new("figures", "Figures", "The figures", blocks)
}

fn basis(report: &JobsReport<'_>) -> Section {
    let mut blocks = Vec::new();
    for (name, phases) in report.jobs {
        blocks.extend(warnings(phases).into_iter().map(|text| Block::warning(format!("{name}: {text}"))));
    }
    blocks.push(Block::Facts(report.jobs.iter().map(|(name, phases)| (name.clone(), words(phases))).collect()));
    if report.jobs.len() > DRAWN {
        blocks.push(Block::Note(format!("Drawn are the first {DRAWN} of {} jobs.", report.jobs.len())));
    }
    Section::new("basis", "Basis", "The compared jobs", vec![Block::OnPage(blocks)])
        .explained("Read this before believing the differences.")
}
