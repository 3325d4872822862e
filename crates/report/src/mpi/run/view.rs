//! A parallel benchmark for people; the page has Figures 6 and 7 of De et al. 2009, the largest compute time and the largest total time of each
//! phase, and the latest ranks.

use becalm_analyze::job::{JobPhases, RankPhases};
use becalm_analyze::phases::{
    LatestInParts, LatestRank, PhaseFigures, PhaseSpan, histogram, latest_in_parts, spans, survival,
};

use super::{PhaseRow, RANK, ROW, heads, job, job_words, phase_row, rank_blocks, rows, series_lines, warnings};
use crate::Value;
use crate::form::field::Field;
use crate::form::section::{Block, Grade, Page, Section, Tile};
use crate::form::sheet::Form;
use crate::form::table::Table;
use crate::form::value::{factor, grouped, time};
use crate::html::{Axis, AxisScale, AxisUnit, BarPair, Chart, ChartSeries, Lines, Mark, PairedBars, Spec, Surface};
use crate::predict::view::{grade, wide_scale};

/// The most parts of a time series: longer series are drawn as the shortest and the longest phase of each part.
const PARTS: usize = 1_000;
/// Bins of a histogram.
const BINS: usize = 80;
/// Points of a survival function.
const POINTS: usize = 200;
/// The parts of the map of the latest ranks.
const COLUMNS: usize = 50;
/// The most ranks in that map and in the bars.
const RANKS: usize = 32;
/// The most ranks in the table.
const TABLE: usize = 1_024;

/// A job for people.
pub(super) fn page(report: &JobPhases, form: Form) -> Page {
    let job = job(report);
    let mut sections = vec![terminal(report, form), headline(report), series(report)];
    sections.extend(distribution(report));
    // Without a compute phase no rank is waited for.
    if job.grain_ns.get() > 0 {
        sections.extend(latest(report));
    }
    sections.push(ranks(report));
    sections.push(machine(report));
    Page {
        title: "The phases of a parallel job".to_owned(),
        subtitle: job_words(report),
        sections,
        foot: vec!["The benchmark and its figures are those of P. De et al., IPDPS 2009.".to_owned()],
    }
}

/// The job, its times and its ranks, for a terminal.
fn terminal(report: &JobPhases, form: Form) -> Section {
    let mut blocks = vec![Block::facts(heads(report))];
    let warnings = warnings(report);
    if !warnings.is_empty() {
        blocks.push(Block::gap());
    }
    blocks.extend(warnings.into_iter().map(Block::warning));
    let mut fields = vec![
        &phase_row::WHAT,
        &phase_row::MEANING,
        &phase_row::MEAN_NS,
        &phase_row::MEDIAN_NS,
        &phase_row::WORST_NS,
        &phase_row::MIN_NS,
        &phase_row::MAX_NS,
    ];
    if job(report).grain_ns.get() > 0 {
        fields.push(&phase_row::SLOWDOWN_RATIO);
    }
    blocks.push(Block::gap());
    blocks.push(Block::Table(Table::filled(&fields, &rows(report))));
    blocks.push(Block::Lines(series_lines(report, form)));
    blocks.extend(rank_blocks(report));
    Section::new("job", "Job", "The job", vec![Block::OnTerminal(blocks)])
}

fn headline(report: &JobPhases) -> Section {
    Section::new("headline", "Summary", "How long do its phases take?", vec![Block::OnPage(headline_blocks(report))])
}

fn headline_blocks(report: &JobPhases) -> Vec<Block> {
    let rows = rows(report);
    let [Some(compute), Some(collective), Some(total)] =
        ["qt", "bt", "qtbt"].map(|what| rows.iter().find(|row| row.what == what))
    else {
        return vec![Block::Text("Nothing is here: the job ended before its last phase.".to_owned())];
    };
    let grain = job(report).grain_ns.get();
    let figures = &total.figures;
    let (tone, text) = match grain {
        0 => (Grade::Plain, format!("A collective takes {} on the average.", Value::time(figures.mean_ns).cell())),
        grain => {
            let slowdown = figures.mean_ns / grain as f64;
            let times = factor(slowdown);
            (grade(slowdown), format!("A phase takes {times} times as long as its work on the average."))
        }
    };
    let basis = format!(
        "The latest rank counts. Of {} phases the worst hundredth takes {} on the average, and the longest {}.",
        grouped(report.slowest.total.len() as u64),
        Value::time(figures.worst_ns).cell(),
        time(figures.max_ns)
    );
    let fields: Vec<&Field<PhaseRow>> = ROW.iter().collect();
    let tiles = [("Compute, qt", compute), ("Collective, bt", collective), ("Both, qtbt", total)];
    let mut blocks = vec![
        Block::Verdict { tone, text, basis },
        Block::Tiles(tiles.map(|(name, row)| tile(name, &row.figures)).to_vec()),
        Block::Table(Table::filled(&fields, &rows).captioned("Phases, by the slowest rank of each")),
    ];
    let warnings = warnings(report).len();
    if warnings > 0 {
        let what = becalm_units::plural(warnings as u64, "warning limits", "warnings limit");
        blocks.push(Block::Note(format!("{warnings} {what} what these numbers say: see the end of the page.")));
    }
    blocks
}

fn tile(name: &str, figures: &PhaseFigures) -> Tile {
    Tile {
        name: name.to_owned(),
        figure: Value::time(figures.mean_ns).cell(),
        detail: format!("worst 1 % {}, longest {}", Value::time(figures.worst_ns).cell(), time(figures.max_ns)),
        tone: Grade::Plain,
    }
}

fn series(report: &JobPhases) -> Section {
    let slowest = &report.slowest;
    let all = [
        ("compute", "Largest compute time over the ranks, qt", &slowest.compute),
        ("total", "Largest total time over the ranks, qtbt", &slowest.total),
        ("collective", "Largest time in the collective over the ranks, bt", &slowest.collective),
    ];
    let charts = all.into_iter().filter_map(|(id, title, series)| series_chart(id, title, series));
    let mut charts: Vec<Chart> = charts.collect();
    // The paper's two are side by side, the third is below.
    let below = charts.split_off(charts.len().min(2));
    let each = spans(&slowest.total, PARTS).first().map_or(1, |span| span.phases);
    let mut blocks: Vec<Block> = [charts, below].into_iter().filter(|row| !row.is_empty()).map(Block::Charts).collect();
    if each > 1 {
        let text = format!("The shortest and the longest of every {} phases.", grouped(each));
        blocks.push(Block::Note(text));
    }
    Section::new("series", "Series", "Phase by phase", vec![Block::OnPage(blocks)]).explained(
        "Each is the largest over the ranks, by itself: the rank that computes longest is the one that waits least in the \
         collective.",
    )
}

fn series_chart(id: &'static str, title: &str, durations: &[i64]) -> Option<Chart> {
    let spans = spans(durations, PARTS);
    if spans.len() < 2 {
        return None;
    }
    let line = |name: &str, value: fn(&PhaseSpan) -> i64| ChartSeries {
        name: name.to_owned(),
        points: spans.iter().map(|span| [span.first as f64, value(span) as f64]).collect(),
        ..ChartSeries::default()
    };
    let parts = spans.iter().any(|span| span.phases > 1);
    let mut series = vec![line(if parts { "longest" } else { "" }, |span| span.max_ns)];
    if parts {
        series.push(line("shortest", |span| span.min_ns));
    }
    let ends = spans.iter().fold((i64::MAX, 0), |(low, high), span| (low.min(span.min_ns), high.max(span.max_ns)));
    let scale = wide_scale(ends.0 as f64, ends.1 as f64);
    Some(Chart {
        id,
        title: title.to_owned(),
        label: format!("{title}: from {} to {}, against the number of the phase.", time(ends.0), time(ends.1)),
        height: 300,
        spec: Spec::Lines(Lines {
            x: Axis::new("phase", AxisScale::Linear, AxisUnit::Count),
            y: Axis::new("takes", scale, AxisUnit::Time),
            series,
            marks: Vec::new(),
        }),
        figures: None,
    })
}

fn distribution(report: &JobPhases) -> Option<Section> {
    let slowest = &report.slowest;
    let found = histogram(&slowest.total, BINS)?;
    let beyond = match found.beyond {
        0 => "Every phase is in the histogram.".to_owned(),
        beyond => format!("{} phases are longer than is drawn: {} and more.", grouped(beyond), time(found.end_ns)),
    };
    let text = format!("The whole phase, qtbt, of the slowest rank. {beyond}");
    let bins = found.bins.iter().map(|(from, count)| [*from as f64, *count as f64]);
    let points = bins.chain([[found.end_ns as f64, 0.0]]).collect();
    let counts = Chart {
        id: "histogram",
        title: "Histogram of qtbt".to_owned(),
        label: text.clone(),
        height: 300,
        spec: Spec::Lines(Lines {
            x: Axis::new("a phase takes", AxisScale::Linear, AxisUnit::Time),
            y: Axis::new("phases", AxisScale::Linear, AxisUnit::Count).between(Some(0.0), None),
            series: vec![ChartSeries { points, step: true, ..ChartSeries::default() }],
            marks: Vec::new(),
        }),
        figures: None,
    };
    let blocks = vec![Block::Charts(vec![counts, survival_chart(report)]), Block::Note(text)];
    let section = Section::new("distribution", "Distribution", "How long phases take", vec![Block::OnPage(blocks)])
        .explained(
            "On the left where most phases lie, on the right how many take at least so long; below a share of 1 % lie the \
             phases whose mean is the worst case.",
        );
    Some(section)
}

fn survival_chart(report: &JobPhases) -> Chart {
    let slowest = &report.slowest;
    let line = |name: &str, durations: &[i64]| ChartSeries {
        name: name.to_owned(),
        // Zero has no place on a logarithmic axis.
        points: survival(durations, POINTS)
            .into_iter()
            .filter(|(value, _)| *value > 0)
            .map(|(value, share)| [value as f64, share])
            .collect(),
        ..ChartSeries::default()
    };
    let series =
        [line("qt", &slowest.compute), line("qtbt", &slowest.total), line("bt", &slowest.collective)].into_iter();
    Chart {
        id: "survival",
        title: "Phases that take at least so long".to_owned(),
        label: "The share of phases that take at least a time, on two logarithmic axes.".to_owned(),
        height: 300,
        spec: Spec::Lines(Lines {
            x: Axis::new("takes", AxisScale::Log, AxisUnit::Time),
            y: Axis::new("phases that take at least so long", AxisScale::Log, AxisUnit::Ratio).between(None, Some(1.0)),
            series: series.filter(|series| series.points.len() > 1).collect(),
            marks: Vec::<Mark>::new(),
        }),
        figures: None,
    }
}

fn latest(report: &JobPhases) -> Option<Section> {
    let found = latest_in_parts(&report.slowest, job(report).ranks, COLUMNS);
    let phases = report.slowest.latest.len();
    let first = found.ranks.first().filter(|_| phases > 0)?;
    let shares = |of_rank: &LatestRank| {
        [of_rank.phases() as f64 / phases as f64, of_rank.worst as f64 / found.worst.max(1) as f64]
    };
    let [all, worst] = shares(first).map(|share| Value::Share(share).cell());
    let even = 1.0 / f64::from(job(report).ranks.max(1));
    let text = format!(
        "Rank {} was the latest in {worst} of the worst hundredth of the phases, and in {all} of all; with all ranks alike each would \
         be in {}.",
        first.rank,
        Value::Share(even).cell()
    );
    let pair = |of_rank: &LatestRank| BarPair {
        name: format!("rank {}", of_rank.rank),
        values: shares(of_rank),
        texts: shares(of_rank).map(|share| Value::Share(share).cell()),
    };
    let pairs: Vec<BarPair> = found.ranks.iter().take(RANKS).map(pair).collect();
    let chart = Chart {
        id: "latest-ranks",
        title: "Share of the phases with this rank as the latest".to_owned(),
        label: text.clone(),
        height: 80 + 40 * pairs.len() as u32,
        spec: Spec::Pairs(PairedBars {
            x: Axis::new("", AxisScale::Linear, AxisUnit::Ratio).between(Some(0.0), None),
            names: ["of all phases", "of the worst hundredth"].map(str::to_owned),
            pairs,
        }),
        figures: None,
    };
    let mut charts = vec![chart];
    charts.extend(latest_map(&found));
    let mut blocks = vec![Block::Text(text), Block::Charts(charts)];
    if found.ranks.len() > RANKS {
        let all = grouped(found.ranks.len() as u64);
        blocks.push(Block::Note(format!("The {RANKS} ranks of {all} that were the latest most often.")));
    }
    let section = Section::new("latest", "Latest rank", "The latest ranks", vec![Block::OnPage(blocks)]).explained(
        "The rank that computed longest, for which the others waited; of several the lowest. A rank that stands out among \
         the worst phases has noise of its own.",
    );
    Some(section)
}

/// How often each rank was the latest, in each part of the run.
fn latest_map(found: &LatestInParts) -> Option<Chart> {
    let shown = || found.ranks.iter().take(RANKS);
    let differ = shown().flat_map(|of_rank| &of_rank.parts).any(|count| *count != found.ranks[0].parts[0]);
    (found.first.len() > 1 && differ).then(|| Chart {
        id: "latest-map",
        title: "In which phases".to_owned(),
        label: "How often each rank was the latest in each part of the run.".to_owned(),
        height: 100 + 26 * shown().count().max(2) as u32,
        spec: Spec::Surface(Surface {
            title: "phases with it as the latest".to_owned(),
            unit: AxisUnit::Count,
            scale: AxisScale::Linear,
            column_title: "from phase".to_owned(),
            columns: found.first.iter().map(|first| grouped(*first)).collect(),
            rows: shown().map(|of_rank| format!("rank {}", of_rank.rank)).collect(),
            cells: shown().map(|of_rank| of_rank.parts.iter().map(|count| Some(*count as f64)).collect()).collect(),
        }),
        figures: None,
    })
}

fn ranks(report: &JobPhases) -> Section {
    let fields: Vec<&Field<RankPhases>> = RANK.iter().collect();
    let mut table = Table::filled(&fields, report.ranks.iter().take(TABLE)).captioned("Ranks");
    if report.ranks.len() > TABLE {
        table.note = format!("The first {TABLE} of {} ranks.", grouped(report.ranks.len() as u64));
    }
    Section::new("ranks", "Ranks", "The ranks", vec![Block::OnPage(vec![Block::Table(table)])])
}

fn machine(report: &JobPhases) -> Section {
    let mut blocks: Vec<Block> = warnings(report).into_iter().map(Block::warning).collect();
    blocks.push(Block::facts(heads(report)));
    Section::new("machine", "Machine", "Machines, clocks and losses", vec![Block::OnPage(blocks)])
        .explained("Read this before believing the numbers.")
}
