//! Texts of every report on tuning, where names and documents are made by somebody who wants to steer the reader's terminal.

use becalm_report::{Form, Report};
use becalm_testing::hostile::{STEERING, check_text, forging};
use becalm_tune::{
    Area, Attempt, BootParameter, Change, Check, Chosen, CpuChoice, Family, Finding, Gain, GainJob, Gains, Knob, Note,
    Outcome, Plan, PredictedSlowdown, Profile, Severity, Stage, StepGain, TuneAuditReport, TuneDoing, TuneDoneReport,
    TunePlanReport,
};
use becalm_units::{CpuList, Nanos};
use proptest::prelude::*;

use crate::page;

/// Checks each form of a report's text, and gives its page.
fn check(report: &impl Report) -> String {
    for width in [None, Some(100), Some(40)] {
        for all in [false, true] {
            check_text(&becalm_report::text(report, Form::within(width).with_all(all)));
        }
    }
    page(report)
}

/// Checks the texts of all reports on tuning, and gives their pages.
fn check_tuning(name: &str) -> Vec<String> {
    let text = || name.to_owned();
    let change = Change {
        family: Family::Affinity,
        knob: Knob::Affinity { tid: 7, start_ticks: 0, comm: name.into() },
        from: name.into(),
        to: name.into(),
        or_else: Vec::new(),
        after: false,
        reason: name.into(),
        risk: Some(name.into()),
        removes: Vec::new(),
    };
    let group = Change { knob: Knob::Group { path: name.into() }, ..change.clone() };
    let plan = Plan {
        cpus: "1".parse().unwrap(),
        left_idle: CpuList::default(),
        siblings: CpuList::default(),
        housekeeping: "0".parse().unwrap(),
        profile: Profile::Hpc,
        steps: vec![change.clone(), group],
        boot: vec![BootParameter {
            name: text(),
            value: Some(text()),
            from: Some(text()),
            reason: text(),
            risk: Some(text()),
        }],
        notes: vec![Note { family: Family::Affinity, text: text() }],
    };
    let without = PredictedSlowdown { mean: 1.25, low: Some(1.2), high: None };
    let job = GainJob { grain: Nanos::from_millis(1), ranks: 64 };
    let gaining = StepGain { sources: vec![text()], without: vec![(job, without)] };
    let steps = vec![gaining.clone(), gaining];
    let total = vec![Gain { job, slowdown: without, without }];
    let gains = Gains { run: name.into(), total, steps };
    let plans = [None, Some(&gains)].map(|gains| check(&TunePlanReport { plan: &plan, gains }));
    let done = [TuneDoing::Apply, TuneDoing::Restore, TuneDoing::Status].map(|doing| {
        check(&TuneDoneReport {
            doing,
            stage: Stage::Tuned,
            summary: text(),
            cpus: "1".parse().unwrap(),
            attempts: vec![Attempt::new(change.clone(), name, name, Outcome::Refused).because(name)],
            journal: Some(name.into()),
            advice: None,
        })
    });
    let mut finding = Finding {
        area: Area::Irq,
        severity: Severity::Warning,
        title: text(),
        evidence: Vec::new(),
        fix: None,
        noise: Vec::new(),
        cost: None,
    };
    finding.seen(name, name).fix(name).boot(name);
    let choice = CpuChoice { cpus: "1".parse().unwrap(), chosen: Chosen::Named, others: "0".parse().unwrap() };
    let findings = check(&TuneAuditReport {
        node: name,
        kernel: name,
        processor: name,
        check: &Check { choice, findings: vec![finding] },
        run: Some(std::path::Path::new(name)),
        not_counted: Some(name),
        ticks: &[],
    });
    plans.into_iter().chain(done).chain([findings]).collect()
}

#[test]
fn pages_of_tuning() {
    let pages = check_tuning("NAME");
    insta::assert_snapshot!("plan_page", pages[1]);
    insta::assert_snapshot!("done_page", pages[2]);
    insta::assert_snapshot!("check_page", pages[5]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]
    #[test]
    fn no_text_steers_the_terminal_or_forges_a_line(name in STEERING) {
        let name = forging(&name);
        check_tuning(&name);
    }
}
