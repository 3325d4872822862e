//! A run of work as one JSON document, `becalm.work/1`.

use becalm_analyze::work::{
    BaselineComparison, CpuWork, Cumulative, EventTotal, FALSE_ALARM, RULE, SubtractionStep, TickPeaks, Tone,
    WorkSummary,
};
use becalm_model::node::{Ended, MachineDoc, NodeDoc, SettingsDoc, Warning};
use serde::Serialize;

use super::comparison::{self, Compared, ComparedCount};
use super::fields::Subtracted;
use crate::form::field::Object;

#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub(crate) struct WorkDocument<'a> {
    /// How the main body is found.
    rule: &'static str,
    runs: Vec<WorkRunPart<'a>>,
    /// The CPUs of several recordings, compared; empty for one recording.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    comparison: Vec<Object<Compared>>,
    /// The counts of the processor.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    comparison_counters: Vec<Object<ComparedCount>>,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
struct WorkRunPart<'a> {
    path: String,
    nodes: Vec<WorkNodePart<'a>>,
    cpus: Vec<WorkCpuPart<'a>>,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
struct WorkNodePart<'a> {
    node: &'a str,
    program: &'a str,
    origin: Option<String>,
    ended: Option<Ended>,
    settings: &'a SettingsDoc,
    machine: &'a MachineDoc,
    warnings: &'a [Warning],
}

#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
struct WorkCpuPart<'a> {
    #[serde(flatten)]
    figures: Object<CpuWork>,
    /// Nanoseconds for one iteration by all copies, in full.
    iteration_mean_ns: Option<f64>,
    histogram: Vec<[i64; 2]>,
    histogram_end_ns: i64,
    histogram_beyond: u64,
    /// Value and share of samples that are not above it.
    distribution: &'a [(i64, f64)],
    /// Start, smallest and largest value.
    series: Vec<[i64; 3]>,
    /// The samples that the timer's interrupt hit, and the others.
    tick_peaks: Option<PeaksPart>,
    subtraction: Vec<Object<Subtracted>>,
    /// Value and share of samples that are not above it, after each of the first steps of the subtraction.
    subtraction_distributions: Vec<&'a [(i64, f64)]>,
    spectrum: Option<SpectrumPart<'a>>,
    repetitions: Option<RepetitionsPart<'a>>,
    counters: Vec<Object<EventTotal>>,
    baseline: Option<Object<BaselineComparison>>,
}

/// The samples that the timer's interrupt hit, and the others.
#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
struct PeaksPart {
    #[serde(flatten)]
    figures: Object<TickPeaks>,
    /// The start of each bin, the number of its samples that were hit, and of those that were not; without the longest twentieth.
    histogram: Vec<[i64; 3]>,
}

/// Repetitions of a second.
#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
struct RepetitionsPart<'a> {
    #[serde(flatten)]
    figures: Object<Cumulative>,
    values_ns: &'a [i64],
}

#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
struct SpectrumPart<'a> {
    resolution_hz: f64,
    stretches: u32,
    threshold_ratio: f64,
    /// The chance that samples without a period have a frequency named.
    false_alarm_ratio: f64,
    tones: Vec<Object<Tone>>,
    /// At each multiple of the resolution, in ns^2.
    power: &'a [f64],
}

/// Builds `becalm.work/1`: runs of work, one per body, number of copies and rate.
pub(super) fn document(summaries: &[WorkSummary]) -> impl Serialize {
    let runs = summaries.iter().map(|summary| WorkRunPart {
        path: summary.path.display().to_string(),
        nodes: summary.nodes.iter().map(node).collect(),
        cpus: summary.cpus.iter().map(cpu).collect(),
    });
    let several = if summaries.len() > 1 { summaries } else { &[] };
    WorkDocument {
        rule: RULE,
        runs: runs.collect(),
        comparison: comparison::rows(several).iter().map(Object::new).collect(),
        comparison_counters: comparison::counts(several).iter().map(Object::new).collect(),
    }
}

fn lines(cpu: &CpuWork) -> impl Iterator<Item = Subtracted> {
    cpu.subtraction.iter().map(|step| Subtracted { step: Some(step.clone()), left: step.left, all_ns: cpu.duration_ns })
}

/// The first steps of the subtraction, whose distribution is stored.
fn drawn_steps(cpu: &CpuWork) -> impl Iterator<Item = &SubtractionStep> {
    cpu.subtraction.iter().filter(|step| !step.distribution.is_empty())
}

fn node(doc: &NodeDoc) -> WorkNodePart<'_> {
    WorkNodePart {
        node: &doc.node,
        program: &doc.program,
        origin: doc.origin.map(|origin| origin.to_string()),
        ended: doc.ended,
        settings: &doc.settings,
        machine: &doc.machine,
        warnings: &doc.warnings,
    }
}

fn cpu(work: &CpuWork) -> WorkCpuPart<'_> {
    WorkCpuPart {
        figures: Object::new(work),
        iteration_mean_ns: work.ns_per_iteration(),
        histogram: work.curves.histogram.iter().map(|bin| [bin.from_ns, bin.count as i64]).collect(),
        histogram_end_ns: work.curves.histogram_end_ns,
        histogram_beyond: work.curves.beyond,
        distribution: &work.curves.distribution,
        series: work.curves.series.iter().map(|moment| [moment.start_ns, moment.min_ns, moment.max_ns]).collect(),
        tick_peaks: work.peaks.as_ref().map(|peaks| PeaksPart {
            figures: Object::new(peaks),
            histogram: peaks.histogram.iter().map(|bin| [bin.from_ns, bin.hit as i64, bin.missed as i64]).collect(),
        }),
        subtraction_distributions: drawn_steps(work).map(|step| step.distribution.as_slice()).collect(),
        subtraction: lines(work).map(|line| Object::new(&line)).collect(),
        spectrum: work.tones.as_ref().map(|tones| SpectrumPart {
            resolution_hz: tones.resolution_hz,
            stretches: tones.stretches,
            threshold_ratio: tones.threshold_ratio,
            false_alarm_ratio: FALSE_ALARM,
            tones: tones.tones.iter().map(Object::new).collect(),
            power: &tones.power,
        }),
        repetitions: work
            .cumulative
            .as_ref()
            .map(|cumulative| RepetitionsPart { figures: Object::new(cumulative), values_ns: &cumulative.values }),
        counters: work.counts.iter().map(Object::new).collect(),
        baseline: work.baseline.as_ref().map(Object::new),
    }
}
