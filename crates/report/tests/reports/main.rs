//! What each command has to say of documents and bundles with known contents: its text and its JSON document, as snapshots.

mod audit;
mod compare;
mod cost;
mod hostile;
mod inject;
mod law;
mod mpi;
mod predict;
mod record;
mod study;
mod sweep;
mod work;

use becalm_report::{Form, Report};

/// How wide the texts are laid out.
const COLUMNS: usize = 100;

/// Holds the text and the document of a report against the snapshots of that name.
fn check(name: &str, report: &impl Report) {
    let form = Form::within(Some(COLUMNS));
    insta::assert_snapshot!(format!("{name}_text"), becalm_report::text(report, form));
    insta::assert_snapshot!(format!("{name}_json"), becalm_report::json(report));
}

/// Holds the text alone against its snapshot: with every row, and on a narrow terminal.
fn check_forms(name: &str, report: &impl Report) {
    let all = Form::within(None).with_all(true);
    insta::assert_snapshot!(format!("{name}_all"), becalm_report::text(report, all));
    insta::assert_snapshot!(format!("{name}_narrow"), becalm_report::text(report, Form::within(Some(40))));
}

/// Bundles with known contents, in a folder that goes with the value.
fn bundles() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    becalm_fixtures::write_all(folder.path());
    folder
}
