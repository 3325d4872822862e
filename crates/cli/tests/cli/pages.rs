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
    // Only lost events limit this one, and that stands at the end.
    let busy = page(&["report", "busy"], folder.path());
    assert!(section(&busy, "headline").contains("1 warning limits"));
    assert!(section(&busy, "machine").contains("12 of 12,412 trace events"));
}

#[test]
fn charts_have_tables_beside_them() {
    let folder = tempfile::tempdir().unwrap();
    becalm_fixtures::write_all(folder.path());
    let page = page(&["report", "busy"], folder.path());
    for (id, captions) in [
        ("detours", &["longest"][..]),
        ("distribution", &["Lengths of all detours", "Both functions as figures"]),
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
