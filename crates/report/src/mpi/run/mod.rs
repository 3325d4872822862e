//! A parallel benchmark for a terminal and as `becalm.mpi/1`.

mod view;

use becalm_analyze::job::{JobPhases, RankPhases};
use becalm_analyze::phases::{PhaseFigures, PhaseSpan, Slowest, spans};
use becalm_model::phases::{ClockRelationDoc, CollectiveCall, JobDoc, PhasesDoc};
use serde::Serialize;

use super::nodes;
use crate::catalogue;
use crate::form::field::{Field, Object, fields};
use crate::form::figure::{Factor, Number, Time};
use crate::form::section::{Block, Page};
use crate::form::sheet::Form;
use crate::form::table::Table;
use crate::form::value::{three_digits, time};
use crate::record::header::machine;
use crate::report::Report;

/// The most ranks in the table; a script gets all of them.
const RANKS_SHOWN: usize = 16;
/// The parts of the time series in JSON.
const SERIES: usize = 1_000;
/// The columns of the drawn series.
const DRAWN: usize = 72;

pub(super) fn job(report: &JobPhases) -> &JobDoc {
    &report.nodes.first().expect("a run has a node").job
}

fn rows(report: &JobPhases) -> Vec<PhaseRow> {
    let row = |what, meaning, series: &[i64]| {
        PhaseFigures::from_durations(series).map(|figures| PhaseRow {
            what,
            meaning,
            figures,
            grain_ns: job(report).grain_ns.get(),
        })
    };
    let Slowest { compute, collective, total, latest: _ } = &report.slowest;
    let rows = [row("qt", "compute", compute), row("bt", "collective", collective), row("qtbt", "both", total)];
    rows.into_iter().flatten().collect()
}

/// Everything that limits the numbers.
pub(super) fn warnings(report: &JobPhases) -> Vec<String> {
    let several = report.nodes.len() > 1;
    let named = |doc: &PhasesDoc, warning: &str| match several {
        true => format!("{}: {warning}", doc.node),
        false => warning.to_owned(),
    };
    let mut warnings: Vec<String> =
        report.nodes.iter().flat_map(|doc| doc.warnings.iter().map(move |warning| named(doc, warning))).collect();
    let job = job(report);
    if report.ranks.len() < job.ranks as usize {
        warnings.push(format!(
            "only {} of {} ranks are here: where nodes have no file system in common, bring the folders of their bundles \
             together",
            report.ranks.len(),
            job.ranks
        ));
    }
    warnings
        .extend(report.nodes.iter().filter(|doc| !doc.complete).map(|doc| named(doc, "it did not come to its end")));
    warnings
}

/// A line of the table: the name of a time, and its figures.
pub(super) struct PhaseRow {
    what: &'static str,
    meaning: &'static str,
    figures: PhaseFigures,
    pub(super) grain_ns: i64,
}

/// The line of compute and collective together; `None` without phases.
pub(super) fn total(report: &JobPhases) -> Option<PhaseRow> {
    rows(report).into_iter().find(|row| row.what == "qtbt")
}

fields! {
    /// The fields of a row.
    pub(super) ROW, phase_row: PhaseRow {
        WHAT = "what", "", |row| row.what;
        MEANING = "meaning", "slowest rank", |row| row.meaning;
        MEAN_NS = "mean_ns", "average", |row| Time::rounded(row.figures.mean_ns);
        MEDIAN_NS = catalogue::MEDIAN_NS, |row| Time(row.figures.median_ns);
        WORST_NS = "worst_ns", "worst 1%", |row| Time::rounded(row.figures.worst_ns);
        MIN_NS = catalogue::MIN_NS, |row| Time(row.figures.min_ns);
        MAX_NS = catalogue::MAX_NS, |row| Time(row.figures.max_ns);
        SLOWDOWN_RATIO = "slowdown_ratio", "over grain", |row| match (row.what, row.grain_ns) {
            ("bt", _) | (_, 0) => None,
            (_, grain) => Some(Factor(row.figures.mean_ns / grain as f64)),
        };
    }
}

fields! {
    /// The fields of a rank.
    RANK, rank: RankPhases {
        RANK = "rank", "rank", |row| Number(row.rank.into());
        NODE = catalogue::NODE, |row| row.node.clone();
        CPU = catalogue::CPU, |row| row.cpu;
        COMPUTE_MEAN_NS = "compute_mean_ns", "qt average", |row| Time::rounded(row.compute.mean_ns);
        COMPUTE_WORST_NS = "compute_worst_ns", "worst 1%", |row| Time::rounded(row.compute.worst_ns);
        COMPUTE_MAX_NS = "compute_max_ns", "max", |row| Time(row.compute.max_ns);
        COLLECTIVE_MEAN_NS = "collective_mean_ns", "bt average", |row| Time::rounded(row.collective.mean_ns);
        COLLECTIVE_WORST_NS = "collective_worst_ns", "worst 1%", |row| Time::rounded(row.collective.worst_ns);
    }
}

impl Report for JobPhases {
    fn schema(&self) -> &'static str {
        "becalm.mpi/1"
    }

    fn document(&self) -> impl Serialize {
        document(self)
    }

    fn view(&self, form: Form) -> Page {
        view::page(self, form)
    }
}

#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
struct JobNode<'a> {
    node: &'a str,
    origin: String,
    complete: bool,
    ranks: usize,
    clock_offset_ns: f64,
    clock_drift_ratio: f64,
    clock_error_ns: f64,
    round_trip_ns: i64,
    round_trips: u64,
}

/// A part of the run: the largest times of its phases, and who was the latest in the longest of them.
#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
struct Span {
    phase: u64,
    phases: u64,
    mean_ns: i64,
    max_ns: i64,
    compute_mean_ns: i64,
    compute_max_ns: i64,
    collective_mean_ns: i64,
    collective_max_ns: i64,
    longest_phase: u64,
    latest_rank: Option<u32>,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub(crate) struct JobDocument<'a> {
    library: &'a str,
    ranks: u32,
    nodes: Vec<JobNode<'a>>,
    grain_ns: i64,
    phases: u64,
    collective: CollectiveCall,
    bytes: u64,
    sched: &'a str,
    rows: Vec<Object<PhaseRow>>,
    by_rank: Vec<Object<RankPhases>>,
    series: Vec<Span>,
    warnings: Vec<String>,
}

/// Builds `becalm.mpi/1`.
fn document(report: &JobPhases) -> JobDocument<'_> {
    let job = job(report);
    let rows = rows(report);
    JobDocument {
        library: &job.library,
        ranks: job.ranks,
        nodes: report.nodes.iter().map(json_node).collect(),
        grain_ns: job.grain_ns.get(),
        phases: job.phases,
        collective: job.collective,
        bytes: job.bytes,
        sched: &job.sched,
        rows: rows.iter().map(Object::new).collect(),
        by_rank: report.ranks.iter().map(Object::new).collect(),
        series: series_document(report),
        warnings: warnings(report),
    }
}

/// The series of all three times in parts.
fn series_document(report: &JobPhases) -> Vec<Span> {
    let Slowest { compute, collective, total, latest } = &report.slowest;
    let mean = |span: &PhaseSpan| span.mean_ns.round() as i64;
    let parts = spans(total, SERIES).into_iter().zip(spans(compute, SERIES)).zip(spans(collective, SERIES));
    let span = |((total, compute), collective): ((PhaseSpan, PhaseSpan), PhaseSpan)| Span {
        phase: total.first,
        phases: total.phases,
        mean_ns: mean(&total),
        max_ns: total.max_ns,
        compute_mean_ns: mean(&compute),
        compute_max_ns: compute.max_ns,
        collective_mean_ns: mean(&collective),
        collective_max_ns: collective.max_ns,
        longest_phase: total.longest,
        latest_rank: latest.get(total.longest as usize).copied(),
    };
    parts.map(span).collect()
}

fn json_node(doc: &PhasesDoc) -> JobNode<'_> {
    let ClockRelationDoc { offset_ns, drift_ratio, error_ns, round_trip_ns, round_trips } = doc.relation;
    JobNode {
        node: &doc.node,
        origin: doc.origin.to_string(),
        complete: doc.complete,
        ranks: doc.ranks.len(),
        clock_offset_ns: offset_ns,
        clock_drift_ratio: drift_ratio,
        clock_error_ns: error_ns,
        round_trip_ns: round_trip_ns.get(),
        round_trips,
    }
}

/// The job, in words.
pub(super) fn job_words(report: &JobPhases) -> String {
    let job = job(report);
    let ends = match job.collective {
        CollectiveCall::None => "no collective".to_owned(),
        CollectiveCall::Barrier => "a barrier".to_owned(),
        sending @ (CollectiveCall::Allreduce | CollectiveCall::Alltoall) => format!("{sending} of {} bytes", job.bytes),
    };
    let compute = match job.grain_ns.get() {
        0 => "no compute phase".to_owned(),
        grain => format!("{} of compute", time(grain)),
    };
    format!(
        "{} on {}, {} phases of {compute} and {ends}, class {}",
        super::ranks(job.ranks),
        nodes(job.nodes),
        job.phases,
        job.sched
    )
}

/// The job, its programs and its nodes, each with a label.
fn heads(report: &JobPhases) -> Vec<(&'static str, String)> {
    let mut heads = vec![("job", job_words(report)), ("library", job(report).library.clone())];
    for doc in &report.nodes {
        let when = doc.origin.strftime("%Y-%m-%d %H:%M:%S UTC");
        heads.push(("node", format!("{}, {when}: {}", doc.node, machine(&doc.machine))));
        if doc.relation.round_trips > 0 {
            heads.push(("clock", relation(&doc.relation)));
        }
    }
    heads
}

/// The relation of a node's clock to that of rank 0, in words.
fn relation(relation: &ClockRelationDoc) -> String {
    let ClockRelationDoc { offset_ns, drift_ratio, error_ns, round_trip_ns, round_trips } = relation;
    format!(
        "rank 0's clock is {} {} at the origin and {} {} ppm, known to {}; {round_trips} round trips, the shortest {}",
        time(offset_ns.abs().round() as i64),
        if *offset_ns < 0.0 { "behind" } else { "ahead" },
        if *drift_ratio < 0.0 { "loses" } else { "gains" },
        three_digits(drift_ratio.abs() * 1e6),
        time(error_ns.ceil() as i64),
        time(round_trip_ns.get())
    )
}

/// A row of bars: the longest phase of each part of the run, scaled between the shortest and the longest of them.
fn series_lines(report: &JobPhases, form: Form) -> Vec<String> {
    const BARS: [char; 8] =
        ['\u{2581}', '\u{2582}', '\u{2583}', '\u{2584}', '\u{2585}', '\u{2586}', '\u{2587}', '\u{2588}'];
    let spans = spans(&report.slowest.total, DRAWN.min(form.width().saturating_sub(4)));
    let ends =
        spans.iter().map(|span| span.max_ns).fold((i64::MAX, 0), |(low, high), max| (low.min(max), high.max(max)));
    let (low, high) = ends;
    if spans.len() < 2 || high <= low {
        return Vec::new();
    }
    let bar = |span: &PhaseSpan| BARS[((span.max_ns - low) as f64 / (high - low) as f64 * 7.0).round() as usize];
    let (each, low, high) = (spans[0].phases, time(low), time(high));
    let bars: String = spans.iter().map(bar).collect();
    vec![
        String::new(),
        format!("  longest qtbt of every {each} phases, in the order of time, from {low} to {high}"),
        format!("  {bars}"),
    ]
}

/// The ranks with the longest compute times first.
fn rank_blocks(report: &JobPhases) -> Vec<Block> {
    let mut ranks: Vec<&RankPhases> = report.ranks.iter().collect();
    let mut lines = vec![String::new()];
    if ranks.len() > RANKS_SHOWN {
        ranks.sort_by(|a, b| b.compute.mean_ns.total_cmp(&a.compute.mean_ns).then(a.rank.cmp(&b.rank)));
        lines.push(format!("  the {RANKS_SHOWN} ranks whose compute phases take longest, of {}", ranks.len()));
    }
    let fields: Vec<&Field<RankPhases>> = RANK.iter().collect();
    let table = Table::filled(&fields, ranks.into_iter().take(RANKS_SHOWN));
    vec![Block::Lines(lines), Block::Table(table)]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report;
    use becalm_bundle::{Contents, Phase, PhaseRun, PhaseWriter};
    use becalm_model::node::{ClockDoc, MachineDoc};
    use becalm_model::phases::RankDoc;
    use becalm_units::{CpuId, Nanos};

    fn doc(node: &str, rank: u32) -> PhasesDoc {
        PhasesDoc {
            schema: becalm_model::phases::SCHEMA.to_owned(),
            node: node.to_owned(),
            program: "becalm-mpi 0.1.0".to_owned(),
            origin: Default::default(),
            complete: true,
            machine: MachineDoc::default(),
            clock: ClockDoc::default(),
            relation: ClockRelationDoc {
                offset_ns: 1_500.0,
                drift_ratio: 2e-6,
                error_ns: 310.0,
                round_trip_ns: Nanos::new(600),
                round_trips: u64::from(rank) * 100,
            },
            job: JobDoc {
                library: "Some MPI 1.0".to_owned(),
                ranks: 2,
                nodes: 2,
                grain_ns: Nanos::from_millis(1),
                phases: 200,
                collective: CollectiveCall::Barrier,
                bytes: 8,
                sched: "other".to_owned(),
            },
            ranks: vec![RankDoc { rank, cpu: CpuId::new(3), iterations: 5, calibrated_ns: Nanos::from_millis(1) }],
            warnings: vec!["a warning".to_owned()],
        }
    }

    #[test]
    fn a_stored_job_is_shown_whole() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("job.becalm");
        for (node, rank) in [("a", 0), ("b", 1)] {
            let doc = doc(node, rank);
            let phases = (0..200).map(|number| {
                let late = if number == 77 && rank == 1 { 100_000 } else { 0 };
                Phase { start_ns: number * 1_010_000, compute_ns: 1_000_000 + late, collective_ns: 10_000 - late / 50 }
            });
            PhaseWriter::create(&path, &doc).unwrap().store(&doc, &[phases.collect()]).unwrap();
        }
        assert_eq!(Contents::read(&path).unwrap(), Contents::Phases);
        let report = JobPhases::from_run(&PhaseRun::open(&path).unwrap()).unwrap();
        let json: serde_json::Value = serde_json::from_str(&report::json(&report)).unwrap();
        assert_eq!(json["schema"], "becalm.mpi/1");
        assert_eq!(json["rows"][0]["what"], "qt");
        assert_eq!(json["rows"][0]["mean_ns"], 1_000_500);
        assert_eq!(json["rows"][0]["worst_ns"], 1_050_000);
        assert_eq!(json["rows"][2]["max_ns"], 1_108_000);
        assert_eq!(json["by_rank"][1]["compute_max_ns"], 1_100_000);
        assert_eq!(json["nodes"][1]["clock_error_ns"], 310.0);
        assert_eq!(json["series"].as_array().unwrap().len(), 200);
        let text = report::text(&report, Form::default());
        for part in
            ["2 ranks on 2 nodes, 200 phases of 1.00ms of compute and a barrier", "! b: a warning", "known to 310ns"]
        {
            assert!(text.contains(part), "{part} in\n{text}");
        }
    }

    #[test]
    fn what_a_job_did_not_measure_is_not_said_to_be_zero() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("job.becalm");
        let doc = PhasesDoc { complete: false, ..doc("a", 0) };
        let phases = vec![Phase { start_ns: 0, compute_ns: 9, collective_ns: 1 }; 200];
        PhaseWriter::create(&path, &doc).unwrap().store(&doc, &[phases]).unwrap();
        let report = JobPhases::from_run(&PhaseRun::open(&path).unwrap()).unwrap();
        // Nor is memory allocated for the number of phases in its document.
        assert!(report.slowest.total.is_empty() && report.ranks.is_empty());
        let json: serde_json::Value = serde_json::from_str(&report::json(&report)).unwrap();
        assert_eq!((json["rows"].as_array().unwrap().len(), json["series"].as_array().unwrap().len()), (0, 0));
        assert!(report::text(&report, Form::default()).contains("it did not come to its end"));
    }
}
