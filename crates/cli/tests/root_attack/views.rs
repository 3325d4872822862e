//! What becalm makes of a file from elsewhere, in each of its views: an answer, or an error in words.

use std::path::Path;
use std::process::Command;

use becalm_testing::PATIENCE;
use becalm_testing::attack::Random;
use becalm_testing::program::{Ended, becalm, path, run_within};
use serde_json::Value;

/// How much memory the readers may take, in bytes.
pub const MEMORY: u64 = 6 << 30;

/// How many views there are.
const VIEWS: usize = 12;

/// Runs becalm with these arguments, and checks how it ends: with an exit code of its own, in time, with a message where it fails,
/// with one JSON document where that is asked for, and with nothing that steers a terminal elsewhere.
#[track_caller]
pub fn answers(arguments: &[&str]) -> Ended {
    answers_as(becalm(arguments))
}

/// The same of a whole command.
#[track_caller]
pub fn answers_as(mut command: Command) -> Ended {
    // No part of the memory's files is the test's.
    command.env("RUST_BACKTRACE", "0");
    let shown = format!("{command:?}");
    let is_json = command.get_args().any(|word| word == "--json");
    let ended = run_within(command, PATIENCE).unwrap_or_else(|| panic!("{shown} does not end"));
    assert!((0..=3).contains(&ended.code) && !ended.stderr.contains("panicked"), "{shown}: {ended:#?}");
    assert!(ended.code == 0 || ended.code == 3 || !ended.stderr.trim().is_empty(), "{shown} fails without a word");
    if is_json && ended.code == 0 {
        let document: Result<Value, _> = serde_json::from_str(&ended.stdout);
        assert!(document.is_ok(), "{shown}: no JSON document: {}", ended.stdout);
    } else {
        assert_eq!(becalm_units::printable_lines(&ended.stdout), ended.stdout, "{shown}");
    }
    assert_eq!(becalm_units::printable_lines(&ended.stderr), ended.stderr, "{shown}");
    ended
}

/// Puts a bundle through so many of its views, beside a whole one; tells how many could make something of it.
#[track_caller]
pub fn views(count: usize, bundle: &Path, whole: &Path, scratch: &Path, random: &mut Random) -> usize {
    let first = random.below(VIEWS);
    // 4 and 11 have no common divisor, so that each view comes once.
    (0..count).filter(|number| view((first + 4 * number) % VIEWS, bundle, whole, scratch).code == 0).count()
}

/// Puts a bundle through every view.
#[track_caller]
pub fn all_views(bundle: &Path, whole: &Path, scratch: &Path) -> usize {
    (0..VIEWS).filter(|number| view(*number, bundle, whole, scratch).code == 0).count()
}

#[track_caller]
fn view(number: usize, bundle: &Path, whole: &Path, scratch: &Path) -> Ended {
    let (bundle, whole) = (path(bundle), path(whole));
    let (page, noise) = (scratch.join("page.html"), scratch.join("noise.txt"));
    let views: [&[&str]; VIEWS] = [
        &["report", bundle],
        &["report", bundle, "--full"],
        &["report", bundle, "--json"],
        &["report", bundle, "--html", path(&page)],
        &["report", "--sources", bundle],
        &["detours", bundle, "--longest", "5"],
        &["report", "--sources", bundle, "--per-cpu", "--json"],
        &["compare", bundle, whole],
        &["compare", whole, bundle, "--json"],
        &["predict", bundle, "--ranks", "64", "--phases", "50", "--replicas", "2"],
        &["predict", bundle, "--ranks", "64", "--phases", "20", "--replicas", "2", "--blame", "--json"],
        &["export", "--to", "loggopsim", bundle, "-o", path(&noise)],
    ];
    answers(views[number])
}
