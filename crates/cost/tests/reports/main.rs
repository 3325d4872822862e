//! The reports of `becalm cost` from documents with known contents, as snapshots; and from documents of somebody who wants to steer
//! the reader's terminal.

use becalm_cost::analysis::tick::{Analysis, TableFile, read_tables};
use becalm_cost::documents::CostRun;
use becalm_cost::report::{CostRunReport, TickReport};
use becalm_report::{Form, Report};
use becalm_testing::hostile::{STEERING, check_text, forging};
use proptest::prelude::*;

/// The stored measurements, each with its name.
fn stored() -> Vec<(&'static str, CostRun)> {
    let folder = tempfile::tempdir().unwrap();
    becalm_fixtures::costs::write_costs(folder.path());
    let load = |name| (name, CostRun::load(&folder.path().join(format!("{name}.becalm")), None).unwrap());
    ["clock", "trap", "catalogue", "scheduler", "interrupted", "placement"].map(load).into()
}

fn page(report: &impl Report) -> String {
    let mut page = Vec::new();
    report.page("becalm 0.0.0").expect("it has a page").write(&mut page).unwrap();
    String::from_utf8(page).unwrap()
}

#[test]
fn every_stored_measurement_of_costs() {
    for (name, run) in stored() {
        let report = CostRunReport::new(&run);
        let form = Form::within(Some(100));
        insta::assert_snapshot!(format!("cost_{name}_text"), becalm_report::text(&report, form));
        insta::assert_snapshot!(format!("cost_{name}_json"), becalm_report::json(&report));
        insta::assert_snapshot!(format!("cost_{name}_page"), becalm_testing::page::contents(&page(&report)));
    }
}

/// The figures of Tsafrir 2007 that the page of a tick draws, of all published processors and of a campaign.
#[test]
fn the_page_of_a_tick_draws_figures_3_to_6() {
    let table = |name, text| TableFile { name, text };
    let sort = table("sort", include_str!("../../../research/data/tsafrir2007_sort.csv"));
    let direct = table("direct", include_str!("../../../research/data/tsafrir2007_direct.csv"));
    let published = read_tables(sort, direct, None).unwrap().iter().map(Analysis::new).collect();
    let campaign = TickReport::from_campaign(becalm_fixtures::costs::campaign(3)).unwrap();
    insta::assert_snapshot!("cost_tick_text", becalm_report::text(&campaign, Form::within(Some(100))));
    insta::assert_snapshot!("cost_tick_page", becalm_testing::page::contents(&page(&campaign)));
    for (report, processors) in [(TickReport::from_tables(published), 6), (campaign, 1)] {
        let written = page(&report);
        for number in 1..=processors {
            for figure in ["lost", "share", "parts", "model"] {
                let id = format!("\"{figure}-{number}\":");
                assert!(written.contains(&id), "{id}");
            }
        }
        assert!(!written.contains(&format!("\"lost-{}\":", processors + 1)));
        // The other handler is on the page where there is one.
        assert_eq!(written.contains("tsc: trap and handler"), processors == 6);
    }
}

/// Checks each form of a report's text.
fn check_hostile(report: &impl Report) {
    for width in [None, Some(100), Some(40)] {
        for all in [false, true] {
            check_text(&becalm_report::text(report, Form::within(width).with_all(all)));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]
    #[test]
    fn no_text_steers_the_terminal_or_forges_a_line(name in STEERING) {
        let text = || forging(&name);
        for (_, mut run) in stored() {
            (run.doc.machine.processor, run.doc.machine.kernel) = (text(), text());
            (run.doc.cpu_reason, run.doc.sched, run.doc.program) = (text(), text(), text());
            check_hostile(&CostRunReport::new(&run));
        }
        let mut campaign = becalm_fixtures::costs::campaign(3);
        (campaign.machine.processor, campaign.machine.kernel, campaign.plan.sched) = (text(), text(), text());
        campaign.not_counted = vec![text()];
        campaign.warnings = vec![text()];
        check_hostile(&TickReport::from_campaign(campaign).unwrap());
    }
}
