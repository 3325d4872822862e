//! Reports of documents with known contents: their texts and JSON documents, as snapshots.

mod bench;
mod hostile;

use becalm_report::{Form, Report};

/// The contents of the page of a report.
fn page(report: &impl Report) -> String {
    let mut page = Vec::new();
    report.page("becalm 0.0.0").expect("it has a page").write(&mut page).unwrap();
    becalm_testing::page::contents(&String::from_utf8(page).unwrap())
}

/// Compares the text, the document and the page of a report with the snapshots of that name.
fn check(name: &str, report: &impl Report) {
    insta::assert_snapshot!(format!("{name}_text"), becalm_report::text(report, Form::within(Some(100))));
    insta::assert_snapshot!(format!("{name}_json"), becalm_report::json(report));
    insta::assert_snapshot!(format!("{name}_page"), page(report));
}

/// Compares the text alone with its snapshot: with every row, and on a narrow terminal.
fn check_forms(name: &str, report: &impl Report) {
    let all = Form::within(None).with_all(true);
    insta::assert_snapshot!(format!("{name}_all"), becalm_report::text(report, all));
    insta::assert_snapshot!(format!("{name}_narrow"), becalm_report::text(report, Form::within(Some(40))));
}
