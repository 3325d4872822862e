//! The book's commands are run, and what they print is held against what the book shows.
//!
//! What follows from the command alone must be there word for word. What was measured on the author's machine is held against
//! a bundle made here, in its structure: the tables with their columns, the titles and the labels. Each command has its holder,
//! in `becalm_testing::book`.

use std::fs;
use std::path::Path;

use becalm_testing::book::{Holder, book, faults, holds_exactly};
use becalm_testing::program::becalm;

#[test]
fn what_the_book_shows_is_what_is_printed() {
    let folder = tempfile::tempdir().unwrap();
    crate::write_inputs(folder.path());
    fs::write(folder.path().join("detours.txt"), "1000 200\n5000 300\n").unwrap();
    fs::create_dir(folder.path().join("units")).unwrap();
    // Other bundles of jobs bear names of those above.
    let jobs = tempfile::tempdir().unwrap();
    becalm_fixtures::phases::write_phases(jobs.path());
    let (mut held, mut missing) = (0, Vec::new());
    for shown in book() {
        match shown.holder() {
            Holder::Exactly => {
                holds_exactly(&shown, &run(shown.command.trim_start_matches("becalm "), folder.path()).0)
            }
            Holder::As(command) => {
                let place =
                    if ["report job", "compare job rr80"].contains(&command) { jobs.path() } else { folder.path() };
                let (results, messages) = run(command, place);
                missing.extend(faults(&shown, command, &(results + &messages)));
            }
            Holder::Root | Holder::Report | Holder::Reader => continue,
        }
        held += 1;
    }
    assert!(missing.is_empty(), "{}", missing.join("\n"));
    assert!(held >= 40, "only {held} commands of the book were run");
}

/// What becalm prints: its results, and its messages. It must end well.
fn run(line: &str, folder: &Path) -> (String, String) {
    let arguments: Vec<&str> = line.split(' ').collect();
    let output = becalm(&arguments).current_dir(folder).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (results, messages) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "'{line}' ends with {}: {messages}", output.status);
    (results, messages)
}
