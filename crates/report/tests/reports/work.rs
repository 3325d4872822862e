use becalm_analyze::summary::Selection;
use becalm_analyze::work::summarize_work;
use becalm_bundle::Bundle;
use becalm_report::{Report, WorkReport};

use crate::{bundles, check, check_forms};

#[test]
fn samples_of_work() {
    let folder = bundles();
    let bundle = Bundle::open(&folder.path().join("samples.becalm")).unwrap();
    let mut summary = summarize_work(&bundle, &Selection { node: None, cpus: None, with_self: false }, None).unwrap();
    summary.path = "samples.becalm".into();
    let runs = [summary];
    let report = WorkReport { runs: &runs };
    check("work", &report);
    check_forms("work", &report);
    assert!(report.page("becalm 0.0.0").is_some());
    assert!(WorkReport { runs: &[] }.page("becalm 0.0.0").is_none(), "a page is of one run");
}
