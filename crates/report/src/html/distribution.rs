//! How long detours are, and at which frequencies they come.

use becalm_analyze::picture::{Lengths, Picture};
use becalm_analyze::stats::spectrum::Peak;
use becalm_analyze::summary::Summary;

use super::HtmlTable;
use super::chart::{Axis, Chart, Lines, Mark, Scale, Series, Spec, Unit};
use super::page::{Block, Section};
use crate::Value;
use crate::field::{Field, columns};
use crate::figures::{CPU, CpuRow};
use crate::value::three_digits;

/// Nodes beyond this have no curve of their own.
const CURVES: usize = 8;

pub(super) fn section(summary: &Summary, picture: &Picture) -> Option<Section> {
    if picture.lengths.count() == 0 {
        return None;
    }
    let longest: Vec<i64> = picture.shown.detours.iter().take(picture.shown.top).map(|place| place.duration).collect();
    let mut sets = vec![("all".to_owned(), &picture.lengths, longest.as_slice())];
    if summary.nodes.len() > 1 {
        let nodes = summary.nodes.iter().zip(&picture.node_lengths).take(CURVES);
        sets.extend(nodes.map(|(node, lengths)| (node.doc.node.clone(), lengths, [].as_slice())));
    }
    let curves = |of: fn(u64, u64) -> f64| -> Vec<Series> {
        sets.iter()
            .filter(|(_, lengths, _)| lengths.count() > 0)
            .map(|(name, lengths, longest)| Series {
                name: name.clone(),
                points: curve(lengths, longest, of),
                step: true,
                ..Series::default()
            })
            .collect()
    };
    let row = CpuRow::total(summary);
    let figure = |name: &str| (columns(CPU, &[name])[0].get)(&row);
    let marks = |names: &[&str]| -> Vec<Mark> {
        let mark = |name: &&str| {
            let field = columns(CPU, &[name])[0];
            match (field.get)(&row) {
                Value::Time(ns) if ns > 0 => Some(Mark { at: ns as f64, label: field.title.to_owned() }),
                _ => None,
            }
        };
        names.iter().filter_map(mark).collect()
    };
    let text = format!(
        "Half of the detours take at most {}, 99 of 100 at most {}, 999 of 1,000 at most {}, and the longest {}.",
        figure("median_ns").cell(),
        figure("p99_ns").cell(),
        figure("p999_ns").cell(),
        figure("max_ns").cell()
    );
    let length = || Axis::new("length", Scale::Log, Unit::Time);
    let share = Axis::new("detours at most as long", Scale::Linear, Unit::Ratio).between(Some(0.0), Some(1.0));
    let charts = vec![
        Chart {
            id: "distribution",
            title: "Distribution function".to_owned(),
            label: text.clone(),
            height: 320,
            spec: Spec::Lines(Lines {
                x: length(),
                y: share,
                series: curves(|at_most, all| at_most as f64 / all as f64),
                marks: marks(&["median_ns", "p99_ns"]),
            }),
            figures: None,
        },
        Chart {
            id: "survival",
            title: "Survival function".to_owned(),
            label: format!("The share of detours that take at least a time, on two logarithmic axes. {text}"),
            height: 320,
            spec: Spec::Lines(Lines {
                x: length(),
                y: Axis::new("detours at least as long", Scale::Log, Unit::Ratio).between(None, Some(1.0)),
                series: survival(&sets),
                marks: marks(&["p999_ns", "max_ns"]),
            }),
            figures: None,
        },
    ];
    let reading = "On the left, how many of the detours take at most so long; on the right, how many take at least so long: \
                   there each further line down is ten times as rare, and a straight slope is a heavy tail.";
    Some(Section {
        id: "distribution",
        title: "How long detours are".to_owned(),
        short: "Distribution",
        reading: reading.to_owned(),
        blocks: vec![Block::Text(text), Block::Charts(charts), Block::Table(quantiles(summary))],
    })
}

/// The distribution function; lengths of 0 have no place on a logarithmic axis, but they count.
fn curve(lengths: &Lengths, longest: &[i64], of: fn(u64, u64) -> f64) -> Vec<[f64; 2]> {
    let steps = lengths.steps(longest);
    steps
        .iter()
        .filter(|step| step.length > 0)
        .map(|step| [step.length as f64, of(step.at_most, lengths.count())])
        .collect()
}

/// The survival function P(X >= x): at each length how many are not shorter.
fn survival(sets: &[(String, &Lengths, &[i64])]) -> Vec<Series> {
    let series = sets.iter().filter(|(_, lengths, _)| lengths.count() > 0).map(|(name, lengths, longest)| {
        let mut shorter = 0;
        let mut points = Vec::new();
        for step in lengths.steps(longest) {
            let share = (lengths.count() - shorter) as f64 / lengths.count() as f64;
            if step.length > 0 {
                points.push([step.length as f64, share]);
            }
            shorter = step.at_most;
        }
        Series { name: name.clone(), points, ..Series::default() }
    });
    series.collect()
}

/// Quantiles, as the table of CPUs has them.
fn quantiles(summary: &Summary) -> HtmlTable {
    let names = ["detours", "median_ns", "mean_ns", "p99_ns", "p999_ns", "max_ns"];
    let fields = columns(CPU, &names);
    let mut table = HtmlTable::new("Lengths of all detours", &fields);
    table.row(&fields, &CpuRow::total(summary));
    table.sorts = false;
    table
}

/// The fields of a peak of the spectrum.
const PEAK: &[Field<Peak>] = &[
    Field { name: "label", title: "comes again", get: |row| Value::Text(row.label.clone()) },
    Field { name: "frequency_hz", title: "frequency", get: |row| Value::Rate(row.hz) },
    Field { name: "interval_ns", title: "interval", get: |row| Value::time(1e9 / row.hz) },
];

/// The spectrum, where the run is long enough for one.
pub(super) fn spectrum(summary: &Summary) -> Option<Section> {
    let spectrum =
        summary.spectrum.as_ref().filter(|spectrum| spectrum.points.iter().any(|point| point.power > 0.0))?;
    let fields: Vec<&Field<Peak>> = PEAK.iter().collect();
    let mut peaks = HtmlTable::new("Peaks", &fields);
    spectrum.peaks.iter().for_each(|peak| {
        peaks.row(&fields, peak);
    });
    let text = match spectrum.peaks.iter().max_by(|a, b| a.power.total_cmp(&b.power)) {
        Some(peak) => format!(
            "The highest of {} named peaks: {} ({}).",
            spectrum.peaks.len(),
            peak.label,
            Value::Rate(peak.hz).cell()
        ),
        None => "Nothing periodic was found.".to_owned(),
    };
    let points = spectrum.points.iter().filter(|point| point.power > 0.0 && point.hz > 0.0);
    let chart = Chart {
        id: "spectrum",
        title: String::new(),
        label: format!("The spectrum of the noise. {text}"),
        height: 340,
        spec: Spec::Lines(Lines {
            x: Axis::new("frequency", Scale::Log, Unit::Rate),
            y: Axis::new("power, 1/Hz", Scale::Log, Unit::Plain),
            series: vec![Series { points: points.map(|point| [point.hz, point.power]).collect(), ..Series::default() }],
            marks: spectrum.peaks.iter().map(|peak| Mark { at: peak.hz, label: peak.label.clone() }).collect(),
        }),
        figures: None,
    };
    let mut blocks = vec![Block::Text(text), Block::Charts(vec![chart])];
    if !peaks.is_empty() {
        blocks.push(Block::Table(peaks));
    }
    blocks.push(Block::Note(format!(
        "The power spectral density of the share of time lost, the mean of {} stretches; frequencies {} Hz apart can be told \
         apart. Each point is the highest of those around it.",
        spectrum.segments,
        three_digits(spectrum.resolution_hz)
    )));
    Some(Section {
        id: "spectrum",
        title: "Spectrum".to_owned(),
        short: "Spectrum",
        reading:
            "A peak is something that comes again and again after the same time, the further right the more often; its \
                  higher multiples stand to the right of it."
                .to_owned(),
        blocks,
    })
}
