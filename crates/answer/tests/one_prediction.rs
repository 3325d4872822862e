//! What noise costs a job of many ranks: every command that answers the same question gives the same slowdown, the same interval, and
//! says the same of what the recording may have missed.

use becalm_units::fault;
use std::fmt;
use std::path::{Path, PathBuf};

use becalm_analyze::condense::condense;
use becalm_analyze::noise::NoiseInput;
use becalm_analyze::summary::Selection;
use becalm_answer::noise::NoiseArg;
use becalm_answer::predict::{AskedNoise, PredictQuestion};
use becalm_answer::recording::{report, report_summary};
use becalm_answer::{Asker, Steps};
use becalm_bundle::{Bundle, StoredNodes, SummaryBundle, SummaryWriter};
use becalm_fixtures::mixed::{write_bursts, write_mixed, write_rare, write_stops, write_ticks};
use becalm_fleet::{fleet_cost, survey};
use becalm_report::Report;
use becalm_research::study::{ConfigurationDoc, ConfigurationOutcome, SCHEMA, StudyDoc, study};
use becalm_scale::Alignment;
use becalm_scale::predict::{Prediction, Question, RankPrediction};
use becalm_units::Nanos;
use serde_json::Value;

const GRAIN: Nanos = Nanos::from_millis(1);

/// Keeps the document of an answer.
#[derive(Default)]
struct Reader(Value);

struct Silent;

impl Steps for Silent {
    fn say(&self, _: String) {}
    fn advance(&self, _: u64) {}
    fn reach(&self, _: u64) {}
}

impl Asker for Reader {
    fn show(&mut self, report: &impl Report) -> fault::Result<()> {
        self.0 = serde_json::to_value(report.document()).expect("a document is JSON");
        Ok(())
    }
    fn tell(&self, _: fmt::Arguments<'_>) {}
    fn reading(&self, _: &Bundle, _: u64) -> impl Sized {}
    fn comparing<'a>(&self, _: impl Iterator<Item = &'a Bundle> + Clone) -> impl Sized {}
    fn predicting(&self, _: u64) -> impl Steps {
        Silent
    }
}

/// What a command answers.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Answer {
    slowdown: Option<f64>,
    low: Option<f64>,
    high: Option<f64>,
    missed_every: Option<f64>,
    missed_phases: Option<f64>,
}

impl Answer {
    fn of_document(row: &Value) -> Self {
        let number = |name: &str| row[name].as_f64();
        Self {
            slowdown: number("slowdown_ratio"),
            low: number("slowdown_low"),
            high: number("slowdown_high"),
            missed_every: number("missed_every_ns"),
            missed_phases: number("missed_phases_ratio"),
        }
    }

    fn of_row(row: &RankPrediction) -> Self {
        Self {
            slowdown: row.slowdown.map(|slowdown| slowdown.mean),
            low: row.recording.map(|bounds| bounds.low),
            high: row.recording.and_then(|bounds| bounds.high),
            missed_every: row.missed.map(|missed| missed.every.get() as f64),
            missed_phases: row.missed.map(|missed| missed.phases),
        }
    }
}

/// The question of `becalm predict PATH` without options.
fn predict_question(path: &Path, ranks: &[u64]) -> PredictQuestion {
    PredictQuestion {
        noises: vec![(path.display().to_string(), AskedNoise::Named(NoiseArg::Run(path.to_owned())))],
        selection: Selection::default(),
        ranks: ranks.to_vec(),
        grains: vec![GRAIN],
        phases: 10_000,
        collectives: vec!["ideal".parse().unwrap()],
        network: "infiniband".parse().unwrap(),
        bytes: vec![8],
        ranks_per_node: None,
        alignment: Alignment::Node,
        synchronized: &[false],
        coalesced: vec![Nanos::ZERO],
        without: Vec::new(),
        blame: false,
        tolerated: None,
        node_hours: None,
        seed: 1,
        replicas: 3,
        allow_long: false,
    }
}

fn predicted(question: &PredictQuestion) -> Vec<Answer> {
    let mut reader = Reader::default();
    question.answer(&mut reader).unwrap();
    let rows = reader.0["rows"].as_array().or(reader.0["cells"].as_array()).unwrap();
    rows.iter().map(Answer::of_document).collect()
}

fn reported(bundle: &Bundle, ranks: u64) -> Answer {
    let mut reader = Reader::default();
    report(bundle, &Selection::default(), Some(ranks), &mut reader).unwrap();
    Answer::of_document(&reader.0["summary"]["at_scale"])
}

/// As `becalm study` and the page of a run ask: other replays of the same job.
fn job() -> Question {
    Question {
        grain: GRAIN,
        phases: 500,
        collective: "ideal".parse().unwrap(),
        network: "infiniband".parse().unwrap(),
        bytes: 8,
        per_node: 2,
        synchronized: false,
        seed: 7,
        replicas: 2,
    }
}

/// A study of one configuration.
fn studied(bundle: &Path, ranks: &[u64]) -> Vec<Answer> {
    let configuration = ConfigurationDoc {
        name: "baseline".to_owned(),
        what: String::new(),
        cpus: "0-1".parse().unwrap(),
        idle: "".parse().unwrap_or_default(),
        sched: "other".to_owned(),
        command: Vec::new(),
        outcome: ConfigurationOutcome::Recorded { runs: vec!["one.becalm".to_owned()], failed: None },
    };
    let doc = StudyDoc {
        schema: SCHEMA.to_owned(),
        program: String::new(),
        node: "node".to_owned(),
        begun: "2026-01-02T03:04:05Z".parse().unwrap(),
        machine: Default::default(),
        duration_ns: 1,
        turns: 1,
        configurations: vec![configuration],
    };
    let studied = study(&doc, &[vec![Bundle::open(bundle).unwrap()]], &[job()], ranks).unwrap();
    let studied = studied[0].as_ref().unwrap();
    assert_eq!(studied.turns[0].slowdown, studied.headline().unwrap().slowdown.map(|slowdown| slowdown.mean));
    studied.rows.iter().map(Answer::of_row).collect()
}

/// As `becalm tune plan --gain` and the page of a run ask, of noise with its books.
fn planned(bundle: &Bundle, ranks: &[u64]) -> Vec<Answer> {
    let input = NoiseInput::from_run(bundle, &Selection::default(), true).unwrap();
    let booked = input.booked.as_ref().unwrap();
    let noise = booked.without(&vec![false; booked.sources().len()]).unwrap();
    let prediction = Prediction::new(&noise, job()).unwrap().with_recording();
    ranks.iter().map(|ranks| Answer::of_row(&prediction.row(*ranks).unwrap())).collect()
}

/// The summary form of a recording.
fn condensed(bundle: &Bundle, path: &Path) -> SummaryBundle {
    let digest = condense(bundle, &bundle.nodes()[0].node).unwrap();
    SummaryWriter::create(path, &digest).unwrap();
    SummaryBundle::open(path).unwrap()
}

/// Ticks, rare long detours, bursts, stops of all CPUs at once, and all sorts of noise.
fn recordings(folder: &Path) -> Vec<PathBuf> {
    let paths = ["ticks", "rare", "bursts", "stops", "mixed"].map(|name| folder.join(format!("{name}.becalm")));
    write_ticks(&paths[0]);
    write_rare(&paths[1]);
    write_bursts(&paths[2]);
    write_stops(&paths[3]);
    write_mixed(&paths[4], 1);
    paths.to_vec()
}

#[test]
fn every_command_gives_one_answer_to_one_question() {
    const RANKS: [u64; 3] = [64, 1 << 10, 1 << 13];
    let folder = tempfile::tempdir().unwrap();
    let mut bounded = 0;
    for path in recordings(folder.path()) {
        let bundle = Bundle::open(&path).unwrap();
        let answers = RANKS.map(|ranks| reported(&bundle, ranks));
        assert!(answers.iter().all(|answer| answer.slowdown.is_some_and(|slowdown| slowdown > 1.0)), "{answers:?}");
        let plain = predict_question(&path, &RANKS);
        let short = PredictQuestion { phases: 200, replicas: 2, seed: 9, ..plain.clone() };
        let sweep = PredictQuestion { noises: [plain.noises.clone(), plain.noises.clone()].concat(), ..short.clone() };
        let blamed = PredictQuestion { blame: true, ..short.clone() };
        let swept = predicted(&sweep);
        let others = [
            ("predict", predicted(&plain)),
            ("predict with other replays", predicted(&short)),
            ("predict --blame", predicted(&blamed)),
            ("a sweep", swept[..3].to_vec()),
            ("the same noise in a sweep", swept[3..].to_vec()),
            ("study", studied(&path, &RANKS)),
            ("tune plan", planned(&bundle, &RANKS)),
        ];
        for (command, other) in others {
            assert_eq!(other, answers, "{command} of {}", path.display());
        }
        bounded += answers.iter().filter(|answer| answer.high.is_some()).count();
        let missed = |answer: &Answer| answer.missed_every.is_some() == (answer.high.is_none() && answer.low.is_some());
        assert!(answers[1..].iter().all(missed), "{answers:?}");
    }
    assert!(bounded > 0, "no interval has an upper end");
}

/// Of a summary form there is no interval, and all say the same of what it may have missed.
#[test]
fn every_command_gives_one_answer_of_a_summary_form() {
    const RANKS: u64 = 1 << 10;
    let folder = tempfile::tempdir().unwrap();
    for path in recordings(folder.path()) {
        let short = path.with_extension("summary.becalm");
        let summary = condensed(&Bundle::open(&path).unwrap(), &short);
        let mut reader = Reader::default();
        report_summary(&summary, &Selection::default(), None, &mut reader).unwrap();
        let answer = Answer::of_document(&reader.0["summary"]["at_scale"]);
        assert!(answer.low.is_none() && answer.slowdown.is_some(), "{answer:?}");
        assert_eq!(predicted(&predict_question(&short, &[RANKS])), [answer], "predict of {}", short.display());
        let nodes = [StoredNodes::open(&short).unwrap()];
        let cost = fleet_cost(&nodes, &survey(&nodes).unwrap(), GRAIN, &[RANKS], None).unwrap();
        let size = &cost.sizes[0];
        let every = size.missed.map(|missed| missed.every.get() as f64);
        assert_eq!(
            (Some(size.slowdown), every),
            (answer.slowdown, answer.missed_every),
            "fleet predict of {}",
            short.display()
        );
    }
}
