use std::path::Path;

use becalm_bundle::{Bundle, study};
use becalm_model::study::StudyDoc;
use becalm_report::{Report, StudyReport};
use becalm_scale::collective::Collective;
use becalm_scale::predict::Question;
use becalm_units::Nanos;

use crate::check;

fn question() -> Question {
    Question {
        grain: Nanos::from_millis(1),
        phases: 100,
        collective: Collective::Ideal,
        network: "infiniband".parse().unwrap(),
        bytes: 8,
        per_node: 1,
        synchronized: false,
        seed: 1,
        replicas: 1,
    }
}

fn open(doc: &StudyDoc, folder: &Path) -> Vec<Vec<Bundle>> {
    let one = |run: &String| Bundle::open(&folder.join(run)).unwrap();
    doc.configurations.iter().map(|configuration| configuration.runs().iter().map(one).collect()).collect()
}

/// Checks the report of a study that was written so.
fn check_study(name: &str, write: fn(&Path)) {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().join("study");
    write(&folder);
    let doc = study::load(&folder).unwrap();
    let studied = becalm_analyze::study::study(&doc, &open(&doc, &folder), &[question()], &[64, 256]).unwrap();
    let report = StudyReport { doc: &doc, studied: &studied, question: question() };
    check(name, &report);
    assert!(report.page("becalm 0.0.0").is_some());
}

#[test]
fn configurations_that_were_recorded_skipped_and_not_reached() {
    check_study("study", becalm_fixtures::write_study);
}

/// Each grain has the rows and curves that it has alone, and answers are about the first.
#[test]
fn a_study_of_several_grains_is_one_of_each() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().join("study");
    becalm_fixtures::write_study(&folder);
    let doc = study::load(&folder).unwrap();
    let grains = [1, 5].map(|ms| Question { grain: Nanos::from_millis(ms), ..question() });
    let rows = |questions: &[Question]| -> Vec<Vec<_>> {
        let studied = becalm_analyze::study::study(&doc, &open(&doc, &folder), questions, &[64, 256]).unwrap();
        studied.into_iter().map(|studied| studied.map_or_else(Vec::new, |studied| studied.rows)).collect()
    };
    let both = rows(&grains);
    for (at, together) in both.iter().enumerate() {
        let [first, second] = grains.map(|question| rows(&[question]).swap_remove(at));
        assert_eq!(*together, [first, second].concat());
    }
    let studied = becalm_analyze::study::study(&doc, &open(&doc, &folder), &grains, &[64, 256]).unwrap();
    let report = StudyReport { doc: &doc, studied: &studied, question: grains[0] };
    let text = becalm_report::text(&report, becalm_report::Form::within(None));
    for words in ["phases of 1ms, 5ms", "at 256 ranks a job with phases of 1ms", "baseline, 5ms"] {
        assert!(text.contains(words), "no '{words}' in {text}");
    }
    assert!(report.page("becalm 0.0.0").is_some());
}

#[test]
fn a_study_of_one_turn() {
    check_study("study_of_one_turn", becalm_fixtures::write_study_of_one_turn);
}

/// Nothing was recorded before the study was ended.
#[test]
fn a_study_that_reached_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().join("study");
    becalm_fixtures::write_study(&folder);
    let mut doc = study::load(&folder).unwrap();
    for configuration in &mut doc.configurations {
        configuration.outcome = becalm_model::study::ConfigurationOutcome::Planned;
    }
    let studied = becalm_analyze::study::study(&doc, &open(&doc, &folder), &[question()], &[64]).unwrap();
    assert!(studied.iter().all(Option::is_none));
    let report = StudyReport { doc: &doc, studied: &studied, question: question() };
    let text = becalm_report::text(&report, becalm_report::Form::within(None));
    assert!(text.contains("baseline was not reached") && text.contains("nothing was recorded"), "{text}");
    assert!(!text.contains("Noise against"), "{text}");
    assert!(report.page("becalm 0.0.0").is_some());
}
