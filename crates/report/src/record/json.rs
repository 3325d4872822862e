//! Recordings as JSON documents: `becalm.report/1`, `becalm.sources/1`, `becalm.detours/1`.
//!
//! Durations are whole nanoseconds in `_ns` fields, ratios plain numbers in `_ratio` fields; missing values are null.

use becalm_analyze::summary::{
    Books, CategoryTotal, Checked, Found, Measuring, NodeSummary, OpenBook, OutlierSummary, PartFigures, PeersSummary,
    PeriodSummary, SourceSummary, Summary, Timeline, categories,
};
use becalm_model::node::{ClockDoc, Ended, MachineDoc, Rung, SettingsDoc};
use becalm_stats::{CONFIDENCE, METHOD, RESAMPLES, SEED, Spectrum, tail};
use serde::Serialize;

use crate::form::field::Object;
use crate::record::conclusion::Conclusion;
use crate::record::figures::{self, CounterRow, CpuRow};
use crate::record::timeline::EntryRow;

#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub(crate) struct RunDocument<'a, T: Serialize> {
    path: String,
    rung: Rung,
    summary: Conclusion<'a>,
    lost_events: Option<u64>,
    books: Option<&'static str>,
    open_books: Vec<OpenBookDoc<'a>>,
    checked: Option<CheckedDoc<'a>>,
    measuring: Option<MeasuringDoc>,
    warnings: Vec<WarningDoc<'a>>,
    nodes: Vec<RunNode<'a>>,
    #[serde(flatten)]
    tables: T,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub(crate) struct RunTables<'a> {
    cpus: Vec<Object<CpuRow>>,
    total: Object<CpuRow>,
    interval: IntervalDoc,
    tail: TailDoc,
    periods: Vec<Object<PeriodSummary>>,
    spectrum: Option<SpectrumDoc<'a>>,
    outliers: Vec<Object<OutlierSummary>>,
    peers: Vec<Object<PeersSummary>>,
    sources: Vec<Object<SourceSummary>>,
    categories: Vec<Object<CategoryTotal>>,
    anatomy: Option<AnatomyDoc<'a>>,
    counters: Vec<Object<CounterRow>>,
}

/// How often something came by the kernel's own count, and how many of these the trace holds.
#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
struct FoundDoc {
    counted: u64,
    traced: u64,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
struct CheckedDoc<'a> {
    timer_interrupts: FoundDoc,
    other_interrupts: FoundDoc,
    softirqs: FoundDoc,
    /// The lines of `/proc/interrupts` that the trace lacks some of.
    lacking: Vec<LackingDoc<'a>>,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
struct LackingDoc<'a> {
    name: &'a str,
    #[serde(flatten)]
    found: FoundDoc,
}

/// What writing the trace cost.
#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
struct MeasuringDoc {
    events: u64,
    event_cost_ns: f64,
    cost_ns: i64,
    time_ratio: Option<f64>,
}

/// One occurrence of the costliest interrupt, over the detours that contain it once.
#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
struct AnatomyDoc<'a> {
    source: &'a str,
    parts: Vec<Object<PartFigures>>,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
struct OpenBookDoc<'a> {
    node: &'a str,
    cpu: u32,
    detour: u64,
    duration_ns: Option<i64>,
    activities_ns: i64,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
struct WarningDoc<'a> {
    node: &'a str,
    code: &'a str,
    message: &'a str,
    advice: &'a str,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
struct RunNode<'a> {
    node: &'a str,
    program: &'a str,
    origin: Option<String>,
    ended: Option<Ended>,
    rung: Rung,
    settings: &'a SettingsDoc,
    machine: &'a MachineDoc,
    clock: ClockDoc,
    not_seen: &'a [String],
    activities: u64,
    /// Of each CPU where they can be seen.
    smis: Vec<SmiDoc>,
}

/// How many system management interrupts a CPU took.
#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
struct SmiDoc {
    cpu: u32,
    count: u64,
}

/// How the intervals of noise ratios are made, to reproduce them.
#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
struct IntervalDoc {
    method: &'static str,
    confidence_ratio: f64,
    resamples: usize,
    seed: u64,
}

/// How the tails are made.
#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
struct TailDoc {
    method: &'static str,
    clusters_min: usize,
    extrapolation_factor: i64,
}

/// The peaks of the spectrum; its curve is for pictures.
#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
struct SpectrumDoc<'a> {
    resolution_hz: f64,
    segments: u32,
    peaks: Vec<PeakDoc<'a>>,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
struct PeakDoc<'a> {
    frequency_hz: f64,
    power_per_hz: f64,
    label: &'a str,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub(crate) struct DetoursDocument {
    detours: Vec<DetourDoc>,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
struct DetourDoc {
    #[serde(flatten)]
    detour: Object<Timeline>,
    activities: Vec<Object<EntryRow>>,
}

/// A recording with the sources and counters over all CPUs, or per CPU if `per_cpu`; `share_ratio` is then the share of the noise on that CPU.
pub(super) fn document(summary: &Summary, per_cpu: bool) -> impl Serialize {
    let cpus: Vec<CpuRow> = summary.cpus.iter().map(CpuRow::new).collect();
    let total = CpuRow::total(summary);
    let counters: Vec<CounterRow> = summary.nodes.iter().flat_map(|node| figures::counters(node, per_cpu)).collect();
    let sources = if per_cpu { &summary.cpu_sources } else { &summary.sources };
    let open: &[OpenBook] = if let Books::Open(open) = &summary.books { open } else { &[] };
    RunDocument {
        path: summary.path.display().to_string(),
        rung: summary.rung,
        summary: Conclusion::from_run(summary),
        lost_events: summary.total.lost_events,
        books: match summary.books {
            Books::Closed => Some("closed"),
            Books::Open(_) => Some("open"),
            Books::NoActivities => None,
        },
        open_books: open.iter().map(open_book).collect(),
        checked: summary.checked.as_ref().map(checked),
        measuring: summary.measuring.map(|Measuring { events, event_cost_ns, cost_ns, time_ratio }| MeasuringDoc {
            events,
            event_cost_ns,
            cost_ns,
            time_ratio,
        }),
        warnings: summary
            .warnings
            .iter()
            .map(|(node, warning)| WarningDoc {
                node,
                code: &warning.code,
                message: &warning.message,
                advice: &warning.advice,
            })
            .collect(),
        nodes: summary.nodes.iter().map(node).collect(),
        tables: RunTables {
            cpus: cpus.iter().map(Object::new).collect(),
            total: Object::new(&total),
            interval: IntervalDoc { method: METHOD, confidence_ratio: CONFIDENCE, resamples: RESAMPLES, seed: SEED },
            tail: TailDoc {
                method: tail::METHOD,
                clusters_min: tail::CLUSTERS_MIN,
                extrapolation_factor: tail::EXTRAPOLATION,
            },
            periods: summary.periods.iter().map(Object::new).collect(),
            spectrum: summary.spectrum.as_ref().map(spectrum),
            outliers: summary.outliers.iter().map(Object::new).collect(),
            peers: summary.peers.iter().map(Object::new).collect(),
            sources: sources.iter().map(Object::new).collect(),
            categories: categories(&summary.sources).iter().map(Object::new).collect(),
            anatomy: summary.anatomy.as_ref().map(|anatomy| AnatomyDoc {
                source: &anatomy.source,
                parts: anatomy.parts.iter().map(Object::new).collect(),
            }),
            counters: counters.iter().map(Object::new).collect(),
        },
    }
}

/// Single detours with their activities as `becalm.detours/1`.
pub(super) fn detours(timelines: &[Timeline]) -> impl Serialize {
    let rows: Vec<_> = timelines.iter().map(crate::record::timeline::rows).collect();
    let detours = timelines.iter().zip(&rows).map(|(timeline, rows)| DetourDoc {
        detour: Object::new(timeline),
        activities: rows.iter().map(Object::new).collect(),
    });
    DetoursDocument { detours: detours.collect() }
}

fn checked(checked: &Checked) -> CheckedDoc<'_> {
    let found_doc = |found: Found| FoundDoc { counted: found.counted, traced: found.found };
    CheckedDoc {
        timer_interrupts: found_doc(checked.timers),
        other_interrupts: found_doc(checked.others),
        softirqs: found_doc(checked.softirqs),
        lacking: checked.lacking.iter().map(|(name, found)| LackingDoc { name, found: found_doc(*found) }).collect(),
    }
}

fn open_book(book: &OpenBook) -> OpenBookDoc<'_> {
    OpenBookDoc {
        node: &book.node,
        cpu: book.cpu.get(),
        detour: book.detour,
        duration_ns: book.duration_ns,
        activities_ns: book.activities_ns,
    }
}

fn spectrum(spectrum: &Spectrum) -> SpectrumDoc<'_> {
    let peaks = spectrum.peaks.iter();
    SpectrumDoc {
        resolution_hz: spectrum.resolution_hz,
        segments: spectrum.segments,
        peaks: peaks
            .map(|peak| PeakDoc { frequency_hz: peak.hz, power_per_hz: peak.power, label: &peak.label })
            .collect(),
    }
}

fn node(node: &NodeSummary) -> RunNode<'_> {
    let doc = &node.doc;
    RunNode {
        node: &doc.node,
        program: &doc.program,
        origin: doc.origin.map(|origin| origin.to_string()),
        ended: doc.ended,
        rung: doc.rung,
        settings: &doc.settings,
        machine: &doc.machine,
        clock: doc.clock.clone().without_pairs(),
        not_seen: doc.tracing.as_ref().map_or(&[], |tracing| &tracing.missing),
        activities: node.activities,
        smis: doc.cpus.iter().filter_map(|cpu| Some(SmiDoc { cpu: cpu.cpu.get(), count: cpu.smis? })).collect(),
    }
}
