//! A study as a page for a browser.

use becalm_report::compare::forest_chart;
use becalm_report::form::field::Field;
use becalm_report::form::table::Table;
use becalm_report::html::{
    Axis, AxisScale, AxisUnit, Block, Chart, ChartSeries, Grade, Lines, Opening, Page, Section, Spec,
};
use becalm_report::predict::{intervals, job, row};
use becalm_report::record::figures::source;

use super::against::{self, AGAINST, AgainstRow};
use super::series;
use super::{
    FIGURES, StudyEntry, StudyFigures, StudyReport, answer, curves, entries, grains, grains_in_words, heading, lines,
    missing, most_ranks,
};
use crate::study::analysis::mean_slowdown;

/// How many rows a table of sources has at most.
const ROWS: usize = 100;

/// Above this slowdown their axis is logarithmic, as that of the terminal is.
const LINEAR_UP_TO: f64 = 10.0;

/// The axis of slowdowns ends no lower.
const SMALLEST: f64 = 1.01;

/// The page of a study, made by `program`: `becalm 0.1.0`.
pub(super) fn page(report: &StudyReport<'_>, program: &str) -> Page {
    let entries = entries(report);
    let recorded: Vec<&StudyEntry<'_>> = entries.iter().filter(|entry| entry.studied.is_some()).collect();
    let when = report.doc.begun.strftime("%Y-%m-%d %H:%M:%S UTC");
    Page {
        title: format!("{}: what makes it quieter", report.doc.node),
        subtitle: format!("A study of configurations \u{b7} {when}"),
        sections: [
            Some(headline(report, &entries, &recorded)),
            against_baseline(&entries),
            Some(slowdowns(report, &recorded)),
            series::section(&recorded),
            Some(sources(&recorded)),
            Some(how(report, &entries)),
        ]
        .into_iter()
        .flatten()
        .collect(),
        foot: vec![
            format!("Made by {program}."),
            "Drawn with Apache ECharts 6.1.0, which is part of this file; nothing is loaded from elsewhere.".to_owned(),
        ],
    }
}

fn headline(report: &StudyReport<'_>, rows: &[StudyEntry<'_>], recorded: &[&StudyEntry<'_>]) -> Section {
    let mut blocks = Vec::new();
    if let Some(answer) = answer(report) {
        let mut text = answer;
        if let Some(first) = text.get_mut(..1) {
            first.make_ascii_uppercase();
        }
        let basis = heading(report).map(|(_, text)| text).join("; ");
        blocks.push(Block::Verdict { tone: Grade::Plain, text: format!("{text}."), basis: format!("{basis}.") });
    }
    let caption = match most_ranks(report) {
        Some(ranks) => {
            format!("The configurations; slowdown, and its change of the loss against the baseline, at {ranks} ranks")
        }
        None => "The configurations".to_owned(),
    };
    let fields: Vec<&Field<StudyFigures>> = FIGURES.iter().collect();
    let mut table = Table::new(&fields).captioned(&caption);
    recorded.iter().for_each(|row| {
        table.row(&fields, &row.figures);
    });
    blocks.push(Block::Table(table));
    let why = rows.iter().filter_map(|row| missing(report, row.doc, row.studied));
    blocks.extend(why.map(|text| Block::Warning { text: format!("{text}."), advice: String::new() }));
    Section {
        opening: Opening::None,
        id: "headline",
        title: "Which configuration gains what?".to_owned(),
        short: "Summary",
        reading: String::new(),
        blocks,
    }
}

/// Which configurations are shown to differ; none where none was compared.
fn against_baseline(entries: &[StudyEntry<'_>]) -> Option<Section> {
    let rows = against::rows(entries);
    let mut blocks = Vec::new();
    if !rows.is_empty() {
        let named = rows.iter().map(|row| (row.name.clone(), &row.noise));
        let chart = forest_chart("against", "Change of the noise against the baseline", named);
        blocks.extend(chart.map(|chart| Block::Charts(vec![chart])));
        let fields: Vec<&Field<AgainstRow>> = AGAINST.iter().collect();
        let mut table = Table::new(&fields).captioned("Noise against the baseline");
        for row in &rows {
            table.row(&fields, row);
        }
        blocks.push(Block::Table(table));
    }
    blocks.extend(against::remarks(entries).into_iter().map(|text| Block::Text(format!("{text}."))));
    let single = against::single_turn_remark(entries);
    blocks.extend(single.map(|text| Block::Warning { text: format!("{text}."), advice: String::new() }));
    if blocks.is_empty() {
        return None;
    }
    if !rows.is_empty() {
        blocks.push(Block::Note(format!("{}.", against::legend(&rows))));
    }
    Some(Section {
        opening: Opening::None,
        id: "against",
        title: "Is it more than chance?".to_owned(),
        short: "Against the baseline",
        reading: "How many times as much noise there is under each configuration as under the baseline: the point is what was measured, \
                  the bar its 95 % interval; what lies wholly to the left of the line has less, wholly to the right more, and a bar across \
                  the line shows no difference."
            .to_owned(),
        blocks,
    })
}

fn slowdowns(report: &StudyReport<'_>, recorded: &[&StudyEntry<'_>]) -> Section {
    let mut fields = vec![&row::RANKS];
    if grains(report).len() > 1 {
        fields.push(&row::GRAIN_NS);
    }
    fields.extend([
        &row::SLOWDOWN_RATIO,
        &row::SLOWDOWN_LOW,
        &row::SLOWDOWN_HIGH,
        &row::EXPECTED_RATIO,
        &row::WORST_PHASE_NS,
    ]);
    let mut table = Table::named("configuration", &fields).captioned("Predicted slowdown");
    let studied = || recorded.iter().filter_map(|row| Some((row, row.studied?)));
    let meaning = studied().find_map(|(_, studied)| intervals::meaning(&studied.rows, report.question.replicas));
    let open = studied().flat_map(|(row, studied)| {
        let sentences = intervals::open(&studied.rows).chain(intervals::together(&studied.rows));
        sentences.map(|text| format!(" {}, {text}.", row.doc.name)).collect::<Vec<_>>()
    });
    table.note = meaning.map(|text| text + ".").into_iter().chain(open).collect();
    let mut series = Vec::new();
    let mut highest = 1.0_f64;
    let mut warnings = Vec::new();
    for row in recorded {
        let Some(studied) = row.studied else { continue };
        for line in lines(studied, &report.question) {
            table.named_row(row.doc.name.clone(), &fields, &line);
        }
        for (name, rows) in curves(&row.doc.name, studied) {
            let points: Vec<[f64; 2]> =
                rows.iter().filter_map(|row| Some([row.ranks as f64, mean_slowdown(row)?])).collect();
            highest = points.iter().map(|point| point[1]).fold(highest, f64::max);
            series.push(ChartSeries { name, points, dots: true, ..ChartSeries::default() });
        }
        warnings.extend(studied.warnings.iter().map(|warning| Block::Warning {
            text: format!("{}: {}", row.doc.name, warning.message),
            advice: warning.advice.clone(),
        }));
    }
    let chart = Chart {
        id: "slowdown",
        title: "Slowdown against ranks".to_owned(),
        label: format!(
            "Predicted slowdown against the number of ranks, a curve for each configuration. {}",
            answer(report).unwrap_or_default()
        ),
        height: 360,
        spec: Spec::Lines(Lines {
            x: Axis::new("ranks", AxisScale::Log, AxisUnit::Ranks),
            y: Axis::new(
                "slowdown",
                if highest > LINEAR_UP_TO { AxisScale::Log } else { AxisScale::Linear },
                AxisUnit::Factor,
            )
            .between(Some(1.0), (highest <= SMALLEST).then_some(SMALLEST)),
            series,
            marks: Vec::new(),
        }),
        figures: None,
    };
    let mut blocks = vec![Block::Charts(vec![chart]), Block::Table(table)];
    blocks.extend(warnings);
    blocks.push(Block::Note(format!("{}.", job(&report.question))));
    Section {
        opening: Opening::None,
        id: "scale",
        title: "What it costs at scale".to_owned(),
        short: "At scale",
        reading: format!(
            "How many times as long a job takes whose ranks all wait for each other after every {} of work, each rank with \
             the noise of one of the measured CPUs.",
            grains_in_words(report)
        ),
        blocks,
    }
}

fn sources(recorded: &[&StudyEntry<'_>]) -> Section {
    let fields = [
        &source::SOURCE,
        &source::KIND,
        &source::COUNT,
        &source::MIN_NS,
        &source::MAX_NS,
        &source::MEAN_NS,
        &source::STDDEV_NS,
        &source::TOTAL_NS,
        &source::SHARE_RATIO,
        &source::TIME_RATIO,
    ];
    let table = |row: &&StudyEntry<'_>| {
        let mut table = Table::new(&fields).captioned(&row.doc.name);
        let sources = row.studied.map_or(&[][..], |studied| &studied.pooled.sources);
        for source in sources.iter().take(ROWS) {
            table.row(&fields, source);
        }
        Block::Table(table)
    };
    Section {
        opening: Opening::None,
        id: "sources",
        title: "Sources".to_owned(),
        short: "Sources",
        reading: "Who took the time under each configuration.".to_owned(),
        blocks: recorded.iter().map(table).collect(),
    }
}

fn how(report: &StudyReport<'_>, rows: &[StudyEntry<'_>]) -> Section {
    let mut facts: Vec<(String, String)> = heading(report).map(|(label, text)| (label.to_owned(), text)).to_vec();
    for row in rows {
        facts.push((row.doc.name.clone(), format!("{}: {}", row.doc.what, row.doc.command.join(" "))));
    }
    Section {
        opening: Opening::None,
        id: "how",
        title: "How it was measured".to_owned(),
        short: "Method",
        reading: String::new(),
        blocks: vec![Block::Facts(facts)],
    }
}
