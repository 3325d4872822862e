//! What each command has to say of documents and bundles with known contents: its text and its JSON document, as snapshots.

mod audit;
mod check;
mod compare;
mod hostile;
mod law;
mod mpi;
mod predict;
mod record;
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

/// Holds the page of a report against its snapshot: what stands in it as it is marked up, and below that each chart on a line.
fn check_page(name: &str, report: &impl Report) {
    insta::assert_snapshot!(format!("{name}_page"), becalm_testing::page::contents(&written(report)));
}

/// Holds the Markdown of a report against its snapshot.
fn check_markdown(name: &str, report: &impl Report) {
    insta::assert_snapshot!(
        format!("{name}_markdown"),
        becalm_report::markdown(report, false).expect("it has sections")
    );
}

/// The page of a report.
fn written(report: &impl Report) -> String {
    let mut page = Vec::new();
    report.page("becalm 0.0.0").expect("it has a page").write(&mut page).unwrap();
    String::from_utf8(page).unwrap()
}

/// Bundles with known contents, in a folder that goes with the value.
fn bundles() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    becalm_fixtures::write_all(folder.path());
    folder
}
