//! The lengths of interruptions, and their frequencies.

use becalm_analyze::picture::{LengthStep, Lengths, Picture};
use becalm_analyze::summary::Summary;
use becalm_stats::spectrum::Peak;
use becalm_units::counted;

use crate::Value;
use crate::catalogue;
use crate::form::field::{Field, fields};
use crate::form::figure::{Rate, Ratio, Time};
use crate::form::section::{Block, Section};
use crate::form::table::Table;
use crate::form::value::{three_digits, time};
use crate::html::{Axis, AxisScale, AxisUnit, Chart, ChartSeries, Lines, Mark, Spec};
use crate::record::figures::{CpuRow, cpu};
use crate::record::html::detours;

/// Nodes beyond this number have no curve.
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
    let row = CpuRow::total(summary);
    let text = format!(
        "Half of the interruptions take at most {}, 99 % at most {}, 99.9 % at most {}, and the longest takes {}.",
        cpu::MEDIAN_NS.cell(&row),
        cpu::P99_NS.cell(&row),
        cpu::P999_NS.cell(&row),
        cpu::MAX_NS.cell(&row)
    );
    let shorter = Lines {
        x: Axis::new("length", AxisScale::Log, AxisUnit::Time),
        y: Axis::new("share at most as long", AxisScale::Linear, AxisUnit::Ratio).between(Some(0.0), Some(1.0)),
        series: distribution(&sets),
        marks: marks(&row, [&cpu::MEDIAN_NS, &cpu::P99_NS]),
    };
    let longer = Lines {
        x: Axis::new("length", AxisScale::Log, AxisUnit::Time),
        y: Axis::new("share at least as long", AxisScale::Log, AxisUnit::Ratio).between(None, Some(1.0)),
        series: survival(&sets),
        marks: marks(&row, [&cpu::P999_NS, &cpu::MAX_NS]),
    };
    let charts = vec![
        detours::by_length(summary, picture),
        Chart {
            id: "distribution",
            title: "At most as long (distribution function)".to_owned(),
            label: text.clone(),
            height: 320,
            spec: Spec::Lines(shorter),
            figures: Some(curves_as_table(&picture.lengths, &longest)),
        },
        Chart {
            id: "survival",
            title: "At least as long (survival function)".to_owned(),
            label: format!("The share of interruptions that take at least a time, on two logarithmic axes. {text}"),
            height: 320,
            spec: Spec::Lines(longer),
            figures: None,
        },
    ];
    let reading = "In the first chart a flat stretch is many interruptions of one length, such as ticks, and a steep start a few \
                   exceptions. The second shows the share that takes at most a time, the third the share that takes at least a time: \
                   each line further down is ten times rarer, and a straight slope is a heavy tail.";
    let blocks = vec![Block::Text(text), Block::Charts(charts), Block::Table(quantiles(summary))];
    let blocks = vec![Block::OnPage(blocks)];
    Some(Section::new("distribution", "Lengths", "How long interruptions are", blocks).explained(reading))
}

/// The share of detours not longer than each length, one curve per set.
fn distribution(sets: &[(String, &Lengths, &[i64])]) -> Vec<ChartSeries> {
    sets.iter()
        .filter(|(_, lengths, _)| lengths.count() > 0)
        .map(|(name, lengths, longest)| ChartSeries {
            name: name.clone(),
            points: curve(lengths, longest, |at_most, all| at_most as f64 / all as f64),
            step: true,
            ..ChartSeries::default()
        })
        .collect()
}

/// Marks for lengths on the axis, if they exist.
fn marks(row: &CpuRow, fields: [&Field<CpuRow>; 2]) -> Vec<Mark> {
    let mark = |field: &Field<CpuRow>| match (field.get)(row) {
        Value::Time(ns) if ns > 0 => Some(Mark { at: ns as f64, label: field.title.to_owned() }),
        _ => None,
    };
    apart(fields.into_iter().filter_map(mark).collect())
}

/// The shares of detours at which the table shows both curves.
const SHARES: [f64; 13] = [0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 0.999, 0.999_9, 0.999_99, 1.0];

/// A point of both curves.
#[derive(Clone, Copy, PartialEq, Debug)]
struct CurvePoint {
    length_ns: i64,
    at_most: f64,
    at_least: f64,
    count: u64,
}

fields! {
    POINT, point: CurvePoint {
        LENGTH_NS = catalogue::LENGTH_NS, |row| Time(row.length_ns);
        AT_MOST_RATIO = "at_most_ratio", "at most as long", |row| Ratio(row.at_most);
        AT_LEAST_RATIO = "at_least_ratio", "at least as long", |row| Ratio(row.at_least);
        AT_LEAST = "at_least", "count", |row| row.count;
    }
}

/// Both curves as a table, for those who cannot see them: where they pass certain shares, at lengths that occurred.
fn curves_as_table(lengths: &Lengths, longest: &[i64]) -> Table {
    let fields: Vec<&Field<CurvePoint>> = POINT.iter().collect();
    let mut table = Table::new(&fields).captioned("Both functions as figures");
    points(&lengths.steps(longest), lengths.count()).iter().for_each(|point| {
        table.row(&fields, point);
    });
    table.note = "count: interruptions at least as long. Each length is one that occurred.".to_owned();
    table
}

fn points(steps: &[LengthStep], count: u64) -> Vec<CurvePoint> {
    let mut points: Vec<CurvePoint> = Vec::new();
    for share in SHARES {
        let at = steps.partition_point(|step| (step.at_most as f64) < share * count as f64);
        let Some(step) = steps.get(at.min(steps.len().saturating_sub(1))) else { continue };
        let shorter = at.checked_sub(1).map_or(0, |before| steps[before].at_most);
        if points.last().is_none_or(|last| last.length_ns < step.length) {
            points.push(CurvePoint {
                length_ns: step.length,
                at_most: step.at_most as f64 / count as f64,
                at_least: (count - shorter) as f64 / count as f64,
                count: count - shorter,
            });
        }
    }
    points
}

/// Marks on a logarithmic axis closer than this factor are merged, because their labels would overlap.
const CLOSE: f64 = 1.5;

/// The marks of lengths in rising order, with room for each label.
fn apart(marks: Vec<Mark>) -> Vec<Mark> {
    let mut apart: Vec<Mark> = Vec::new();
    for mark in marks {
        match apart.last_mut() {
            Some(last) if mark.at < last.at * CLOSE => last.label = format!("{}, {}", last.label, mark.label),
            _ => apart.push(mark),
        }
    }
    apart
}

/// The distribution function; lengths of 0 have no place on a logarithmic axis, but they count.
fn curve(lengths: &Lengths, longest: &[i64], share: fn(u64, u64) -> f64) -> Vec<[f64; 2]> {
    let steps = lengths.steps(longest);
    steps
        .iter()
        .filter(|step| step.length > 0)
        .map(|step| [step.length as f64, share(step.at_most, lengths.count())])
        .collect()
}

/// The survival function P(X >= x): at each length, how many are at least as long.
fn survival(sets: &[(String, &Lengths, &[i64])]) -> Vec<ChartSeries> {
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
        ChartSeries { name: name.clone(), points, ..ChartSeries::default() }
    });
    series.collect()
}

/// Quantiles, as in the table of CPUs.
fn quantiles(summary: &Summary) -> Table {
    let fields = [&cpu::DETOURS, &cpu::MEDIAN_NS, &cpu::MEAN_NS, &cpu::P99_NS, &cpu::P999_NS, &cpu::MAX_NS];
    let mut table = Table::new(&fields).captioned("Lengths of all interruptions");
    table.row(&fields, &CpuRow::total(summary));
    table.sorts = false;
    table
}

fields! {
    /// The fields of a peak of the spectrum.
    PEAK, peak: Peak {
        SOURCE = "source", "source", |row| source(row).to_owned();
        INTERVAL_NS = "interval_ns", "every", |row| Time::rounded(1e9 / row.hz);
        FREQUENCY_HZ = catalogue::FREQUENCY_HZ, |row| Rate(row.hz);
    }
}

/// The source of a peak, without the period of its label.
fn source(peak: &Peak) -> &str {
    peak.label.split_once(": every ").map_or(&*peak.label, |(source, _)| source)
}

/// The spectrum, if the recording is long enough for one.
pub(in crate::record) fn spectrum(summary: &Summary) -> Option<Section> {
    let spectrum =
        summary.spectrum.as_ref().filter(|spectrum| spectrum.points.iter().any(|point| point.power > 0.0))?;
    let fields: Vec<&Field<Peak>> = PEAK.iter().collect();
    let mut peaks = Table::new(&fields).captioned("Periodic interruptions");
    spectrum.peaks.iter().for_each(|peak| {
        peaks.row(&fields, peak);
    });
    let text = match spectrum.peaks.iter().max_by(|a, b| a.power.total_cmp(&b.power)) {
        Some(peak) => format!(
            "The highest of {} is {} ({}).",
            counted(spectrum.peaks.len() as u64, "named peak", "named peaks"),
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
            x: Axis::new("frequency", AxisScale::Log, AxisUnit::Rate),
            y: Axis::new("noise power per Hz", AxisScale::Log, AxisUnit::Plain),
            series: vec![ChartSeries {
                points: points.map(|point| [point.hz, point.power]).collect(),
                ..ChartSeries::default()
            }],
            marks: spectrum
                .peaks
                .iter()
                .map(|peak| Mark { at: peak.hz, label: time((1e9 / peak.hz).round() as i64) })
                .collect(),
        }),
        figures: None,
    };
    let mut blocks = vec![Block::Text(text), Block::Charts(vec![chart])];
    if !peaks.is_empty() {
        blocks.push(Block::Table(peaks));
    }
    blocks.push(Block::Note(format!(
        "The power spectral density of the share of time lost, averaged over {}. Frequencies at least {} Hz apart are separate. \
         Each point is the highest in its surroundings.",
        counted(spectrum.segments.into(), "stretch", "stretches"),
        three_digits(spectrum.resolution_hz)
    )));
    let section = Section::new("spectrum", "Periodic", "Periodic interruptions", vec![Block::OnPage(blocks)]).explained(
        "A peak is something that happens periodically: the further right, the more often. Its multiples are to the right of it. The \
         strongest peaks have labels with their periods.",
    );
    Some(section)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn few_detours_have_a_row_for_each_length() {
        let mut lengths = Lengths::default();
        [5, 5, 7, 100].into_iter().for_each(|length| lengths.add(length));
        let points = points(&lengths.steps(&[100, 7, 5, 5]), 4);
        let rows: Vec<(i64, f64, f64, u64)> =
            points.iter().map(|point| (point.length_ns, point.at_most, point.at_least, point.count)).collect();
        assert_eq!(rows, [(5, 0.5, 1.0, 4), (7, 0.75, 0.5, 2), (100, 1.0, 0.25, 1)]);
        assert_eq!(super::points(&[], 0), []);
    }

    #[test]
    fn labels_of_marks_do_not_lie_on_each_other() {
        let mark = |at: f64, label: &str| Mark { at, label: label.to_owned() };
        let marks = apart(vec![mark(100.0, "p99.9"), mark(149.0, "max")]);
        assert_eq!(marks.len(), 1);
        assert_eq!((marks[0].at, marks[0].label.as_str()), (100.0, "p99.9, max"));
        assert_eq!(apart(vec![mark(100.0, "p99.9"), mark(151.0, "max")]).len(), 2);
    }

    proptest! {
        /// The table agrees with plain counting.
        #[test]
        fn the_table_counts_right(taken in proptest::collection::vec(0_i64..1 << 30, 1..400), top in 0_usize..20) {
            let mut lengths = Lengths::default();
            taken.iter().for_each(|length| lengths.add(*length));
            let mut longest = taken.clone();
            longest.sort_unstable_by(|a, b| b.cmp(a));
            longest.truncate(top);
            let count = |keep: &dyn Fn(&i64) -> bool| taken.iter().filter(|length| keep(length)).count() as u64;
            let points = points(&lengths.steps(&longest), taken.len() as u64);
            for point in &points {
                let at_most = count(&|length| *length <= point.length_ns) as f64 / taken.len() as f64;
                prop_assert_eq!(point.at_most, at_most);
                // Lengths have a resolution of 3 %: some of those just below are counted as well.
                let (least, most) = (count(&|length| *length >= point.length_ns),
                    count(&|length| *length as f64 >= point.length_ns as f64 / 1.033 - 1.0));
                prop_assert!(least <= point.count && point.count <= most, "{:?}: {} {}", point, least, most);
            }
            prop_assert_eq!(points.last().map(|point| point.length_ns), taken.iter().max().copied());
        }
    }
}
