use becalm_analyze::cost::tick::{Analysis, CampaignAnalysis, TableFile, read_tables};
use becalm_bundle::cost;
use becalm_report::{CostRunReport, Report, TickReport};

use crate::{check, check_page};

#[test]
fn every_stored_measurement_of_costs() {
    let folder = tempfile::tempdir().unwrap();
    becalm_fixtures::costs::write_costs(folder.path());
    for name in ["clock", "trap", "catalogue", "scheduler", "interrupted", "placement"] {
        let run = cost::load(&folder.path().join(format!("{name}.becalm")), None).unwrap();
        let report = CostRunReport::new(&run);
        check(&format!("cost_{name}"), &report);
        check_page(&format!("cost_{name}"), &report);
    }
}

/// The figures of Tsafrir 2007 that the page of a tick draws, of all published processors and of a campaign.
#[test]
fn the_page_of_a_tick_draws_figures_3_to_6() {
    let table = |name, text| TableFile { name, text };
    let sort = table("sort", include_str!("../../../research/data/tsafrir2007_sort.csv"));
    let direct = table("direct", include_str!("../../../research/data/tsafrir2007_direct.csv"));
    let published = read_tables(sort, direct, None).unwrap().iter().map(Analysis::new).collect();
    let campaign = becalm_fixtures::costs::campaign(3);
    let live = CampaignAnalysis::new(&campaign).unwrap();
    for (report, processors) in [(TickReport::of_tables(published), 6), (TickReport::of_campaign(campaign, live), 1)] {
        let page = report.page("becalm 0.0.0").unwrap();
        let mut written = Vec::new();
        page.write(&mut written).unwrap();
        let written = String::from_utf8(written).unwrap();
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
