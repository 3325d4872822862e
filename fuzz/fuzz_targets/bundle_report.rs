//! Edited bundles of every kind, from the files to the output: read, summarized, written as text, JSON and page, and compared with the
//! original. A damaged bundle gives an error message, never a panic, a hang or excessive memory use.
//!
//! The first line names the bundle, and additional steps: `page`, `compare`, `longest`.
#![no_main]

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use becalm_analyze::compare::compare;
use becalm_analyze::job::JobPhases;
use becalm_analyze::noise::NoiseInput;
use becalm_analyze::picture::picture;
use becalm_analyze::summary::{Books, Detail, Selection, Summary, longest, summarize, summarize_digests, timelines};
use becalm_analyze::work::summarize_work;
use becalm_bundle::{Bundle, Contents, PhaseRun, StoredNodes, SummaryBundle, node_document};
use becalm_cost::documents::CostRun;
use becalm_cost::report::{CostRunReport, TickReport};
use becalm_fleet::{FleetCostReport, FleetReport, fleet_cost, survey};
use becalm_foreign::distribution::DistributionReport;
use becalm_fuzz::bundles::{Valid, valid};
use becalm_fuzz::edits::{self, Edits};
use becalm_fuzz::tree::scratch;
use becalm_fuzz::truths::{check_page, check_report};
use becalm_observe::report::ObservedReport;
use becalm_report::{
    CompareReport, DetoursReport, Drawn, PredictReport, RunReport, Scaling, SourcesReport, WorkReport,
};
use becalm_research::study::{StudyReport, load, study};
use becalm_scale::blame::{BlameWanted, blame};
use becalm_scale::collective::Collective;
use becalm_scale::predict::{Prediction, Question};
use becalm_scale::watch::ReplayWatch;
use becalm_units::Nanos;
use libfuzzer_sys::{fuzz_mutator, fuzz_target};

const WORDS: [&str; 3] = ["page", "compare", "longest"];

const EVERYTHING: Selection = Selection { node: None, cpus: None, with_self: false, detail: Detail::Everything };

/// The numbers of ranks for predicted slowdowns.
const RANKS: [u64; 2] = [64, 1 << 10];

/// A small question, because every input asks it.
fn question() -> Question {
    Question {
        grain: Nanos::from_millis(1),
        phases: 5,
        collective: Collective::Ideal,
        network: "infiniband".parse().expect("a network that is known"),
        bytes: 8,
        per_node: 1,
        synchronized: false,
        seed: 1,
        replicas: 2,
    }
}

/// Shows the contents of the directory.
fn show(path: &Path, valid: &Valid, edits: &Edits) -> anyhow::Result<()> {
    if edits.subject() == "study" {
        return show_study(path, edits);
    }
    match Contents::read(path)? {
        Contents::Campaign => {
            check_report(&TickReport::from_campaign(node_document::load(path, None)?.doc)?);
        }
        Contents::Costs => check_report(&CostRunReport::new(&CostRun::load(path, None)?)),
        Contents::Distribution => {
            let docs = becalm_bundle::load_documents(path, None)?;
            check_report(&DistributionReport { docs: &docs });
        }
        Contents::Observed => {
            let doc = node_document::load(path, None)?.doc;
            check_report(&ObservedReport { doc: &doc, by_group: true, lanes: None });
        }
        Contents::Phases => check_report(&JobPhases::from_run(&PhaseRun::open(path)?)?),
        Contents::Summary => {
            let bundle = SummaryBundle::open(path)?;
            let summary = summarize_digests(&bundle, &EVERYTHING)?;
            check_report(&RunReport { summary: &summary, drawn: None, at_scale: true });
            for per_cpu in [false, true] {
                check_report(&SourcesReport { summary: &summary, per_cpu });
            }
            let drawn = |books| NoiseInput::from_summary(&bundle, &EVERYTHING, books, question().grain);
            let noise = drawn(true).or_else(|_| drawn(false))?;
            let prediction = Prediction::new(&noise.noise, question())?;
            RANKS.iter().try_for_each(|ranks| prediction.row(*ranks).map(drop))?;
            show_fleet(path, edits)?;
        }
        Contents::Recording => {
            let bundle = Bundle::open(path)?;
            if bundle.nodes().iter().any(|doc| doc.settings.work.is_some()) {
                show_work(&bundle, valid, edits)?;
            } else {
                show_detours(&bundle, valid, edits)?;
            }
        }
    }
    Ok(())
}

/// Shows the nodes as a fleet, and their cost for jobs.
fn show_fleet(path: &Path, edits: &Edits) -> anyhow::Result<()> {
    let nodes = [StoredNodes::open(path)?];
    let fleet = survey(&nodes)?;
    check_report(&FleetReport { fleet: &fleet });
    if edits.has("page") {
        check_page(&FleetReport { fleet: &fleet });
    }
    let cost = fleet_cost(&nodes, &fleet, question().grain, &RANKS, None)?;
    check_report(&FleetCostReport { cost: &cost, accounting: None });
    Ok(())
}

fn show_work(bundle: &Bundle, valid: &Valid, edits: &Edits) -> anyhow::Result<()> {
    let baseline = edits.has("compare").then(|| original(valid)).transpose()?;
    let summary = summarize_work(bundle, &EVERYTHING, baseline.as_ref())?;
    let report = WorkReport { runs: &[summary] };
    check_report(&report);
    if edits.has("page") {
        check_page(&report);
    }
    Ok(())
}

fn show_detours(bundle: &Bundle, valid: &Valid, edits: &Edits) -> anyhow::Result<()> {
    let summary = summarize(bundle, &EVERYTHING)?;
    check_report(&RunReport { summary: &summary, drawn: None, at_scale: true });
    for per_cpu in [false, true] {
        check_report(&SourcesReport { summary: &summary, per_cpu });
    }
    if edits.has("longest") {
        let timelines = timelines(bundle, &longest(bundle, &EVERYTHING, 5)?)?;
        check_report(&DetoursReport { timelines: &timelines });
    }
    if edits.has("compare") {
        let before = original(valid)?;
        let comparison = compare((&before, &EVERYTHING), (bundle, &EVERYTHING))?;
        let report = CompareReport { comparison: &comparison, checks: &[] };
        check_report(&report);
        if edits.has("page") {
            check_page(&report);
        }
    }
    if edits.has("page") {
        show_page(bundle, &summary)?;
    }
    Ok(())
}

/// Writes the page of a run, with its cost for a job.
fn show_page(bundle: &Bundle, summary: &Summary) -> anyhow::Result<()> {
    let picture = picture(bundle, summary, &mut |_| {})?;
    let noise = NoiseInput::from_run(bundle, &EVERYTHING, summary.books == Books::Closed)
        .or_else(|_| NoiseInput::from_run(bundle, &EVERYTHING, false))?;
    let prediction = Prediction::new(&noise.noise, question())?;
    let rows = RANKS.iter().map(|ranks| prediction.row(*ranks)).collect::<Result<Vec<_>, _>>()?;
    let names = noise.booked.as_ref().map_or_else(Vec::new, |booked| booked.sources().to_vec());
    let mut blames = Vec::new();
    if let Some(booked) = &noise.booked {
        let wanted = BlameWanted { without: 1, detours: 3 };
        let found = blame(booked, question(), &RANKS[..1], wanted, &vec![false; names.len()], ReplayWatch::NOBODY)?;
        blames.push((question().grain, found));
    }
    let report = PredictReport {
        name: &noise.name,
        noise: &noise.noise,
        summary: false,
        of_threads: false,
        without: &[],
        question: question(),
        rows: &rows,
        blame: &blames,
        sources: &names,
        places: &noise.places,
        tolerance: None,
        node_hours: None,
        warnings: &noise.warnings,
    };
    check_report(&report);
    let drawn = Some(Drawn { picture: &picture, scaling: Scaling::Predicted(Box::new(report)) });
    check_page(&RunReport { summary, drawn, at_scale: true });
    Ok(())
}

fn show_study(folder: &Path, edits: &Edits) -> anyhow::Result<()> {
    let doc = load(folder).map_err(|error| anyhow::anyhow!("{error}"))?;
    let open = |runs: &[String]| runs.iter().map(|run| Bundle::open(&folder.join(run))).collect::<Result<Vec<_>, _>>();
    let bundles =
        doc.configurations.iter().map(|configuration| open(configuration.runs())).collect::<Result<Vec<_>, _>>()?;
    let studied = study(&doc, &bundles, &[question()], &RANKS).map_err(|error| anyhow::anyhow!("{error}"))?;
    let report = StudyReport { doc: &doc, studied: &studied, question: question() };
    check_report(&report);
    if edits.has("page") {
        check_page(&report);
    }
    Ok(())
}

/// The original bundle, for comparisons.
fn original(valid: &Valid) -> anyhow::Result<Bundle> {
    let folder = scratch().join("before.becalm");
    let _ = fs::remove_dir_all(&folder);
    valid.write(&folder)?;
    Ok(Bundle::open(&folder)?)
}

fuzz_target!(|input: &str| {
    static EDITED: LazyLock<PathBuf> = LazyLock::new(|| scratch().join("edited.becalm"));
    let edits = Edits::parse(input);
    let Some(found) = valid(edits.subject()) else { return };
    let _ = fs::remove_dir_all(&*EDITED);
    if found.write_edited(&edits.applied_to(&found.value), &EDITED).is_ok()
        && let Err(error) = show(&EDITED, found, &edits)
    {
        assert!(!error.to_string().is_empty(), "an error without words");
    }
});

fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    edits::mutate(data, size, max_size, seed, |name| valid(name).map(|valid| &valid.value), &WORDS)
});
