//! What the book shows of commands that change the machine, measure it as it is, or want an optimized build. The others are
//! tested in `golden`.

use std::fs;
use std::path::Path;
use std::process::Command;

use becalm_testing::book::{Holder, book, holds_exactly, holds_structure};
use becalm_testing::program::{path, report, run, run_becalm};
use becalm_testing::{Need, machine_has};
use serde_json::Value;

use crate::robust::alone;

/// How what is printed is held against the book.
#[derive(Clone, Copy)]
enum Held {
    /// Word for word.
    Exactly,
    /// Its tables and titles.
    Structure,
    /// The message, up to its first figure, and exit code 2.
    Refusal,
}

/// By how a command begins: what is run instead, and how that is held. In this order the book has `apply` before `restore`.
const COMMANDS: [(&str, &str, Held); 7] = [
    (
        "becalm predict periodic",
        "predict periodic:interval=1ms,detour=200us --ranks 1Ki,4Ki,16Ki,32Ki --ranks-per-node 2 --grain 0s \
         --collective barrier:hardware --network bgl --phases 2000 --replicas 3",
        Held::Exactly,
    ),
    (
        "becalm inject --cpus 1 --interval 10ms",
        "inject --cpus 1 --interval 10ms --detour 1ms --duration 1s",
        Held::Structure,
    ),
    ("becalm inject --cpus 1 --interval 1ms", "inject --cpus 1 --interval 1ms --detour 1us", Held::Refusal),
    ("becalm bench", "bench --cpus 1 --runs 2 --warmup 0 -- true", Held::Structure),
    ("becalm tune apply", "tune apply --cpus 1", Held::Structure),
    ("becalm tune restore", "tune restore", Held::Structure),
    ("becalm tune run", "tune run --cpus 1 --verify --verify-duration 1s", Held::Structure),
];

/// Brings back what `tune apply` changed, should a check between that and `tune restore` fail.
struct Restored;

impl Drop for Restored {
    fn drop(&mut self) {
        let _ = run_becalm(&["tune", "restore", "--force"]);
    }
}

#[test]
fn what_the_book_shows_is_what_is_printed() {
    if !machine_has(&[Need::Root, Need::TwoCpus]) {
        return;
    }
    let _restored = Restored;
    let mut held = 0;
    for shown in book().into_iter().filter(|shown| shown.holder() == Holder::Root) {
        let (command, how) = match COMMANDS.iter().find(|(begin, ..)| shown.command.starts_with(begin)) {
            Some((_, command, how)) => (*command, *how),
            None if shown.command == "becalm" => ("", Held::Structure),
            None => panic!("{}: nothing holds '{}'", shown.page, shown.command),
        };
        let arguments: Vec<&str> = command.split_whitespace().collect();
        let ended = run_becalm(&arguments);
        match how {
            Held::Exactly => {
                ended.expect(0, &[]);
                assert_eq!(shown.command, format!("becalm {}", arguments.join(" ")), "{}", shown.page);
                holds_exactly(&shown, &ended.stdout);
            }
            Held::Structure => {
                ended.expect(0, &[]);
                holds_structure(&shown, command, &ended.stdout);
            }
            Held::Refusal => {
                let words = shown.output.split("takes").next().unwrap_or_default();
                ended.expect(2, &[words.trim()]);
            }
        }
        held += 1;
    }
    assert!(held > COMMANDS.len(), "only {held} outputs were found in the book");
}

/// The page on traces, as it shows how to record with perf, shorter: what perf writes and prints is imported, and holds the tick.
#[test]
fn traces_are_recorded_as_the_book_says() {
    let Some(_alone) = alone() else { return };
    // Others have no events of irq_vectors.
    if !cfg!(target_arch = "x86_64") || !machine_has(&[Need::Program("perf")]) {
        return;
    }
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/src/concepts/traces.md");
    let page = fs::read_to_string(page).unwrap();
    // Those of `perf sched` make observations of threads, which tests/root_becalm/foreign.rs looks at.
    let is_of_cpus = |line: &&str| line.starts_with("# perf ") && !line.starts_with("# perf sched ");
    let lines: Vec<&str> = page.lines().filter(is_of_cpus).collect();
    let [record, script] = lines[..] else { panic!("{lines:?}") };
    assert!(record.ends_with(" sleep 10") && script.ends_with(" > trace.txt"), "{lines:?}");
    let folder = tempfile::tempdir().unwrap();
    for line in [record.replace(" sleep 10", " sleep 1"), script.to_owned()] {
        // Into a pipe, perf would write its file.
        let line = format!("exec >/dev/null; {}", line.trim_start_matches("# "));
        let mut shell = Command::new("sh");
        shell.args(["-c", &line]).current_dir(folder.path());
        run(shell).expect(0, &[]);
    }
    for name in ["perf.data", "trace.txt"] {
        let (file, bundle) = (folder.path().join(name), folder.path().join(format!("{name}.becalm")));
        run_becalm(&["import", path(&file), "-o", path(&bundle)]).expect(0, &[]);
        let report = report(&bundle);
        // A perf.data has no names of functions.
        let tick = if name == "perf.data" { "local_timer" } else { "tick" };
        let is_tick = |source: &Value| source["source"] == tick || source["source"] == "arch_timer";
        assert!(report["sources"].as_array().unwrap().iter().any(is_tick), "{name}: {:#}", report["sources"]);
    }
}
