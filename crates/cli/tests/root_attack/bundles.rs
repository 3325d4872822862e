//! Damaged and made up bundles, in every view of them.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use becalm_testing::attack::{Random, Tries, attack_side_by_side, is_full};
use becalm_testing::program::{path, run_becalm, within_memory};
use tempfile::TempDir;

use crate::damage;
use crate::views::{MEMORY, views};

/// A folder in memory, as thousands of files are written that nobody keeps.
pub fn folder() -> TempDir {
    let memory = Path::new("/dev/shm");
    if memory.is_dir() { TempDir::new_in(memory).unwrap() } else { TempDir::new().unwrap() }
}

/// Whole bundles of recordings.
fn recordings(folder: &Path) -> Vec<PathBuf> {
    becalm_fixtures::write_named(&folder.join("named.becalm"), "rcu_sched");
    becalm_fixtures::write_all(folder);
    ["named", "busy", "quiet", "plain", "pair", "killed"].map(|name| folder.join(format!("{name}.becalm"))).to_vec()
}

fn costs(folder: &Path) -> Vec<PathBuf> {
    becalm_fixtures::costs::write_costs(folder);
    let names = ["trap", "clock", "catalogue", "scheduler", "interrupted", "placement", "tick"];
    names.map(|name| folder.join(format!("{name}.becalm"))).to_vec()
}

fn work(folder: &Path) -> Vec<PathBuf> {
    becalm_fixtures::work::write_all(folder);
    ["brief", "workers", "untraced", "quanta"].map(|name| folder.join(format!("{name}.becalm"))).to_vec()
}

/// Damages bundles, one a try, and puts each through three of the views.
fn damaged(
    row: &str,
    tries: Tries,
    whole: fn(&Path) -> Vec<PathBuf>,
    damage: impl Fn(&Path, &Path, &mut Random) + Sync,
) {
    let originals = folder();
    let whole = whole(originals.path());
    for bundle in &whole {
        // Of what is not damaged, a view shows something.
        run_becalm(&["report", path(bundle)]).expect(0, &[]);
    }
    let answered = AtomicUsize::new(0);
    within_memory(MEMORY, || {
        attack_side_by_side(row, tries, |_, random| {
            let scratch = folder();
            let bundle = scratch.path().join("damaged.becalm");
            let (original, other) = (random.one(&whole[..]), random.one(&whole[..]));
            damage::copy(original, &bundle);
            damage(&bundle, other, random);
            let seen = views(3, &bundle, &whole[0], scratch.path(), random);
            answered.fetch_add(seen, Ordering::Relaxed);
        });
    });
    // Of two or three, all may be beyond reading.
    assert!(!is_full() || answered.into_inner() > 0, "no view showed anything of any");
}

#[test]
fn one_value() {
    let row = "bundles with one JSON value replaced or deleted";
    damaged(row, Tries { all: 2_700, few: 3 }, recordings, |bundle, _, random| damage::replace_a_value(bundle, random));
}

#[test]
fn several_numbers() {
    let row = "bundles with several numbers replaced";
    let tries = Tries { all: 2_100, few: 2 };
    damaged(row, tries, recordings, |bundle, _, random| damage::replace_several_numbers(bundle, random));
}

#[test]
fn extremes() {
    let row = "bundles with a plausible extreme value";
    let tries = Tries { all: 2_800, few: 3 };
    damaged(row, tries, recordings, |bundle, _, random| damage::replace_by_an_extreme(bundle, random));
}

#[test]
fn flips_in_tables() {
    let row = "bundles with bits flipped in a Parquet file";
    damaged(row, Tries { all: 3_000, few: 3 }, recordings, |bundle, _, random| damage::flip_in_a_table(bundle, random));
}

#[test]
fn flips_anywhere() {
    let row = "bundles with bits flipped in any file";
    damaged(row, Tries { all: 1_600, few: 2 }, recordings, |bundle, _, random| damage::flip_anywhere(bundle, random));
}

#[test]
fn truncations() {
    let row = "bundles with a file cut off";
    damaged(row, Tries { all: 1_000, few: 2 }, recordings, |bundle, _, random| damage::truncate(bundle, random));
}

#[test]
fn splices() {
    damaged("bundles with files spliced", Tries { all: 1_200, few: 2 }, recordings, damage::splice);
}

#[test]
fn damaged_costs() {
    damaged("damaged bundles of becalm cost", Tries { all: 1_800, few: 2 }, costs, damage::in_any_way);
}

#[test]
fn damaged_work() {
    damaged("damaged bundles of becalm work", Tries { all: 2_000, few: 2 }, work, damage::in_any_way);
}
