//! Reports of documents with known contents: their texts and JSON documents, as snapshots.

mod hostile;
mod run_quiet;

use becalm_report::{Form, Report};

/// Compares the text and the document of a report with the snapshots of that name.
fn check(name: &str, report: &impl Report) {
    insta::assert_snapshot!(format!("{name}_text"), becalm_report::text(report, Form::within(Some(100))));
    insta::assert_snapshot!(format!("{name}_json"), becalm_report::json(report));
}

/// Compares the text alone with its snapshot: with every row, and on a narrow terminal.
fn check_forms(name: &str, report: &impl Report) {
    let all = Form::within(None).with_all(true);
    insta::assert_snapshot!(format!("{name}_all"), becalm_report::text(report, all));
    insta::assert_snapshot!(format!("{name}_narrow"), becalm_report::text(report, Form::within(Some(40))));
}
