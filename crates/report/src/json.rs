//! Summaries as JSON documents: `becalm.report/1`, `becalm.sources/1`, `becalm.detours/1`.
//!
//! Durations are whole nanoseconds in `_ns` fields, ratios plain numbers in `_ratio` fields; what does not exist is null.

use becalm_analyze::summary::{
    Books, NodeSummary, OpenBook, OutlierSummary, PeersSummary, PeriodSummary, Summary, Timeline,
};
use becalm_model::node::{ClockDoc, Ended, Machine, Rung, Settings};
use becalm_stats::{CONFIDENCE, METHOD, RESAMPLES, SEED, Spectrum, tail};
use serde::Serialize;

use crate::field::Object;
use crate::figures::{self, COUNTER, CPU, CounterRow, CpuRow, OUTLIER, PEERS, PERIOD, SOURCE};
use crate::timeline::{DETOUR, ENTRY};

#[derive(Serialize)]
struct Document<'a, T: Serialize> {
    schema: &'static str,
    path: String,
    rung: Rung,
    lost_events: u64,
    books: Option<&'static str>,
    open_books: Vec<OpenBookDoc<'a>>,
    warnings: Vec<WarningDoc<'a>>,
    nodes: Vec<NodeDoc<'a>>,
    #[serde(flatten)]
    tables: T,
}

#[derive(Serialize)]
struct Report<'a> {
    cpus: Vec<Object<'a, CpuRow>>,
    total: Object<'a, CpuRow>,
    interval: IntervalDoc,
    tail: TailDoc,
    periods: Vec<Object<'a, PeriodSummary>>,
    spectrum: Option<SpectrumDoc<'a>>,
    outliers: Vec<Object<'a, OutlierSummary>>,
    peers: Vec<Object<'a, PeersSummary>>,
    sources: Vec<Object<'a, becalm_analyze::summary::SourceSummary>>,
    counters: Vec<Object<'a, CounterRow>>,
}

#[derive(Serialize)]
struct OpenBookDoc<'a> {
    node: &'a str,
    cpu: u32,
    detour: u64,
    duration_ns: Option<i64>,
    activities_ns: i64,
}

#[derive(Serialize)]
struct WarningDoc<'a> {
    node: &'a str,
    code: &'a str,
    message: &'a str,
    advice: &'a str,
}

#[derive(Serialize)]
struct NodeDoc<'a> {
    node: &'a str,
    program: &'a str,
    origin: String,
    ended: Option<Ended>,
    rung: Rung,
    settings: &'a Settings,
    machine: &'a Machine,
    clock: &'a ClockDoc,
    not_seen: &'a [String],
    activities: u64,
}

/// How the intervals of noise ratios are made, so that anyone can make them again.
#[derive(Serialize)]
struct IntervalDoc {
    method: &'static str,
    confidence_ratio: f64,
    resamples: usize,
    seed: u64,
}

/// How the tails are made.
#[derive(Serialize)]
struct TailDoc {
    method: &'static str,
    clusters_min: usize,
    extrapolation_factor: i64,
}

/// The peaks of the spectrum; its curve is for pictures.
#[derive(Serialize)]
struct SpectrumDoc<'a> {
    resolution_hz: f64,
    segments: u32,
    peaks: Vec<PeakDoc<'a>>,
}

#[derive(Serialize)]
struct PeakDoc<'a> {
    frequency_hz: f64,
    power_per_hz: f64,
    label: &'a str,
}

#[derive(Serialize)]
struct Detours<'a> {
    schema: &'static str,
    detours: Vec<DetourDoc<'a>>,
}

#[derive(Serialize)]
struct DetourDoc<'a> {
    #[serde(flatten)]
    detour: Object<'a, Timeline>,
    activities: Vec<Object<'a, crate::timeline::EntryRow>>,
}

/// The report as `becalm.report/1`.
#[must_use]
pub fn report_json(summary: &Summary) -> String {
    document("becalm.report/1", summary, false)
}

/// The sources as `becalm.sources/1`: the same fields as the report, with the sources and counters of each CPU if
/// `per_cpu`, whose `share_ratio` is then that of the noise on that CPU.
#[must_use]
pub fn sources_json(summary: &Summary, per_cpu: bool) -> String {
    document("becalm.sources/1", summary, per_cpu)
}

/// The same as [`report_json`].
#[must_use]
pub fn to_json(summary: &Summary) -> String {
    report_json(summary)
}

fn document(schema: &'static str, summary: &Summary, per_cpu: bool) -> String {
    let cpus: Vec<CpuRow> = summary.cpus.iter().map(CpuRow::of).collect();
    let total = CpuRow::total(summary);
    let counters: Vec<CounterRow> = summary.nodes.iter().flat_map(|node| figures::counters(node, per_cpu)).collect();
    let sources = if per_cpu { &summary.cpu_sources } else { &summary.sources };
    let open: &[OpenBook] = if let Books::Open(open) = &summary.books { open } else { &[] };
    text(&Document {
        schema,
        path: summary.path.display().to_string(),
        rung: summary.rung,
        lost_events: summary.lost_events,
        books: match summary.books {
            Books::Closed => Some("closed"),
            Books::Open(_) => Some("open"),
            Books::NoActivities => None,
        },
        open_books: open.iter().map(open_book).collect(),
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
        tables: Report {
            cpus: cpus.iter().map(|row| Object(CPU, row)).collect(),
            total: Object(CPU, &total),
            interval: IntervalDoc { method: METHOD, confidence_ratio: CONFIDENCE, resamples: RESAMPLES, seed: SEED },
            tail: TailDoc {
                method: tail::METHOD,
                clusters_min: tail::CLUSTERS_MIN,
                extrapolation_factor: tail::EXTRAPOLATION,
            },
            periods: summary.periods.iter().map(|row| Object(PERIOD, row)).collect(),
            spectrum: summary.spectrum.as_ref().map(spectrum),
            outliers: summary.outliers.iter().map(|row| Object(OUTLIER, row)).collect(),
            peers: summary.peers.iter().map(|row| Object(PEERS, row)).collect(),
            sources: sources.iter().map(|row| Object(SOURCE, row)).collect(),
            counters: counters.iter().map(|row| Object(COUNTER, row)).collect(),
        },
    })
}

/// Single detours with their activities as `becalm.detours/1`.
#[must_use]
pub fn timelines_json(timelines: &[Timeline]) -> String {
    let rows: Vec<_> = timelines.iter().map(crate::timeline::rows).collect();
    let detours = timelines.iter().zip(&rows).map(|(timeline, rows)| DetourDoc {
        detour: Object(DETOUR, timeline),
        activities: rows.iter().map(|row| Object(ENTRY, row)).collect(),
    });
    text(&Detours { schema: "becalm.detours/1", detours: detours.collect() })
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

fn node(node: &NodeSummary) -> NodeDoc<'_> {
    let doc = &node.doc;
    NodeDoc {
        node: &doc.node,
        program: &doc.program,
        origin: doc.origin.to_string(),
        ended: doc.ended,
        rung: doc.rung,
        settings: &doc.settings,
        machine: &doc.machine,
        clock: &doc.clock,
        not_seen: doc.tracing.as_ref().map_or(&[], |tracing| &tracing.missing),
        activities: node.activities,
    }
}

/// A document as it is printed.
pub(crate) fn text(document: &impl Serialize) -> String {
    let mut text = serde_json::to_string_pretty(document).expect("the keys are texts and numbers are finite or null");
    text.push('\n');
    text
}
