//! What stands on pages, as text: who reads only the top of one must see what is wrong with the run, and who sees no charts
//! reads their figures in tables. How pages look is tested in a browser, in `crates/report/tests/browser`.

use std::fs;
use std::path::Path;

use becalm_testing::program::{self, Ended};

fn becalm(arguments: &[&str], folder: &Path) -> Ended {
    let mut command = program::becalm(arguments);
    command.current_dir(folder);
    program::run(command)
}

/// The text of a section of a page.
fn section(page: &str, id: &str) -> String {
    let begin = page
        .find(&format!("<section class=\"card\" id=\"{id}\""))
        .unwrap_or_else(|| panic!("there is no section {id}"));
    let end = page[begin..].find("</section>").expect("it ends");
    page[begin..begin + end].to_owned()
}

fn page(arguments: &[&str], folder: &Path) -> String {
    becalm(&[arguments, &["--html", "page.html"]].concat(), folder).expect(0, &["the page is page.html"]);
    fs::read_to_string(folder.join("page.html")).unwrap()
}

#[test]
fn the_top_of_a_page_says_that_its_run_is_not_whole() {
    let folder = tempfile::tempdir().unwrap();
    becalm_fixtures::write_all(folder.path());
    for (run, said) in [("killed", "did not end"), ("open", "books do not close"), ("busy", "")] {
        let headline = section(&page(&["report", run], folder.path()), "headline");
        for what in ["did not end", "books do not close"] {
            assert_eq!(headline.contains(what), what == said, "{run}: {headline}");
        }
    }
    // Only lost events limit this one: a note to unfold.
    let busy = page(&["report", "busy"], folder.path());
    let headline = section(&busy, "headline");
    assert!(
        headline.contains("1 note on these numbers") && headline.contains("12 of 12,412 trace events"),
        "{headline}"
    );
}

#[test]
fn charts_have_tables_beside_them() {
    let folder = tempfile::tempdir().unwrap();
    becalm_fixtures::write_all(folder.path());
    let page = page(&["report", "busy"], folder.path());
    for (id, captions) in [
        ("detours", &["longest"][..]),
        ("distribution", &["Lengths of all interruptions", "Both functions as figures"]),
        ("sources", &["Sources"]),
        ("cpus", &["The map as figures", "CPUs"]),
        ("scale", &["Predicted slowdown"]),
    ] {
        let section = section(&page, id);
        assert!(section.contains("-chart\""), "{id} has no chart");
        for caption in captions {
            assert!(section.contains(caption), "{id} has no table '{caption}'");
        }
    }
}

/// Predictions, laws and sweeps of both: their figures stand in tables, with every chart beside them.
#[test]
fn predictions_and_laws_have_pages() {
    let folder = tempfile::tempdir().unwrap();
    becalm_fixtures::write_all(folder.path());
    let noises = "periodic:interval={1ms,10ms},detour={16us,50us}";
    let (few, formula) = (["--ranks", "16,64,256", "--phases", "100"], "poisson:rate=10Hz,detour=100us");
    let law = ["predict", "--law", "--grain", "1ms", "--delay", "50us", "--probability", "0.01%"];
    let grains = ["predict", "--law", "--grain", "1ms,10ms", "--delay", "1ms", "--rate", "0.1Hz"];
    for (arguments, charts, captions) in [
        (
            [&["predict", "busy", "--blame"], &few[..]].concat(),
            &["slowdown", "phases-1", "blame-1"][..],
            &["Predicted slowdown"][..],
        ),
        (
            [&["predict", formula, "--grain", "1ms,10ms", "--tolerate", "5%"], &few[..]].concat(),
            &["slowdown", "phases-2"],
            &["Durations of phases"],
        ),
        (
            [&["predict", noises, "--sync=both"], &few[..]].concat(),
            &["slowdown-1", "slowdown-2", "surface", "phase-1"],
            &["All cells", "Noises"],
        ),
        (law.to_vec(), &["slowdown"], &["The law for each number of ranks"]),
        (
            [&grains[..], &["--tolerate", "5%"]].concat(),
            &["slowdown-1", "surface", "tolerance-surface"],
            &["Slowdown by the law"],
        ),
    ] {
        let page = page(&arguments, folder.path());
        for id in charts {
            assert!(page.contains(&format!("id=\"{id}-chart\"")), "{arguments:?} has no chart {id}");
        }
        for caption in captions {
            assert!(page.contains(&format!("<caption>{caption}")), "{arguments:?} has no table '{caption}'");
        }
    }
    let both = [&law[..], &["--html", "page.html", "--json"]].concat();
    becalm(&both, folder.path()).expect(2, &["cannot be used with"]);
    // Whether the file can be made is known before anything is computed.
    let nowhere =
        [&["predict", formula, "--html", "none/page.html", "--allow-long"][..], &["--phases", "100M"]].concat();
    becalm(&nowhere, folder.path()).expect(1, &["none/page.html"]);
}

/// What `becalm-mpi` and `becalm cost` stored.
#[test]
fn measured_jobs_and_costs_have_pages() {
    let folder = tempfile::tempdir().unwrap();
    let [jobs, costs] = ["jobs", "costs"].map(|name| folder.path().join(name));
    [&jobs, &costs].into_iter().for_each(|folder| fs::create_dir(folder).unwrap());
    becalm_fixtures::phases::write_phases(&jobs);
    becalm_fixtures::costs::write_costs(&costs);
    for (run, charts) in [
        ("jobs/job", &["compute", "total", "collective", "histogram", "survival", "latest-ranks", "latest-map"][..]),
        ("jobs/half", &["total"]),
        ("costs/trap", &["costs"]),
        ("costs/catalogue", &["costs"]),
        ("costs/clock", &["readings", "steps"]),
        ("costs/scheduler", &["overhead", "switches", "ticks"]),
        ("costs/interrupted", &["overhead"]),
        ("costs/placement", &["placed"]),
    ] {
        let page = page(&["report", run], folder.path());
        for id in charts {
            assert!(page.contains(&format!("id=\"{id}-chart\"")), "{run} has no chart {id}");
        }
    }
    assert!(section(&page(&["report", "jobs/half"], folder.path()), "machine").contains("only 2 of 4 ranks are here"));
    becalm(&["report", "jobs/begun", "--html", "begun.html"], folder.path()).expect(1, &["the job ended before"]);
    assert!(!folder.path().join("begun.html").exists());
}

/// Whatever kind of run it is, a page is made or refused, and no half of one is left.
#[test]
fn a_run_of_work_makes_no_page_of_detours() {
    let folder = tempfile::tempdir().unwrap();
    becalm_fixtures::write_all(folder.path());
    becalm(&["report", "samples", "--html", "work.html"], folder.path()).expect(0, &[]);
    becalm(&["report", "samples"], folder.path()).expect(0, &[]);
    let compared = becalm(&["compare", "busy", "samples", "--html", "both.html"], folder.path());
    compared.expect(1, &["samples.becalm holds samples of work and no detours"]);
    assert!(!folder.path().join("both.html").exists());
}
