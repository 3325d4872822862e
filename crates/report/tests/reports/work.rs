use becalm_analyze::summary::Selection;
use becalm_analyze::work::summarize_work;
use becalm_bundle::Bundle;
use becalm_report::{Form, WorkReport};

use crate::{bundles, check, check_forms, check_page};

#[test]
fn samples_of_work() {
    let folder = bundles();
    let bundle = Bundle::open(&folder.path().join("samples.becalm")).unwrap();
    let mut summary = summarize_work(&bundle, &Selection::default(), None).unwrap();
    summary.path = "samples.becalm".into();
    let runs = [summary];
    let report = WorkReport { runs: &runs };
    check("work", &report);
    check_forms("work", &report);
    check_page("work", &report);
}

/// Runs that differ by the body and by the rate of added interrupts, beside each other: what is the same in all stands in no column.
#[test]
fn runs_beside_each_other() {
    let folder = tempfile::tempdir().unwrap();
    becalm_fixtures::work::write_all(folder.path());
    let summary = |name: &str, body: &str, added_hz: u32| {
        let bundle = becalm_bundle::Bundle::open(&folder.path().join(name)).unwrap();
        let mut summary = summarize_work(&bundle, &Selection::default(), None).unwrap();
        for work in summary.nodes.iter_mut().filter_map(|doc| doc.settings.work.as_mut()) {
            body.clone_into(&mut work.body);
            work.added_hz = added_hz;
        }
        summary
    };
    let of_rates = [summary("calm", "sum", 0), summary("work", "sum", 1_000)];
    check_page("work_runs", &WorkReport { runs: &of_rates });
    let text = becalm_report::text(&WorkReport { runs: &of_rates }, Form::default());
    let table = text.split("The recordings compared").nth(1).unwrap();
    let header = table.lines().nth(1).unwrap();
    assert!(header.trim_start().starts_with("added  interrupts"), "{header}");
    assert!(table.contains("over the shortest") && !table.contains("copies"), "{table}");
    assert!(text.contains("with 1,000 more timer interrupts a second"), "{text}");
    let document: serde_json::Value =
        serde_json::from_str(&becalm_report::json(&WorkReport { runs: &of_rates })).unwrap();
    let rows = document["comparison"].as_array().unwrap();
    assert_eq!(rows.iter().map(|row| row["added_hz"].as_f64().unwrap()).collect::<Vec<_>>(), [0.0, 1_000.0]);
    for (row, run) in rows.iter().zip(document["runs"].as_array().unwrap()) {
        let cpu = &run["cpus"][0];
        assert_eq!(
            (&row["mean_ns"], &row["min_ns"], &row["p99_ns"]),
            (&cpu["mean_ns"], &cpu["min_ns"], &cpu["p99_ns"])
        );
        let (mean, min) = (row["mean_ns"].as_f64().unwrap(), row["min_ns"].as_f64().unwrap());
        assert!((row["delay_ratio"].as_f64().unwrap() - (mean / min - 1.0)).abs() < 1e-5, "{row}");
    }
    let of_bodies = [summary("calm", "empty", 0), summary("calm", "sum", 0)];
    let text = becalm_report::text(&WorkReport { runs: &of_bodies }, Form::default());
    let table = text.split("The recordings compared").nth(1).unwrap();
    assert!(table.lines().nth(1).unwrap().trim_start().starts_with("body  "), "{table}");
    // One run is compared with nothing.
    let document: serde_json::Value =
        serde_json::from_str(&becalm_report::json(&WorkReport { runs: &of_rates[..1] })).unwrap();
    assert!(document.get("comparison").is_none());
}
