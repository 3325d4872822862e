//! The catalogue of detours as root, with the tick and the interrupts of devices in it: not its figures, which differ from
//! machine to machine, but what must take longer than what.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use becalm_testing::program::{path, run_becalm};
use becalm_testing::{Need, attempts, machine_has};
use serde_json::Value;

/// What takes longer, by which factor at least, and what takes less. Half and less of what is seen on machines that do
/// nothing else.
const ORDER: [(&str, f64, &str); 10] = [
    ("cache_l2", 1.2, "cache_l1"),
    ("memory", 2.0, "cache_l2"),
    ("tlb_miss", 0.5, "cache_l1"),
    ("memory", 1.0, "tlb_miss"),
    ("pte_miss", 1.0, "memory"),
    ("fault_minor", 1.0, "pte_miss"),
    ("fault_cow", 1.0, "pte_miss"),
    ("interrupt", 1.0, "memory"),
    ("tick", 0.9, "tick_handler"),
    ("preemption", 20.0, "interrupt"),
];

/// The medians of one run of the catalogue in picoseconds, by name. Each row was measured, or says why not.
fn medians(bundle: &Path) -> BTreeMap<String, f64> {
    let ended = run_becalm(&["cost", "detours", "--json", "--over", "1s", "-o", path(bundle)]);
    ended.expect(0, &["stored in"]);
    let document: Value = serde_json::from_str(&ended.stdout).expect("standard output is one document");
    let mut medians = BTreeMap::new();
    for row in document["rows"].as_array().expect("rows") {
        let name = row["name"].as_str().expect("a name");
        match row["not_measured"].as_str() {
            Some(why) => assert!(!why.is_empty() && row["median_ps"].is_null(), "{row:#}"),
            None => {
                assert!(row["method"].as_str().is_some_and(|how| !how.is_empty()), "{row:#}");
                medians.insert(name.to_owned(), row["median_ps"].as_f64().expect("a median"));
            }
        }
    }
    for always in ["cache_l1", "memory", "tlb_miss", "pte_miss", "fault_minor", "fault_cow", "preemption"] {
        assert!(medians.contains_key(always), "{always} was not measured: {document:#}");
    }
    medians
}

/// The hypervisor takes CPUs away at times, which only makes a row longer. So of each row the lowest median of all attempts
/// until now counts.
#[test]
fn the_catalogue_is_in_order_and_says_what_it_lacks() {
    if !machine_has(&[Need::Root]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let mut lowest: BTreeMap<String, f64> = BTreeMap::new();
    let mut attempt = 0;
    attempts(3, || {
        attempt += 1;
        for (name, median) in medians(&folder.path().join(format!("{attempt}.becalm"))) {
            let known = lowest.entry(name).or_insert(median);
            *known = known.min(median);
        }
        eprintln!("{lowest:?}");
        let wrong: Vec<_> = ORDER
            .iter()
            .filter(|(more, times, less)| match (lowest.get(*more), lowest.get(*less)) {
                (Some(more), Some(less)) => *more <= less * times,
                _ => false,
            })
            .collect();
        if wrong.is_empty() { Ok(()) } else { Err(format!("not in order: {wrong:?}")) }
    });
}

/// A swap file, while it lasts.
struct Swap(tempfile::TempDir);

impl Swap {
    /// `None` where the folder's file system, or the machine, has no swap files.
    fn on() -> Option<Self> {
        let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).ok()?;
        let file = folder.path().join("swap");
        let size = "if=/dev/zero bs=1M count=64 status=none".split(' ').map(str::to_owned);
        let made = Command::new("dd").args(size).arg(format!("of={}", file.display())).status().ok()?;
        fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).ok()?;
        let run = |program: &str| Command::new(program).arg(&file).output().is_ok_and(|ended| ended.status.success());
        (made.success() && run("mkswap") && run("swapon")).then_some(Self(folder))
    }
}

impl Drop for Swap {
    fn drop(&mut self) {
        let _ = Command::new("swapoff").arg(self.0.path().join("swap")).status();
    }
}

/// How many pages the kernel has brought back from swap since boot, by its own count.
fn swapped_in() -> u64 {
    let text = fs::read_to_string("/proc/vmstat").unwrap();
    text.lines().find_map(|line| line.strip_prefix("pswpin ")).map_or(0, |count| count.parse().unwrap())
}

/// Pages come back from a disk, as many as were timed at least by the kernel's own count.
#[test]
fn a_swap_in_is_measured_where_there_is_swap() {
    if !machine_has(&[Need::Root]) {
        return;
    }
    let Some(_swap) = Swap::on() else {
        eprintln!("not tested: no swap file can be used here");
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let before = swapped_in();
    let ended =
        run_becalm(&["cost", "detours", "--json", "--over", "1s", "-o", path(&folder.path().join("swap.becalm"))]);
    let read = swapped_in() - before;
    let document: Value = serde_json::from_str(&ended.expect(0, &[]).stdout).unwrap();
    let row = |name: &str| document["rows"].as_array().unwrap().iter().find(|row| row["name"] == name).unwrap().clone();
    let swap_in = row("swap_in");
    let samples = swap_in["samples"].as_u64().unwrap_or_else(|| panic!("{swap_in:#}"));
    assert!(samples >= 10 && read >= samples, "{read} pages read, {swap_in:#}");
    // A page that is there and only misses its entry is had sooner.
    let median = |row: &Value| row["median_ps"].as_f64().unwrap();
    assert!(median(&swap_in) > 2.0 * median(&row("pte_miss")), "{swap_in:#}");
}
