use becalm_analyze::job::JobPhases;
use becalm_bundle::PhaseRun;
use becalm_model::Estimate;
use becalm_model::validation::{ValidationCell, ValidationDoc};
use becalm_report::{Form, JobGrainsReport, ValidationSweepReport, validate_figure};
use becalm_testing::book::{Holder, book, holds_structure};
use becalm_units::Nanos;

use crate::{check, check_forms, check_page};

#[test]
fn phases_of_a_job() {
    let folder = tempfile::tempdir().unwrap();
    becalm_fixtures::phases::write_phases(folder.path());
    let run = PhaseRun::open(&folder.path().join("job.becalm")).unwrap();
    let report = JobPhases::from_run(&run).unwrap();
    check("mpi", &report);
    check_forms("mpi", &report);
    check_page("mpi", &report);
}

/// One run twice, as two grains would be: each has its line, and what limits both is said once.
#[test]
fn a_job_with_several_grains() {
    let folder = tempfile::tempdir().unwrap();
    becalm_fixtures::phases::write_phases(folder.path());
    let run = PhaseRun::open(&folder.path().join("job.becalm")).unwrap();
    let phases = JobPhases::from_run(&run).unwrap();
    let mut longer = phases.clone();
    longer.nodes.iter_mut().for_each(|doc| doc.job.grain_ns = Nanos::new(2 * doc.job.grain_ns.get()));
    let runs = [("job-1ms.becalm".to_owned(), phases), ("job-2ms.becalm".to_owned(), longer)];
    check("mpi_grains", &JobGrainsReport { runs: &runs });
}

/// Three cells that were measured and one that was not.
fn validation() -> ValidationDoc {
    let estimate = |mean: f64| Some(Estimate { mean, low: mean * 0.98, high: mean * 1.02 });
    let cell = |synchronized, detour_ns, measured, predicted, why_not: Option<&str>| ValidationCell {
        interval_ns: Nanos::from_millis(1),
        detour_ns: Nanos::new(detour_ns),
        synchronized,
        constant_ratio: None,
        requested_ratio: detour_ns as f64 / 1e6,
        delivered_ratio: Some(detour_ns as f64 / 1e6),
        measured,
        predicted,
        why_not: why_not.map(ToOwned::to_owned),
    };
    ValidationDoc {
        library: "Some MPI 1.0".to_owned(),
        ranks: 2,
        nodes: 1,
        collective: "barrier:dissemination".to_owned(),
        grain_ns: Nanos::ZERO,
        sched: "other".to_owned(),
        quiet_phase_ns: 300.5,
        quiet_compute_ns: 0.0,
        cpus: 2,
        quiet: vec![310.0, 320.0],
        unsteady: 1,
        own_noise_ratio: vec![0.01, 0.02],
        network: "L=200ns,o=50ns,g=0ns,G=0.1ns".to_owned(),
        one_way_ns: 290.0,
        fit_factor: 0.75,
        repetitions: 2,
        replicas: 4,
        seed: 1,
        cells: vec![
            cell(false, 200_000, estimate(1.5), estimate(1.65), None),
            cell(false, 16_000, estimate(1.01), estimate(1.01), None),
            cell(true, 200_000, estimate(1.25), estimate(1.25), None),
            cell(true, 1_000, None, None, Some("it is too short")),
        ],
        warnings: vec!["the ranks share a core".to_owned()],
    }
}

#[test]
fn predictions_against_measurements() {
    let report = validation();
    check("mpi_validate", &report);
    check_page("mpi_validate", &report);
    insta::assert_snapshot!("mpi_validate_svg", validate_figure(&report));
}

#[test]
fn the_book_shows_what_is_printed() {
    let printed = becalm_report::text(&validation(), Form::default());
    let shown: Vec<_> = book().into_iter().filter(|shown| shown.holder() == Holder::Report).collect();
    assert_eq!(shown.len(), 1, "{shown:?}");
    holds_structure(&shown[0], "a validation", &printed);
}

#[test]
fn every_measured_cell_is_a_mark() {
    let svg = validate_figure(&validation());
    assert_eq!((svg.matches("<circle").count(), svg.matches("fill=\"#fff\"><title>").count()), (3, 1));
    assert_eq!(svg.matches('<').count(), svg.matches('>').count());
    let marks = |report: &ValidationDoc| {
        let text = becalm_report::text(report, Form::default());
        ['\u{25cf}', '\u{25cb}'].map(|mark| text.matches(mark).count())
    };
    // One of each is in the words above the drawing.
    assert_eq!(marks(&validation()), [3, 2]);
    let nothing = ValidationDoc { cells: Vec::new(), ..validation() };
    assert!(validate_figure(&nothing).starts_with("<svg"));
    assert_eq!(marks(&nothing), [0, 0]);
}

/// The same noises at two grains: each by itself, and all beside each other; a noise that was not measured at one of them leaves a gap.
#[test]
fn validations_of_several_grains() {
    let longer = ValidationDoc { grain_ns: Nanos::from_millis(1), ..validation() };
    let grains = [validation(), longer];
    let report = ValidationSweepReport { grains: &grains };
    let text = becalm_report::text(&report, Form::default());
    assert_eq!(text.matches("\n  job ").count(), 2, "{text}");
    for title in [
        "Slowdown, measured; columns: grain",
        "Slowdown, predicted; columns: grain",
        "Error of the prediction; columns: grain",
    ] {
        assert!(text.contains(title), "{text}");
    }
    let table = text.split("Slowdown, measured").nth(1).unwrap();
    let rows: Vec<Vec<&str>> = table.lines().map(|line| line.split_whitespace().rev().take(2).collect()).collect();
    assert!(rows.contains(&vec!["1.50", "1.50"]) && rows.contains(&vec!["-", "-"]), "{table}");
    assert!(text.contains("Surface: the measured slowdowns as shades"));
    check_page("mpi_validate_sweep", &report);
    let document: serde_json::Value = serde_json::from_str(&becalm_report::json(&report)).unwrap();
    assert_eq!(document["schema"], "becalm.mpi-validate-sweep/1");
    assert_eq!(document["grains"][1]["grain_ns"], 1_000_000);
    assert_eq!(document["grains"][0]["rows"].as_array().map(Vec::len), Some(4));
}
