//! The book's commands are run, and what they print is held against what the book shows.
//!
//! What follows from the command alone must be there word for word. What was measured on the author's machine is held against
//! a bundle made here, in its structure: the tables with their columns, the titles and the labels. Nothing that the book shows
//! may be left out here.

use std::path::Path;

use becalm_testing::book::{book, holds_exactly, holds_structure};
use becalm_testing::program::becalm;

/// How a command of the book is held against what is shown.
#[derive(Clone, Copy, Debug)]
enum Held {
    /// It prints this at its beginning, word for word.
    Exactly,
    /// This command, on inputs made here, prints the same structure.
    As(&'static str),
    /// It changes or measures the machine as it is, or takes long, so it is tested in `root_becalm` and by the tests of
    /// `becalm-mpi`.
    Elsewhere,
}

/// How commands are held against the book, by how they begin.
const COMMANDS: &[(&str, Held)] = &[
    ("becalm law ", Held::Exactly),
    ("becalm predict poisson", Held::Exactly),
    ("becalm cost tick --from ", Held::Exactly),
    ("becalm report placement.becalm", Held::As("report placement")),
    ("becalm report quiet.becalm --html", Held::As("report busy --html quiet.html")),
    ("becalm report quiet.becalm", Held::As("report busy")),
    ("becalm sources", Held::As("sources busy --longest 2")),
    ("becalm compare before.becalm after.becalm --html", Held::As("compare busy quieter --html change.html")),
    ("becalm compare", Held::As("compare busy busy --cpus 1")),
    ("becalm cost tick --quick", Held::As("report tick")),
    ("becalm cost scheduler", Held::As("report scheduler")),
    ("becalm cost placement", Held::As("report placement")),
    ("becalm cost clock", Held::As("report clock")),
    ("becalm cost trap", Held::As("report trap")),
    ("becalm cost detours", Held::As("report catalogue")),
    ("becalm work", Held::As("report work")),
    ("mpirun -n 2 becalm-mpi --phases", Held::As("report job")),
    ("becalm tune study", Held::As("tune study --from node1.study --phases 1k")),
    ("becalm tune check", Held::As("tune check --root untuned --cpus 1 --run busy")),
    ("becalm tune plan", Held::As("tune plan --root untuned --cpus 1")),
    ("becalm predict periodic", Held::Elsewhere),
    ("becalm inject", Held::Elsewhere),
    ("becalm tune ", Held::Elsewhere),
    ("mpirun -n 2 becalm-mpi validate", Held::Elsewhere),
];

#[test]
fn what_the_book_shows_is_what_is_printed() {
    let folder = tempfile::tempdir().unwrap();
    crate::write_inputs(folder.path());
    // Other bundles of jobs bear names of those above.
    let jobs = tempfile::tempdir().unwrap();
    becalm_fixtures::phases::write_phases(jobs.path());
    let mut held = 0;
    for shown in book() {
        let known = COMMANDS.iter().find(|(begin, _)| shown.command.starts_with(begin));
        let known = known.map(|(_, held)| *held).or_else(|| (shown.command == "becalm").then_some(Held::Elsewhere));
        let held_how = known.unwrap_or_else(|| panic!("{}: nothing holds '{}'", shown.page, shown.command));
        match held_how {
            Held::Exactly => holds_exactly(&shown, &run(shown.command.trim_start_matches("becalm "), folder.path()).0),
            Held::As(command) => {
                let place = if command == "report job" { jobs.path() } else { folder.path() };
                let (results, messages) = run(command, place);
                holds_structure(&shown, command, &(results + &messages));
            }
            Held::Elsewhere => continue,
        }
        held += 1;
    }
    assert!(held >= 20, "only {held} outputs were found in the book");
}

/// What becalm prints: its results, and its messages.
fn run(line: &str, folder: &Path) -> (String, String) {
    let arguments: Vec<&str> = line.split(' ').collect();
    let output = becalm(&arguments).current_dir(folder).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (text(&output.stdout), text(&output.stderr))
}
