//! Texts of every report, where names and documents are made by somebody who wants to steer the reader's terminal.

use becalm_analyze::compare::compare;
use becalm_analyze::job::JobPhases;
use becalm_analyze::noise::NoiseInput;
use becalm_analyze::summary::{Selection, longest, summarize, timelines};
use becalm_analyze::work::summarize_work;
use becalm_bundle::{Bundle, PhaseRun};
use becalm_model::audit::{Ability, Answer, Audit, FirstStep};
use becalm_model::node::Warning;
use becalm_model::validation::ValidationDoc;
use becalm_report::{CompareReport, DetoursReport, Form, PredictReport, Report, RunReport, SourcesReport, WorkReport};
use becalm_scale::blame::{Blame, Removal};
use becalm_scale::closed::{ClosedBooks, CostPart, DearDetour, ReplicaBooks};
use becalm_scale::collective::Collective;
use becalm_scale::predict::{Prediction, Question};
use becalm_scale::replay::ReplayOutcome;
use becalm_testing::hostile::{STEERING, check_text, forging};
use becalm_units::{CpuList, Nanos};
use proptest::prelude::*;

/// Checks each form of a report's text.
fn check(report: &impl Report) {
    becalm_report::markdown(report, true).iter().for_each(|text| check_text(text));
    for width in [None, Some(100), Some(40)] {
        for all in [false, true] {
            check_text(&becalm_report::text(report, Form::within(width).with_all(all)));
        }
    }
}

fn question() -> Question {
    Question {
        grain: Nanos::from_millis(1),
        phases: 50,
        collective: Collective::Ideal,
        network: "infiniband".parse().unwrap(),
        bytes: 8,
        per_node: 1,
        synchronized: false,
        seed: 1,
        replicas: 2,
    }
}

fn of_a_recording(name: &str) {
    let folder = tempfile::tempdir().unwrap();
    let everything = Selection::default();
    becalm_fixtures::write_named(&folder.path().join("run.becalm"), name);
    let bundle = Bundle::open(&folder.path().join("run.becalm")).unwrap();
    let summary = summarize(&bundle, &everything).unwrap();
    check(&RunReport { summary: &summary, drawn: None, at_scale: true });
    for per_cpu in [false, true] {
        check(&SourcesReport { summary: &summary, per_cpu });
    }
    let detours = longest(&bundle, &everything, 3).unwrap();
    check(&DetoursReport { timelines: &timelines(&bundle, &detours).unwrap() });
    let mut comparison = compare((&bundle, &everything), (&bundle, &everything)).unwrap();
    (comparison.a.runs[0].path, comparison.b.runs[0].path) = (name.into(), name.into());
    check(&CompareReport { comparison: &comparison, checks: &[] });

    let warning = Warning { code: name.to_owned(), message: name.to_owned(), advice: name.to_owned() };
    let input = NoiseInput::from_run(&bundle, &everything, false).unwrap();
    let prediction = Prediction::new(&input.noise, question()).unwrap();
    let rows = [4, 64].map(|ranks| prediction.row(ranks).unwrap());
    let without = |slowdown, sources| Removal { ranks: 64, sources, slowdown, gain: None };
    let dear = DearDetour {
        cpu: 0,
        start: Nanos::from_secs(1),
        duration: Nanos::from_micros(7),
        cost: Nanos::from_micros(9),
        sources: vec![
            CostPart { source: Some(0), time: Nanos::from_micros(8) },
            CostPart { source: None, time: Nanos::from_micros(1) },
        ],
    };
    let outcome = ReplayOutcome {
        phases: 50,
        grain: Nanos::from_millis(1),
        total: Nanos::from_millis(100),
        worst_phase: Nanos::from_millis(2),
        delayed: 50,
    };
    let quiet = Nanos::from_millis(50);
    let added = vec![Nanos::from_millis(49), Nanos::from_millis(1)];
    let replica = ReplicaBooks { outcome, quiet, added, hidden: Nanos::ZERO };
    let books = ClosedBooks { ranks: 64, replicas: vec![replica], dearest: vec![dear] };
    let blame = Blame {
        all: without(2.0, Vec::new()),
        books: Some(books),
        each: vec![without(1.5, vec![0])],
        next: vec![without(1.5, vec![0]), without(1.2, vec![0, 0])],
    };
    check(&PredictReport {
        name,
        noise: &input.noise,
        summary: false,
        of_threads: false,
        without: &[name.to_owned()],
        question: question(),
        rows: &rows,
        blame: &[(Nanos::from_millis(1), vec![blame])],
        sources: &[name.to_owned()],
        places: &[(name.to_owned(), 3)],
        tolerance: None,
        node_hours: None,
        warnings: &[warning],
    });
}

fn of_work_and_jobs(name: &str) {
    let folder = tempfile::tempdir().unwrap();
    let text = || name.to_owned();
    becalm_fixtures::write_all(folder.path());
    let bundle = Bundle::open(&folder.path().join("samples.becalm")).unwrap();
    let mut work = summarize_work(&bundle, &Selection::default(), None).unwrap();
    work.path = name.into();
    for node in &mut work.nodes {
        (node.machine.processor, node.machine.kernel, node.settings.sched) = (text(), text(), text());
        node.warnings.push(Warning { code: text(), message: text(), advice: text() });
        if let Some(work) = &mut node.settings.work {
            (work.body, work.iteration) = (text(), text());
        }
    }
    check(&WorkReport { runs: &[work] });

    let jobs = tempfile::tempdir().unwrap();
    becalm_fixtures::phases::write_phases(jobs.path());
    let mut job = JobPhases::from_run(&PhaseRun::open(&jobs.path().join("job.becalm")).unwrap()).unwrap();
    for node in &mut job.nodes {
        (node.job.library, node.job.sched) = (text(), text());
        (node.machine.processor, node.machine.kernel, node.warnings) = (text(), text(), vec![text()]);
    }
    check(&job);
}

fn of_the_machine_and_jobs(name: &str) {
    let text = || name.to_owned();
    check(&Audit {
        node: text(),
        kernel: text(),
        processor: text(),
        answers: vec![
            Answer::available(Ability::Counter, name),
            Answer::limited(Ability::Cpus, name, name, name),
            Answer::missing(Ability::TraceClock, name, "", name),
        ],
        measurable: "0-1".parse().unwrap(),
        isolated: CpuList::default(),
        first_steps: vec![FirstStep { command: "becalm record".to_owned(), why: text() }],
    });
    check(&ValidationDoc {
        library: text(),
        ranks: 2,
        nodes: 1,
        collective: text(),
        grain_ns: Nanos::ZERO,
        sched: text(),
        quiet_phase_ns: 300.5,
        quiet_compute_ns: 0.0,
        cpus: 2,
        quiet: vec![310.0],
        unsteady: 1,
        own_noise_ratio: vec![0.01],
        network: text(),
        one_way_ns: 290.0,
        fit_factor: 0.75,
        repetitions: 2,
        replicas: 4,
        seed: 1,
        cells: Vec::new(),
        warnings: vec![text()],
    });
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]
    #[test]
    fn no_text_steers_the_terminal_or_forges_a_line(name in STEERING) {
        let name = forging(&name);
        of_a_recording(&name);
        of_work_and_jobs(&name);
        of_the_machine_and_jobs(&name);
    }
}
