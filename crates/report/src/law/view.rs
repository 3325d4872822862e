//! The noise law for people.

use becalm_scale::law::Law;
use becalm_units::{Count, plural};

use super::{LawReport, rank_of, row, row_fields};
use crate::Value;
use crate::form::table::Table;
use crate::form::value::{factor, grouped};
use crate::html::{Axis, AxisScale, AxisUnit, Block, Chart, ChartSeries, Lines, Mark, Opening, Page, Section, Spec};
use crate::predict::view::{grade, wide_scale};

/// The note if the linear law does not hold.
const NOT_LINEAR: &str = "the linear law, 1 + p n D/G, holds within 5% only up to n = 1/(10 p); beyond, read the slowdown, \
                          1 + (1 - (1-p)^n) D/G";

/// The meaning of the tolerated figures.
const TOLERANCE_MEANS: &str = "D may be, p may be: what loses as much at these ranks, with all else as it is";

/// The number of steps of a curve from the fewest to the most ranks.
const STEPS: u32 = 64;

/// The law for one noise.
pub(super) fn page(report: &LawReport) -> Page {
    let mut sections = vec![headline(report), slowdowns(report)];
    sections.extend(tolerated(report));
    Page {
        title: "The noise law".to_owned(),
        subtitle: rank_of(report),
        sections,
        foot: vec!["The law is that of D. Tsafrir, ExpCS 2007.".to_owned()],
    }
}

/// The curve of a law from the fewest to the most ranks, in equal logarithmic steps, including the given ranks.
pub(crate) fn curve(law: &Law, ranks: &[u64]) -> Vec<[f64; 2]> {
    let (Some(&fewest), Some(&most)) = (ranks.iter().min(), ranks.iter().max()) else { return Vec::new() };
    let along = |step: u32| {
        let ratio = most as f64 / fewest as f64;
        (fewest as f64 * ratio.powf(f64::from(step) / f64::from(STEPS))).round() as u64
    };
    let mut all: Vec<u64> = (1..STEPS).map(along).chain(ranks.iter().copied()).collect();
    all.sort_unstable();
    all.dedup();
    all.iter().filter_map(|ranks| Some([*ranks as f64, law.at(*ranks).ok()?.slowdown_ratio])).collect()
}

fn headline(report: &LawReport) -> Section {
    let limit = factor(report.law.limit_ratio());
    let rows = report.rows.iter();
    let worst = rows.max_by(|a, b| a.point.slowdown_ratio.total_cmp(&b.point.slowdown_ratio));
    let verdict = worst.map(|row| {
        let (ranks, slowdown) = (row.point.ranks, row.point.slowdown_ratio);
        Block::Verdict {
            tone: grade(slowdown),
            text: format!(
                "At {} {} such a job takes {} times as long.",
                Count::new(ranks),
                plural(ranks, "rank", "ranks"),
                factor(slowdown)
            ),
            basis: format!(
                "Of its phases {} are delayed; no number of ranks is slowed down by more than {limit}.",
                Value::Ratio(row.point.delay_probability).cell(),
            ),
        }
    });
    let noise = format!("{}; no number of ranks is slowed down by more than {limit}", rank_of(report));
    let blocks = vec![Block::OnTerminal(vec![Block::Text(noise)]), Block::OnPage(verdict.into_iter().collect())];
    Section::new("headline", "Summary", "How much longer does such a job take?", blocks)
}

fn slowdowns(report: &LawReport) -> Section {
    let mut blocks: Vec<Block> = chart(report).map(|chart| Block::Charts(vec![chart])).into_iter().collect();
    let table = Table::filled(&row_fields(report), &report.rows);
    blocks.push(Block::Table(table.captioned("The law for each number of ranks")));
    let loses = tolerance(report).map(|loses| Block::Text(format!("{loses}; {TOLERANCE_MEANS}")));
    blocks.push(Block::OnTerminal(loses.into_iter().collect()));
    if report.rows.iter().any(|row| !row.point.valid) {
        let (text, advice) = (NOT_LINEAR.to_owned(), String::new());
        blocks.push(Block::OnPage(vec![Block::Note(text.clone())]));
        blocks.push(Block::OnTerminal(vec![Block::Warning { text, advice }]));
    }
    Section::new("slowdown-by-ranks", "Slowdown", "Slowdown by the number of ranks", blocks)
        .opened(Opening::Gap)
        .explained(
            "1 + (1 - (1-p)^n) D/G: each phase waits for the latest of n ranks. The linear law, 1 + p n D/G, is where the curve \
             begins.",
        )
}

fn chart(report: &LawReport) -> Option<Chart> {
    let law = &report.law;
    let ranks: Vec<u64> = report.rows.iter().map(|row| row.point.ranks).collect();
    let points = curve(law, &ranks);
    if points.len() < 2 {
        return None;
    }
    let limit = law.limit_ratio();
    let linear = |point: &[f64; 2]| Some([point[0], law.at(point[0] as u64).ok()?.linear_ratio]);
    // Beyond its limit the linear law is not valid.
    let linear: Vec<[f64; 2]> = points.iter().filter_map(linear).take_while(|point| point[1] <= limit).collect();
    let highest = points.iter().chain(&linear).map(|point| point[1]).fold(1.0, f64::max);
    let valid_up_to = 0.1 / law.probability();
    let inside = points[0][0] < valid_up_to && valid_up_to < points[points.len() - 1][0];
    let mark = Mark { at: valid_up_to, label: "linear law within 5 %".to_owned() };
    let series = [
        ChartSeries { name: "slowdown".to_owned(), points, ..ChartSeries::default() },
        ChartSeries { name: "linear law".to_owned(), points: linear, dashed: true, ..ChartSeries::default() },
    ];
    Some(Chart {
        id: "slowdown",
        title: String::new(),
        label: format!("The slowdown by the number of ranks, which stays below {}.", factor(limit)),
        height: 340,
        spec: Spec::Lines(Lines {
            x: Axis::new("ranks", AxisScale::Log, AxisUnit::Ranks),
            y: Axis::new("slowdown", wide_scale(1.0, highest), AxisUnit::Factor).between(Some(1.0), None),
            series: series.into_iter().filter(|series| series.points.len() > 1).collect(),
            marks: inside.then_some(mark).into_iter().collect(),
        }),
        figures: None,
    })
}

fn tolerated(report: &LawReport) -> Option<Section> {
    let fields = [&row::RANKS, &row::TOLERABLE_DELAY_NS, &row::TOLERABLE_PROBABILITY];
    let mut table = Table::filled(&fields, &report.rows).captioned("What may be at each number of ranks");
    table.note = format!("{TOLERANCE_MEANS}.");
    let blocks = vec![Block::OnPage(vec![Block::Text(tolerance(report)?), Block::Table(table)])];
    let title = format!("Tolerable delays if a job may lose {} of its time", report.tolerated?);
    Some(Section::new("tolerance", "Tolerance", title, blocks))
}

/// The number of ranks up to which a job stays within its tolerance.
fn tolerance(report: &LawReport) -> Option<String> {
    let lost = report.tolerated?;
    let ranks = match report.law.tolerable_ranks(lost.ratio()) {
        None => "on any number of ranks".to_owned(),
        Some(ranks) => format!("up to {} {}", grouped(ranks), plural(ranks, "rank", "ranks")),
    };
    Some(format!("a job loses no more than {lost} of its time {ranks}"))
}
