use becalm_analyze::summary::{Selection, summarize};
use becalm_bundle::{Bundle, study};
use becalm_model::study::ConfigurationOutcome;
use becalm_report::{Report, Studied, StudyReport};
use becalm_scale::collective::Collective;
use becalm_scale::predict::Question;
use becalm_units::Nanos;

use crate::check;

#[test]
fn configurations_that_were_recorded_skipped_and_not_reached() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().join("study");
    becalm_fixtures::write_study(&folder);
    let doc = study::load(&folder).unwrap();
    let studied = doc.configurations.iter().map(|configuration| match &configuration.outcome {
        ConfigurationOutcome::Recorded { run } => {
            let bundle = Bundle::open(&folder.join(run)).unwrap();
            let summary = summarize(&bundle, &Selection { node: None, cpus: None, with_self: false }).unwrap();
            Some(Studied { summary, rows: Vec::new(), warnings: Vec::new() })
        }
        _ => None,
    });
    let studied: Vec<Option<Studied>> = studied.collect();
    let question = Question {
        grain: Nanos::from_millis(1),
        phases: 100,
        collective: Collective::Ideal,
        network: "infiniband".parse().unwrap(),
        bytes: 8,
        per_node: 1,
        synchronized: false,
        seed: 1,
        replicas: 1,
    };
    let report = StudyReport { doc: &doc, studied: &studied, question };
    check("study", &report);
    assert!(report.page("becalm 0.0.0").is_some());
}
