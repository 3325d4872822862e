//! What each command has to say of documents and bundles with known contents: its text and its JSON document, as snapshots.

mod audit;
mod check;
mod compare;
mod cost;
mod hostile;
mod law;
mod mpi;
mod predict;
mod record;
mod sweep;
mod work;

use std::collections::BTreeMap;

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
    let page = report.page("becalm 0.0.0").expect("it has a page");
    let mut written = Vec::new();
    page.write(&mut written).unwrap();
    let written = String::from_utf8(written).unwrap();
    let between = |begin: &str, end: &str| {
        let (_, rest) = written.split_once(begin).expect(begin);
        rest.split_once(end).expect(end).0.to_owned()
    };
    let charts: BTreeMap<String, serde_json::Value> =
        serde_json::from_str(&between("id=\"data\">", "</script>")).unwrap();
    let ids = written.matches("class=\"chart\"").count();
    assert_eq!(charts.len(), ids, "two charts have one name");
    let charts: Vec<String> = charts.iter().map(|(id, chart)| format!("{id}: {chart}")).collect();
    insta::assert_snapshot!(
        format!("{name}_page"),
        format!("{}\n{}", between("<main id=\"main\">", "</main>").trim(), charts.join("\n"))
    );
}

/// Bundles with known contents, in a folder that goes with the value.
fn bundles() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    becalm_fixtures::write_all(folder.path());
    folder
}
