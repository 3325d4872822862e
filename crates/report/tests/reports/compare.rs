use becalm_analyze::compare::{Limit, Metric, compare};
use becalm_analyze::summary::Selection;
use becalm_bundle::Bundle;
use becalm_report::{CompareReport, LimitCheck};

use crate::{bundles, check, check_forms, check_page};

#[test]
fn two_recordings() {
    let folder = bundles();
    let all = Selection::default();
    let open = |name: &str| Bundle::open(&folder.path().join(name)).unwrap();
    let (busy, quieter) = (open("busy.becalm"), open("quieter.becalm"));
    let mut comparison = compare((&busy, &all), (&quieter, &all)).unwrap();
    comparison.a.runs[0].path = "busy.becalm".into();
    comparison.b.runs[0].path = "quieter.becalm".into();
    let checks = [LimitCheck { metric: Metric::NoiseRatio, share: 0.1, outcome: Limit::NotShown }];
    let report = CompareReport { comparison: &comparison, checks: &checks };
    check("compare", &report);
    check_forms("compare", &report);
    check_page("compare", &report);
}
