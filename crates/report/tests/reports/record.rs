use std::path::Path;

use becalm_analyze::summary::{Checked, CpuSummary, Detail, RANKS, Selection, Summary, longest, summarize, timelines};
use becalm_bundle::Bundle;
use becalm_model::node::CounterGrowth;
use becalm_model::warning;
use becalm_report::{DetoursReport, Form, RunReport, SourcesReport, Value};

use crate::{bundles, check, check_forms, check_markdown, check_page};

/// The summary of a bundle, as if it lay in the current folder.
fn summary(folder: &Path, name: &str) -> Summary {
    let bundle = Bundle::open(&folder.join(name)).unwrap();
    let mut summary = summarize(&bundle, &Selection::default().with_detail(Detail::Everything)).unwrap();
    summary.ask_for_ranks(RANKS);
    summary.path = name.into();
    summary
}

#[test]
fn a_recording_with_sources() {
    let folder = bundles();
    let summary = summary(folder.path(), "busy.becalm");
    let report = RunReport { summary: &summary, drawn: None, at_scale: true };
    check("run", &report);
    check_forms("run", &report);
    check_page("run", &report);
    check_markdown("run", &report);
}

#[test]
fn nothing_is_advised_that_the_kernel_cannot_do_or_that_goes_away_with_its_cause() {
    let folder = tempfile::tempdir().unwrap();
    becalm_fixtures::write_ticking(&folder.path().join("ticking.becalm"));
    let summary = summary(folder.path(), "ticking.becalm");
    let text = full(&summary);
    let words: Vec<&str> = text.split_whitespace().collect();
    let advice = "The tick: this kernel cannot stop it because it was built without CONFIG_NO_HZ_FULL";
    assert!(words.join(" ").contains(advice), "{text}");
    assert!(!text.contains("nohz_full="), "{text}");
    let longest = "Longest, 2.50ms at once: softirq timer: 1 time, always charged to another source\n";
    assert!(text.contains(longest), "{text}");
}

/// The full report of a summary.
fn full(summary: &Summary) -> String {
    becalm_report::text(&RunReport { summary, drawn: None, at_scale: true }, Form::within(None).with_all(true))
}

/// The short report of a summary, with or without the cost at scale.
fn short(summary: &Summary, at_scale: bool) -> String {
    becalm_report::text(&RunReport { summary, drawn: None, at_scale }, Form::within(Some(100)))
}

#[test]
fn a_single_long_interruption_makes_a_recording_noisy() {
    let folder = bundles();
    let mut summary = summary(folder.path(), "plain.becalm");
    assert!(short(&summary, false).contains("\nQUIET "));
    summary.total.durations.add(60_000);
    assert!(short(&summary, false).contains("\nNOISY "));
}

#[test]
fn the_source_of_the_longest_interruption_has_a_row() {
    let folder = bundles();
    let mut summary = summary(folder.path(), "busy.becalm");
    let seldom = summary.sources.iter_mut().rfind(|source| source.whole_ns > 0).unwrap();
    seldom.times.add(9_000_000);
    let text = short(&summary, false);
    let rows: Vec<&str> =
        text.lines().skip_while(|line| !line.contains("What took")).take_while(|line| !line.is_empty()).collect();
    assert!(rows.len() == 7 && rows[5].contains("9.00ms") && rows[6].contains("others"), "{text}");
}

#[test]
fn the_cost_at_scale_is_shown_if_asked_for_and_the_report_has_35_lines_at_most() {
    let folder = bundles();
    let mut summary = summary(folder.path(), "busy.becalm");
    assert!(short(&summary, true).contains("At scale") && !short(&summary, false).contains("At scale"));
    let cpus = summary.cpus.clone();
    summary.cpus.extend([&cpus[..], &cpus[..], &cpus[..]].concat());
    let text = short(&summary, false);
    assert!(summary.cpus.len() == 8 && text.lines().count() <= 35, "{} lines:\n{text}", text.lines().count());
}

#[test]
fn a_recording_with_counters_alone() {
    let folder = bundles();
    check("run_counters", &RunReport { summary: &summary(folder.path(), "plain.becalm"), drawn: None, at_scale: true });
}

#[test]
fn the_time_of_the_loops_is_no_growth_of_a_counter() {
    let folder = bundles();
    let mut summary = summary(folder.path(), "plain.becalm");
    let user = |cpu: &CpuSummary| {
        let looped = cpu.figures.duration_ns.unwrap() - cpu.figures.durations.total();
        CounterGrowth { cpu: cpu.cpu, name: "stat/user".to_owned(), growth: looped as u64 + 30_000_000, traced: None }
    };
    summary.nodes[0].doc.counters = summary.cpus.iter().map(user).collect();
    let others = Value::Time(30_000_000 * summary.cpus.len() as i64).cell();
    for text in [short(&summary, false), full(&summary)] {
        let line = text.lines().find(|line| line.contains("stat/user")).unwrap();
        assert_eq!(line.split_whitespace().nth(1), Some(&*others), "{line}");
    }
}

#[test]
fn a_recording_that_did_not_end() {
    let folder = bundles();
    check("run_killed", &RunReport { summary: &summary(folder.path(), "killed.becalm"), drawn: None, at_scale: true });
}

#[test]
fn sources_of_all_and_of_each_cpu() {
    let folder = bundles();
    let summary = summary(folder.path(), "busy.becalm");
    for (name, per_cpu) in [("sources", false), ("sources_per_cpu", true)] {
        check(name, &SourcesReport { summary: &summary, per_cpu });
    }
    check_page("sources", &SourcesReport { summary: &summary, per_cpu: false });
}

#[test]
fn the_longest_detours() {
    let folder = bundles();
    let bundle = Bundle::open(&folder.path().join("busy.becalm")).unwrap();
    let detours = longest(&bundle, &Selection::default(), 3).unwrap();
    check("detours", &DetoursReport { timelines: &timelines(&bundle, &detours).unwrap() });
}

/// What was not compared is said because of the warning, and not because the kernel counted nothing.
#[test]
fn what_was_not_compared_is_what_could_not_be_read() {
    let folder = bundles();
    let mut summary = summary(folder.path(), "busy.becalm");
    let none = summary.checked.as_ref().unwrap().timers;
    let checked = summary.checked.as_mut().unwrap();
    for found in [&mut checked.timers, &mut checked.others] {
        (found.counted, found.found) = (0, 0);
    }
    checked.lacking.clear();
    assert!(none.counted > 0);
    let text = |summary: &Summary| {
        let text = becalm_report::text(
            &RunReport { summary, drawn: None, at_scale: true },
            crate::Form::within(Some(200)).with_all(true),
        );
        let line = text.lines().find(|line| line.trim_start().starts_with("checked")).unwrap();
        line.trim().to_owned()
    };
    let counted = "checked  50 of 50 softirqs that the kernel counted are in the trace";
    assert_eq!(text(&summary), counted);
    summary.nodes[0].doc.warnings.push(warning::not_compared("interrupts", "the file is empty"));
    assert_eq!(text(&summary), format!("{counted}; interrupts are not compared"));

    // A CPU without a tick may see nothing at all.
    summary.checked = Some(Checked::default());
    assert_eq!(text(&summary), "checked  the kernel counted no softirqs; interrupts are not compared");
    summary.nodes[0].doc.warnings.pop();
    assert_eq!(text(&summary), "checked  the kernel counted no interrupts and no softirqs");
}
