use becalm_analyze::limits::{self, Limits};
use becalm_analyze::summary::{Selection, summarize};
use becalm_bundle::Bundle;
use becalm_report::CheckReport;

use crate::{bundles, check_markdown};

/// The files and the comment for CI, of a recording with a limit that is exceeded, one that holds, and others that lack data.
#[test]
fn files_for_ci() {
    let folder = bundles();
    let bundle = Bundle::open(&folder.path().join("quieter.becalm")).unwrap();
    let mut summary = summarize(&bundle, &Selection::default()).unwrap();
    summary.path = "a quieter.becalm".into();
    // As others may name their threads.
    summary.cpu_sources.iter_mut().for_each(|source| source.source.push_str("<&\u{1b}"));
    let limits = Limits { max_noise: Some("0.02%".parse().unwrap()), max_detour: Some("5us".parse().unwrap()) };
    let rows = limits::check(&summary, &limits);
    let report = CheckReport { summary: &summary, rows: &rows };
    assert!(report.is_exceeded());
    insta::assert_snapshot!("check_junit", report.junit());
    insta::assert_snapshot!("check_sarif", report.sarif("becalm 0.0.0"));
    check_markdown("check", &report);
    let asked = becalm_report::markdown(&report, false).unwrap().matches("Do the limits hold?").count();
    assert_eq!(asked, 1);
}
