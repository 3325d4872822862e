//! The page of the noise law.

use becalm_scale::law::Law;
use becalm_units::{RankCount, plural};

use super::{LawReport, TOLERANCE_MEANS, rank_of, row, row_fields};
use crate::Value;
use crate::form::table::Table;
use crate::form::value::{factor, grouped};
use crate::html::{
    Axis, AxisScale, AxisUnit, Block, Chart, ChartSeries, Lines, Mark, Opening, Page, Section, Spec, foot, sentence,
};
use crate::predict::html::{grade, wide_scale};

/// In how many steps a curve goes from the fewest to the most ranks.
const STEPS: u32 = 64;

/// The page of the law for one noise, made by `program`: `becalm 0.1.0`.
pub(super) fn page(report: &LawReport, program: &str) -> Page {
    let mut sections = vec![headline(report), slowdowns(report)];
    sections.extend(tolerated(report));
    Page {
        title: "What the noise law says".to_owned(),
        subtitle: rank_of(report),
        sections,
        foot: foot(format!("Made by {program}. The law is that of D. Tsafrir, ExpCS 2007.")),
    }
}

/// The curve of a law from the fewest to the most ranks, in equal steps of their logarithm, and with the ranks that were asked for.
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
    let rows = report.rows.iter();
    let worst = rows.max_by(|a, b| a.point.slowdown_ratio.total_cmp(&b.point.slowdown_ratio));
    let mut blocks = Vec::new();
    if let Some(row) = worst {
        let (ranks, slowdown) = (row.point.ranks, row.point.slowdown_ratio);
        blocks.push(Block::Verdict {
            tone: grade(slowdown),
            text: format!(
                "At {} {} such a job takes {} times as long.",
                RankCount::new(ranks),
                plural(ranks, "rank", "ranks"),
                factor(slowdown)
            ),
            basis: format!(
                "Of its phases {} are delayed; no number of ranks is slowed down by more than {}.",
                Value::Ratio(row.point.delay_probability).cell(),
                factor(report.law.limit_ratio())
            ),
        });
    }
    Section {
        opening: Opening::None,
        id: "headline",
        title: "How much longer does such a job take?".to_owned(),
        short: "Summary",
        reading: String::new(),
        blocks,
    }
}

fn slowdowns(report: &LawReport) -> Section {
    let fields = row_fields(report);
    let mut table = Table::new(&fields).captioned("The law for each number of ranks");
    report.rows.iter().for_each(|row| {
        table.row(&fields, row);
    });
    let mut blocks: Vec<Block> = chart(report).map(|chart| Block::Charts(vec![chart])).into_iter().collect();
    blocks.push(Block::Table(table));
    if report.rows.iter().any(|row| !row.point.valid) {
        blocks.push(Block::Note(sentence(super::NOT_LINEAR)));
    }
    Section {
        opening: Opening::None,
        id: "slowdown-by-ranks",
        title: "Slowdown by the number of ranks".to_owned(),
        short: "Slowdown",
        reading: "1 + (1 - (1-p)^n) D/G: each phase waits for the latest of n ranks. The linear law, 1 + p n D/G, is where the curve \
                  begins."
            .to_owned(),
        blocks,
    }
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
    // Beyond the limit the linear law says nothing.
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
    let lost = report.tolerated?;
    let ranks = match report.law.tolerable_ranks(lost.ratio()) {
        None => "on any number of ranks".to_owned(),
        Some(ranks) => format!("up to {} {}", grouped(ranks), plural(ranks, "rank", "ranks")),
    };
    let fields = [&row::RANKS, &row::TOLERABLE_DELAY_NS, &row::TOLERABLE_PROBABILITY];
    let mut table = Table::new(&fields).captioned("What may be at each number of ranks");
    report.rows.iter().for_each(|row| {
        table.row(&fields, row);
    });
    table.note = format!("{TOLERANCE_MEANS}.");
    Some(Section {
        opening: Opening::None,
        id: "tolerance",
        title: format!("What a job stands that may lose {lost} of its time"),
        short: "Tolerance",
        reading: String::new(),
        blocks: vec![Block::Text(format!("A job loses no more than {lost} of its time {ranks}.")), Block::Table(table)],
    })
}
