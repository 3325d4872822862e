//! Recordings of which a copy lacks a part: every command that computes refuses them, since what is missing is not quiet.

use std::fs;
use std::path::Path;

use becalm_bundle::{Bundle, BundleWriter};
use becalm_model::{Detour, Labels, NodeDoc};
use becalm_testing::program::{path, run_becalm};
use becalm_units::{CpuId, Nanos};

/// Everything that a command says of a recording. `RUN` is the one that lacks something, `WHOLE` the same in full.
const QUESTIONS: [&[&str]; 12] = [
    &["report", "RUN"],
    &["report", "--sources", "RUN"],
    &["check", "RUN", "--max-noise", "90%", "--max-detour", "1s"],
    &["compare", "RUN", "WHOLE", "--fail-if-worse", "5%"],
    &["compare", "WHOLE", "RUN", "--fail-if-worse", "5%"],
    &["predict", "RUN", "--ranks", "16", "--grain", "1ms"],
    &["fleet", "RUN"],
    &["export", "RUN", "--to", "csv", "-o", "OUT"],
    &["export", "RUN", "--to", "hdrhistogram", "-o", "OUT"],
    &["export", "RUN", "--to", "perfetto", "-o", "OUT"],
    &["tune", "audit", "--run", "RUN"],
    &["detours", "RUN", "--longest", "3"],
];

fn copy(from: &Path, to: &Path) {
    fs::create_dir(to).unwrap();
    for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &target)
        } else {
            fs::copy(entry.path(), target).map(drop).unwrap()
        }
    }
}

/// A recording of two CPUs in three segments, without activities.
fn record(to: &Path, cpus: &[u32]) {
    let doc: NodeDoc = {
        let folder = tempfile::tempdir().unwrap();
        becalm_fixtures::write_all(folder.path());
        Bundle::open(&folder.path().join("busy")).unwrap().nodes()[0].clone()
    };
    let mut writer = BundleWriter::create(to, &doc).unwrap();
    for segment in 0..3_i64 {
        let of_cpu = |cpu: &u32| {
            let cpu = CpuId::new(*cpu);
            (0..20_i64).map(move |number| Detour {
                cpu,
                start: Nanos::new(1_000 + (segment * 20 + number) * 100_000),
                duration: Nanos::new(1_000),
                incomplete: false,
            })
        };
        let detours: Vec<Detour> = cpus.iter().flat_map(of_cpu).collect();
        writer.write_segment(&detours, &[], &Labels::new()).unwrap();
    }
    writer.write_doc(&doc).unwrap();
}

/// Removes a part of a recording.
type Loss<'a> = &'a dyn Fn(&Path);

#[test]
fn a_recording_that_lacks_a_part_is_refused_by_every_command() {
    let folder = tempfile::tempdir().unwrap();
    let [whole, one_cpu, out] = ["whole.becalm", "one-cpu.becalm", "out"].map(|name| folder.path().join(name));
    record(&whole, &[0, 1]);
    record(&one_cpu, &[0]);
    let last = "node=node1/0002.parquet";
    let remove = |what: &'static str| move |run: &Path| fs::remove_dir_all(run.join(what)).unwrap();
    let lacks: [(&str, Loss<'_>); 4] = [
        ("detours", &remove("detours")),
        ("activities", &remove("activities")),
        ("last", &|run| {
            ["detours", "activities"].iter().for_each(|table| fs::remove_file(run.join(table).join(last)).unwrap())
        }),
        ("cpu", &|run| {
            for segment in fs::read_dir(run.join("detours/node=node1")).unwrap().map(|entry| entry.unwrap().path()) {
                fs::copy(one_cpu.join("detours/node=node1").join(segment.file_name().unwrap()), &segment).unwrap();
            }
        }),
    ];
    for (name, make) in lacks {
        let run = folder.path().join(format!("lacks-{name}.becalm"));
        copy(&whole, &run);
        make(&run);
        are_refused(&run, &whole, &out, "copy the whole ");
    }
    // In full, the same commands answer.
    run_becalm(&["check", path(&whole), "--max-noise", "90%"]).expect(0, &[]);
}

/// Every command must refuse a recording for this reason.
#[track_caller]
fn are_refused(run: &Path, whole: &Path, out: &Path, why: &str) {
    for question in QUESTIONS {
        let words: Vec<&str> = question
            .iter()
            .map(|word| match *word {
                "RUN" => path(run),
                "WHOLE" => path(whole),
                "OUT" => path(out),
                word => word,
            })
            .collect();
        let ended = run_becalm(&words);
        ended.expect(1, &[path(run), why]);
        assert!(ended.stdout.is_empty() && !out.exists(), "{words:?}: {ended:?}");
    }
}

/// Readers that look at the time of the loops alone would find nothing there.
#[test]
fn detours_outside_of_their_loops_time_are_refused_by_every_command() {
    let folder = tempfile::tempdir().unwrap();
    let [whole, run, out] = ["whole.becalm", "moved.becalm", "out"].map(|name| folder.path().join(name));
    record(&whole, &[0, 1]);
    for (from, to) in [("start_ns", 1_000_000_000_000_000_i64), ("duration_ns", 3_000_000)] {
        let _ = fs::remove_dir_all(&run);
        copy(&whole, &run);
        let file = run.join("runs/node=node1.json");
        let mut document: serde_json::Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
        document["cpus"][1][from] = to.into();
        fs::write(&file, document.to_string()).unwrap();
        are_refused(&run, &whole, &out, "but its loop ran from");
    }
}

/// Of several nodes, one that cannot be judged is not left out of the verdict.
#[test]
fn a_verdict_on_all_nodes_is_not_one_on_those_that_are_whole() {
    let folder = tempfile::tempdir().unwrap();
    becalm_fixtures::write_all(folder.path());
    let pair = folder.path().join("pair.becalm");
    fs::remove_dir_all(pair.join("detours/node=node2")).unwrap();
    let limits = ["--max-noise", "90%", "--max-detour", "1s"];
    run_becalm(&[&["check", path(&pair)][..], &limits].concat()).expect(1, &["node=node2", "copy the whole recording"]);
    run_becalm(&[&["check", path(&pair), "--node", "node1"][..], &limits].concat()).expect(0, &["node2 is left out"]);
}

/// What a warning voids carries no verdict, and the warning is printed with it.
#[test]
fn a_recording_that_did_not_end_does_not_show_that_limits_hold() {
    let folder = tempfile::tempdir().unwrap();
    becalm_fixtures::write_all(folder.path());
    let [killed, busy, junit, sarif] =
        ["killed.becalm", "busy.becalm", "junit.xml", "sarif.json"].map(|name| folder.path().join(name));
    let words = ["check", path(&killed), "--max-noise", "99%", "--junit", path(&junit), "--sarif", path(&sarif)];
    let ended = run_becalm(&words);
    ended.expect(0, &[]);
    for text in [ended.stdout.clone(), fs::read_to_string(junit).unwrap(), fs::read_to_string(sarif).unwrap()] {
        assert!(text.contains("the recording did not end") && text.contains("(warning not_ended)"), "{text}");
    }
    assert!(ended.stdout.starts_with("No limit is exceeded, and 0 of 2 hold;"), "{ended:?}");
    let compared = run_becalm(&["compare", path(&busy), path(&killed), "--fail-if-worse", "1%", "--json"]);
    compared.expect(0, &[]);
    let document: serde_json::Value = serde_json::from_str(&compared.stdout).unwrap();
    assert_eq!(document["checks"][0]["outcome"], "not enough data", "{document:#}");
}
