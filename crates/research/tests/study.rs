//! The report of a study with known recordings: its text and its document as snapshots, and its page.

use std::path::Path;

use becalm_bundle::Bundle;
use becalm_report::{Form, Report};
use becalm_research::study::{ConfigurationOutcome, StudyDoc, StudyReport, load, study};
use becalm_scale::collective::Collective;
use becalm_scale::predict::Question;
use becalm_testing::hostile::{STEERING, check_text, forging};
use becalm_testing::page::contents;
use becalm_units::Nanos;
use proptest::prelude::*;

/// Compares the text and the document of a report with the snapshots of that name.
fn check(name: &str, report: &StudyReport<'_>) {
    insta::assert_snapshot!(format!("{name}_text"), becalm_report::text(report, Form::within(Some(100))));
    insta::assert_snapshot!(format!("{name}_json"), without_points(&becalm_report::json(report)));
}

/// A document with only the first point of each list of hundreds.
fn without_points(json: &str) -> String {
    let (mut kept, mut lines) = (String::new(), json.split_inclusive('\n'));
    while let Some(line) = lines.next() {
        kept.push_str(line);
        if line.trim() == "\"over_time\": [" {
            kept.extend(lines.by_ref().take(4));
            kept.push_str("...\n");
            kept.extend(lines.by_ref().find(|line| line.trim() == "],"));
        }
    }
    kept
}

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

/// Checks the report of a study written by `write`.
fn check_study(name: &str, write: fn(&Path)) {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().join("study");
    write(&folder);
    let doc = load(&folder).unwrap();
    let studied = study(&doc, &open(&doc, &folder), &[question()], &[64, 256]).unwrap();
    let report = StudyReport { doc: &doc, studied: &studied, question: question() };
    check(name, &report);
    insta::assert_snapshot!(format!("{name}_page"), page(&report));
}

/// The contents of the page, without the points of its charts.
fn page(report: &StudyReport<'_>) -> String {
    let mut written = Vec::new();
    report.page("becalm 0.0.0").expect("it has a page").write(&mut written).unwrap();
    let contents = contents(&String::from_utf8(written).unwrap());
    contents.lines().filter(|line| !line.starts_with("series-")).map(|line| format!("{line}\n")).collect()
}

#[test]
fn configurations_that_were_recorded_skipped_and_not_reached() {
    check_study("study", becalm_fixtures::write_study);
}

/// Each grain has the rows and curves that it has alone, and the answer is about the first.
#[test]
fn a_study_of_several_grains_is_one_of_each() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().join("study");
    becalm_fixtures::write_study(&folder);
    let doc = load(&folder).unwrap();
    let grains = [1, 5].map(|ms| Question { grain: Nanos::from_millis(ms), ..question() });
    let rows = |questions: &[Question]| -> Vec<Vec<_>> {
        let studied = study(&doc, &open(&doc, &folder), questions, &[64, 256]).unwrap();
        studied.into_iter().map(|studied| studied.map_or_else(Vec::new, |studied| studied.rows)).collect()
    };
    let both = rows(&grains);
    for (at, together) in both.iter().enumerate() {
        let [first, second] = grains.map(|question| rows(&[question]).swap_remove(at));
        assert_eq!(*together, [first, second].concat());
    }
    let studied = study(&doc, &open(&doc, &folder), &grains, &[64, 256]).unwrap();
    let report = StudyReport { doc: &doc, studied: &studied, question: grains[0] };
    let text = becalm_report::text(&report, Form::within(None));
    for words in ["phases of 1ms, 5ms", "at 256 ranks, a job with phases of 1ms", "baseline, 5ms"] {
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
    let mut doc = load(&folder).unwrap();
    for configuration in &mut doc.configurations {
        configuration.outcome = ConfigurationOutcome::Planned;
    }
    let studied = study(&doc, &open(&doc, &folder), &[question()], &[64]).unwrap();
    assert!(studied.iter().all(Option::is_none));
    let report = StudyReport { doc: &doc, studied: &studied, question: question() };
    let text = becalm_report::text(&report, Form::within(None));
    assert!(text.contains("baseline was not reached") && text.contains("nothing was recorded"), "{text}");
    assert!(!text.contains("Noise compared"), "{text}");
    assert!(report.page("becalm 0.0.0").is_some());
}

/// Checks each form of a report's text.
fn is_harmless(report: &StudyReport<'_>) {
    for width in [None, Some(100), Some(40)] {
        for all in [false, true] {
            check_text(&becalm_report::text(report, Form::within(width).with_all(all)));
        }
    }
}

/// Checks the report of a study with names and documents by an attacker who wants to control the reader's terminal.
fn hostile(name: &str) {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().join("study");
    becalm_fixtures::write_study(&folder);
    let mut doc = load(&folder).unwrap();
    (doc.machine.processor, doc.machine.kernel, doc.program) = (name.to_owned(), name.to_owned(), name.to_owned());
    let open = |run: &String| Bundle::open(&folder.join(run)).unwrap();
    let mut bundles: Vec<Vec<Bundle>> =
        doc.configurations.iter().map(|configuration| configuration.runs().iter().map(open).collect()).collect();
    // A configuration with such names of sources.
    for at in &mut bundles[1] {
        let path = folder.join(format!("named-{}", at.path().file_name().unwrap().display()));
        becalm_fixtures::write_named(&path, name);
        *at = Bundle::open(&path).unwrap();
    }
    let studied = study(&doc, &bundles, &[Question { phases: 50, replicas: 2, ..question() }], &[64]).unwrap();
    for configuration in &mut doc.configurations {
        match &mut configuration.outcome {
            ConfigurationOutcome::Recorded { failed, .. } => *failed = Some(name.to_owned()),
            ConfigurationOutcome::Skipped { why } => *why = name.to_owned(),
            ConfigurationOutcome::Planned => {}
        }
        (configuration.what, configuration.sched, configuration.name) =
            (name.to_owned(), name.to_owned(), name.to_owned());
        configuration.command = vec![name.to_owned()];
    }
    is_harmless(&StudyReport { doc: &doc, studied: &studied, question: question() });
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]
    #[test]
    fn no_text_steers_the_terminal_or_forges_a_line(name in STEERING) {
        hostile(&forging(&name));
    }
}
