//! The charts on the page of a run of work.

use becalm_analyze::work::{CpuWork, Tones};

use super::view::hertz;
use crate::form::value::{grouped, time};
use crate::html::{Axis, AxisScale, AxisUnit, Bar, Bars, Chart, ChartSeries, Lines, Mark, Spec};

/// CPUs beyond this number have no curve.
pub(super) const CURVES: usize = 8;
/// The number of subtracted sources drawn, at most.
const STEPS: usize = 12;
/// The number of sources after which the survival function is drawn.
const SURVIVALS: usize = 3;
/// The number of points per decade of frequencies, at most.
const POINTS_PER_DECADE: f64 = 150.0;

/// A CPU's samples with their name on the page.
pub(super) struct NamedCpu<'a> {
    pub name: String,
    pub cpu: &'a CpuWork,
}

/// One curve per CPU; a single one needs no name.
fn curves(cpus: &[NamedCpu<'_>], step: bool, points: impl Fn(&CpuWork) -> Vec<[f64; 2]>) -> Vec<ChartSeries> {
    let named = cpus.len() > 1;
    cpus.iter()
        .take(CURVES)
        .map(|shown| ChartSeries {
            name: if named { shown.name.clone() } else { String::new() },
            points: points(shown.cpu),
            step,
            ..ChartSeries::default()
        })
        .collect()
}

/// The share of samples not above a value, up to the end of the histogram.
pub(super) fn cumulative(cpus: &[NamedCpu<'_>], text: &str) -> Chart {
    let points = |cpu: &CpuWork| {
        let inside = cpu.curves.distribution.iter().filter(|(value, _)| *value <= cpu.curves.histogram_end_ns);
        inside.map(|(value, share)| [*value as f64, *share]).collect()
    };
    let share = Axis::new("samples up to this time", AxisScale::Linear, AxisUnit::Ratio).between(Some(0.0), Some(1.0));
    let marks = match cpus {
        [only] => vec![Mark { at: only.cpu.spread.median_ns() as f64, label: "median".to_owned() }],
        _ => Vec::new(),
    };
    Chart {
        id: "distribution",
        title: "Cumulative distribution".to_owned(),
        label: text.to_owned(),
        height: 320,
        spec: Spec::Lines(Lines {
            x: Axis::new("a sample takes", AxisScale::Linear, AxisUnit::Time),
            y: share,
            series: curves(cpus, true, points),
            marks,
        }),
        figures: None,
    }
}

/// The share of samples not shorter than a value, both axes logarithmic.
pub(super) fn survival(cpus: &[NamedCpu<'_>], text: &str) -> Chart {
    Chart {
        id: "survival",
        title: "Survival".to_owned(),
        label: format!("The share of samples that take at least a time, on two logarithmic axes. {text}"),
        height: 320,
        spec: Spec::Lines(Lines {
            x: Axis::new("a sample takes", AxisScale::Log, AxisUnit::Time),
            y: Axis::new("samples that take at least this time", AxisScale::Log, AxisUnit::Ratio)
                .between(None, Some(1.0)),
            series: curves(cpus, false, |cpu| surviving(&cpu.curves.distribution)),
            marks: Vec::new(),
        }),
        figures: None,
    }
}

/// The share of samples not above a value on a logarithmic axis, which shows the few shortest.
pub(super) fn head(cpus: &[NamedCpu<'_>], text: &str) -> Chart {
    let points = |cpu: &CpuWork| {
        let inside = cpu.curves.distribution.iter().filter(|(value, _)| *value <= cpu.curves.histogram_end_ns);
        inside.map(|(value, share)| [*value as f64, *share]).collect()
    };
    Chart {
        id: "head",
        title: "Cumulative distribution, its head".to_owned(),
        label: format!("The share of samples that take no longer than a time, on a logarithmic axis. {text}"),
        height: 320,
        spec: Spec::Lines(Lines {
            x: Axis::new("a sample takes", AxisScale::Linear, AxisUnit::Time),
            y: Axis::new("samples up to this time", AxisScale::Log, AxisUnit::Ratio).between(None, Some(1.0)),
            series: curves(cpus, true, points),
            marks: Vec::new(),
        }),
        figures: None,
    }
}

/// The survival function as measured, after subtracting each of the first sources, and after the last stored step.
pub(super) fn survival_left(cpu: &CpuWork, text: &str) -> Chart {
    let line = |name: String, distribution: &[(i64, f64)]| ChartSeries {
        name,
        points: surviving(distribution),
        ..ChartSeries::default()
    };
    let steps: Vec<_> = cpu.subtraction.iter().filter(|step| !step.distribution.is_empty()).collect();
    let mut lines = vec![line("as measured".to_owned(), &cpu.curves.distribution)];
    lines.extend(steps.iter().take(SURVIVALS).map(|step| line(format!("minus {}", step.source), &step.distribution)));
    if let Some(last) = steps.iter().skip(SURVIVALS).last() {
        lines.push(line(format!("minus all up to {}", last.source), &last.distribution));
    }
    Chart {
        id: "survival-left",
        title: "Survival".to_owned(),
        label: format!("The share of samples that take at least a time, with and without sources. {text}"),
        height: 320,
        spec: Spec::Lines(Lines {
            x: Axis::new("a sample takes", AxisScale::Log, AxisUnit::Time),
            y: Axis::new("samples that take at least this time", AxisScale::Log, AxisUnit::Ratio)
                .between(None, Some(1.0)),
            series: lines,
            marks: Vec::new(),
        }),
        figures: None,
    }
}

fn surviving(distribution: &[(i64, f64)]) -> Vec<[f64; 2]> {
    let mut shorter = 0.0;
    let mut points = Vec::new();
    for (value, not_above) in distribution {
        if *value > 0 {
            points.push([*value as f64, 1.0 - shorter]);
        }
        shorter = *not_above;
    }
    points
}

/// The consecutive samples: the longest in each part of the run, and for a single CPU also the shortest.
pub(super) fn series(cpus: &[NamedCpu<'_>], text: &str) -> Chart {
    let value = |get: fn(&becalm_analyze::work::SamplePoint) -> i64| {
        move |cpu: &CpuWork| -> Vec<[f64; 2]> {
            let moments = cpu.curves.series.iter().filter(|moment| get(moment) > 0);
            moments.map(|moment| [moment.start_ns as f64, get(moment) as f64]).collect()
        }
    };
    let mut lines = curves(cpus, false, value(|moment| moment.max_ns));
    if cpus.len() == 1 {
        lines[0].name = "longest".to_owned();
        let shortest = curves(cpus, false, value(|moment| moment.min_ns));
        lines.extend(shortest.into_iter().map(|line| ChartSeries { name: "shortest".to_owned(), ..line }));
    }
    Chart {
        id: "series",
        title: String::new(),
        label: format!("The longest sample of each part of the run against time. {text}"),
        height: 320,
        spec: Spec::Lines(Lines {
            x: Axis::new("time", AxisScale::Linear, AxisUnit::Instant),
            y: Axis::new("a sample takes", AxisScale::Log, AxisUnit::Time),
            series: lines,
            marks: Vec::new(),
        }),
        figures: None,
    }
}

/// The histograms of the CPUs' samples.
pub(super) fn histogram(cpus: &[NamedCpu<'_>], text: &str) -> Chart {
    let points = |cpu: &CpuWork| {
        let bins = cpu.curves.histogram.iter().map(|bin| [bin.from_ns as f64, bin.count as f64]);
        bins.chain([[cpu.curves.histogram_end_ns as f64, 0.0]]).collect()
    };
    Chart {
        id: "histogram",
        title: String::new(),
        label: text.to_owned(),
        height: 300,
        spec: Spec::Lines(Lines {
            x: Axis::new("a sample takes", AxisScale::Linear, AxisUnit::Time),
            y: Axis::new("samples", AxisScale::Linear, AxisUnit::Count).between(Some(0.0), None),
            series: curves(cpus, true, points),
            marks: Vec::new(),
        }),
        figures: None,
    }
}

/// One-second repetitions, one after another.
pub(super) fn repetitions(cpus: &[NamedCpu<'_>], text: &str) -> Chart {
    let points = |cpu: &CpuWork| {
        let ratios = cpu.cumulative.iter().flat_map(|cumulative| {
            cumulative.values.iter().map(|value| *value as f64 / cumulative.undisturbed_ns.max(1) as f64)
        });
        ratios.enumerate().map(|(number, ratio)| [(number + 1) as f64, ratio]).collect()
    };
    let lines =
        curves(cpus, false, points).into_iter().map(|line| ChartSeries { dots: line.points.len() < 100, ..line });
    Chart {
        id: "repetitions",
        title: String::new(),
        label: text.to_owned(),
        height: 280,
        spec: Spec::Lines(Lines {
            x: Axis::new("repetition", AxisScale::Linear, AxisUnit::Count).between(Some(1.0), None),
            y: Axis::new("time relative to undisturbed", AxisScale::Linear, AxisUnit::Factor),
            series: lines.filter(|line| !line.points.is_empty()).collect(),
            marks: Vec::new(),
        }),
        figures: None,
    }
}

/// The standard deviation after subtracting each source.
pub(super) fn left(cpu: &CpuWork, text: &str) -> Chart {
    let bar = |name: String, stddev: f64, kind: Option<&'static str>| Bar {
        name,
        value: stddev,
        text: time(stddev.round() as i64),
        kind,
    };
    let steps = cpu
        .subtraction
        .iter()
        .take(STEPS)
        .map(|step| bar(format!("minus {}", step.source), step.left.stddev_ns, step.kind.map(|kind| kind.name())));
    let bars: Vec<Bar> = [bar("as measured".to_owned(), cpu.spread.stddev_ns, None)].into_iter().chain(steps).collect();
    Chart {
        id: "left",
        title: "Standard deviation of the samples".to_owned(),
        label: text.to_owned(),
        height: bars.len() as u32 * 26 + 40,
        spec: Spec::Bars(Bars { x: Axis::new("", AxisScale::Linear, AxisUnit::Time), bars }),
        figures: None,
    }
}

/// The spectrum of the lost time, with the named frequencies of a single CPU.
pub(super) fn spectrum(cpus: &[NamedCpu<'_>], text: &str) -> Chart {
    let points = |cpu: &CpuWork| cpu.tones.as_ref().map_or_else(Vec::new, reduced);
    let marks = match cpus {
        [only] => only.cpu.tones.iter().flat_map(|tones| &tones.tones).map(mark).collect(),
        _ => Vec::new(),
    };
    let lines = curves(cpus, false, points);
    Chart {
        id: "spectrum",
        title: String::new(),
        label: format!("The spectrum of lost time. {text}"),
        height: 340,
        spec: Spec::Lines(Lines {
            x: Axis::new("frequency", AxisScale::Log, AxisUnit::Rate),
            y: Axis::new("power, ns\u{b2}", AxisScale::Log, AxisUnit::Plain),
            series: lines.into_iter().filter(|line| !line.points.is_empty()).collect(),
            marks,
        }),
        figures: None,
    }
}

fn mark(tone: &becalm_analyze::work::Tone) -> Mark {
    let source = tone.source.as_ref().map_or_else(String::new, |source| format!(" {source}"));
    Mark { at: tone.hz, label: format!("{}{source}", hertz(tone.hz)) }
}

/// The reduced curve of the spectrum, each point the highest around it.
fn reduced(tones: &Tones) -> Vec<[f64; 2]> {
    let mut points: Vec<[f64; 2]> = Vec::new();
    let mut last = f64::NEG_INFINITY;
    for (place, power) in tones.power.iter().enumerate().skip(1).filter(|(_, power)| **power > 0.0) {
        let hz = place as f64 * tones.resolution_hz;
        let column = (hz.log10() * POINTS_PER_DECADE).floor();
        match points.last_mut() {
            Some(before) if column == last => {
                if before[1] < *power {
                    *before = [hz, *power];
                }
            }
            _ => points.push([hz, *power]),
        }
        last = column;
    }
    points
}

/// The histogram in a sentence.
pub(super) fn histogram_text(cpus: &[NamedCpu<'_>]) -> String {
    let beyond: u64 = cpus.iter().map(|shown| shown.cpu.curves.beyond).sum();
    let end = cpus.iter().map(|shown| shown.cpu.curves.histogram_end_ns).max().unwrap_or(0);
    match beyond {
        0 => "The chart shows all samples.".to_owned(),
        1 => format!("One sample is longer than the chart shows: {} or more.", time(end)),
        beyond => format!("{} samples are longer than the chart shows: {} or more.", grouped(beyond), time(end)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use becalm_analyze::work::Curves;
    use proptest::prelude::*;

    #[test]
    fn everybody_survives_the_shortest() {
        let curves = Curves { distribution: vec![(5, 0.5), (9, 0.75), (30, 1.0)], ..Curves::default() };
        assert_eq!(surviving(&curves.distribution), [[5.0, 1.0], [9.0, 0.5], [30.0, 0.25]]);
        // A fixed-time value of 0 or below has no place on the axis, but it counts.
        let curves = Curves { distribution: vec![(-1, 0.5), (9, 1.0)], ..Curves::default() };
        assert_eq!(surviving(&curves.distribution), [[9.0, 0.5]]);
    }

    proptest! {
        #[test]
        fn no_peak_of_the_spectrum_is_lost(power in proptest::collection::vec(1e-3..1e6_f64, 130..3_000)) {
            let tones = Tones {
                resolution_hz: 0.1,
                highest_hz: 0.1 * (power.len() - 1) as f64,
                stretches: 1,
                threshold_ratio: 10.0,
                power,
                tones: Vec::new(),
            };
            let points = reduced(&tones);
            let highest = tones.power.iter().skip(1).copied().fold(0.0, f64::max);
            prop_assert_eq!(points.iter().map(|point| point[1]).fold(0.0, f64::max), highest);
            prop_assert!(points.windows(2).all(|pair| pair[0][0] < pair[1][0]));
            for [hz, power] in points {
                prop_assert_eq!(tones.power[(hz / 0.1).round() as usize], power);
            }
        }
    }
}
