//! What `becalm` prints for bundles, tables and machines made here, and what it refuses: command by command as in a terminal,
//! in the `*.trycmd` files of the folders beside this file. The figures follow from the inputs and from seeds, so they are the
//! same on any machine.
//!
//! `TRYCMD=overwrite cargo test -p becalm --test golden` writes the files again, and with `-- trycmd=NAME` only those whose path
//! contains the name are run.

mod book;
mod machines;

use std::env;
use std::fs;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use becalm_analyze::condense;
use becalm_bundle::{StoredNodes, SummaryWriter};
use becalm_fixtures::fleet::{Planted, write_fleet};

/// Texts that are no bundles: measurements of other programs, good and bad ones, and tables that are not what they should be.
const TEXTS: [(&str, &str); 15] = [
    ("selfish.txt", "# offset duration\n100 10\n2100.5 20.25\n4100 10\n"),
    (
        "netgauge.txt",
        "# Selfish Benchmark\n# Time [ns]\tselfish duration [ns]\n0.00\t203.46\n1003988.46\t1111.04\n\
         # CPU overhead due to noise: 0.00%\n# Measurement period: 2.50 s\n",
    ),
    ("overlapping.txt", "10 5\n12 1\n"),
    ("unordered.txt", "10 5\n1 5\n"),
    ("negative.txt", "1 -5\n"),
    ("huge.txt", "9223372036854775807 1\n"),
    ("full.txt", "0 100\n"),
    ("short.csv", "processor,processes,ms_100hz,ms_1000hz\nPIII-664,1,12.67\n"),
    ("word.csv", "processor,processes,ms_100hz,ms_1000hz\nPIII-664,1,12.67,fast\n"),
    ("unknown.csv", "processor,processes,ms_100hz,ms_1000hz\nPIII-664,1,12.67,12.72\nZ80,1,1,2\n"),
    ("single.csv", "processor,processes,ms_100hz\nPIII-664,1,12.67\n"),
    (
        "jobs.txt",
        "JobID|NNodes|NCPUS|ElapsedRaw|State|Start|End\n\
         4711|16|16|86400|COMPLETED|2026-01-01T00:00:00|2026-01-02T00:00:00\n\
         4711.batch|1|1|86400|COMPLETED|2026-01-01T00:00:00|2026-01-02T00:00:00\n\
         4712|32|32|43200|COMPLETED|2026-01-01T06:00:00|2026-01-01T18:00:00\n\
         4713|32|32|10|RUNNING|2026-01-01T23:59:50|Unknown\n",
    ),
    (
        "odd-jobs.txt",
        "JobID|NNodes|NCPUS|ElapsedRaw|State|Start|End\n\
         4711|16|16|86400|COMPLETED|2026-01-01T00:00:00|2026-01-02T00:00:00\n\
         4712|many|32|43200|COMPLETED|2026-01-01T06:00:00|2026-01-01T18:00:00\n\
         sacct: error: lost the connection\n",
    ),
    ("no-jobs.txt", "JobID|Elapsed|NNodes|Start\n1|01:00:00|2|2026-01-01T00:00:00\n"),
    // A program of no kind that can be run.
    ("text", "hello\n"),
];

/// Writes all that the commands read.
fn write_inputs(folder: &Path) {
    becalm_fixtures::write_all(folder);
    becalm_fixtures::work::write_all(folder);
    becalm_fixtures::costs::write_costs(folder);
    becalm_fixtures::causes::write_causes(&folder.join("causes.becalm"));
    becalm_fixtures::observed::write_observed(folder);
    becalm_fixtures::observed::write_compared(folder);
    becalm_fixtures::steps::write_steps(folder);
    write_fleet(&folder.join("cluster.becalm"), Planted::SlowNodeAndBroken, 1);
    write_fleet(&folder.join("equals.becalm"), Planted::Nothing, 1);
    for (full, short) in [("pair", "short"), ("cluster", "site")] {
        let nodes = StoredNodes::open(&folder.join(full)).unwrap();
        for node in nodes.names() {
            // That of one node cannot be read.
            let Ok(stored) = nodes.read(node) else { continue };
            let digest = condense::digest(stored).unwrap();
            drop(SummaryWriter::create(&folder.join(format!("{short}.becalm")), &digest).unwrap());
        }
    }
    // The same nodes later, without the slow one.
    write_fleet(&folder.join("later.becalm"), Planted::Nothing, 2);
    let nodes = StoredNodes::open(&folder.join("later")).unwrap();
    for node in nodes.names() {
        let digest = condense::digest(nodes.read(node).unwrap()).unwrap();
        drop(SummaryWriter::create(&folder.join("fixed.becalm"), &digest).unwrap());
    }
    becalm_fixtures::write_study(&folder.join("node1.study"));
    machines::write_all(folder);
    for (name, text) in TEXTS {
        fs::write(folder.join(name), text).unwrap();
    }
    let published = Path::new(env!("CARGO_MANIFEST_DIR")).join("../research/data");
    for name in ["tsafrir2007_sort.csv", "tsafrir2007_direct.csv"] {
        fs::copy(published.join(name), folder.join(name)).unwrap();
    }
    fs::create_dir(folder.join("empty.tick")).unwrap();
}

/// Runs the commands of the cases that the pattern finds in `tests/golden`, in a folder with these inputs.
fn check(pattern: &str, write_inputs: fn(&Path)) {
    // The tests of this program share their current folder.
    static CURRENT_FOLDER: Mutex<()> = Mutex::new(());
    let _alone = CURRENT_FOLDER.lock().unwrap_or_else(PoisonError::into_inner);
    let cases = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(pattern);
    let folder = tempfile::tempdir().unwrap();
    write_inputs(folder.path());
    // The commands name their inputs as a user does who stands beside them, so that no path of this machine is printed.
    env::set_current_dir(folder.path()).unwrap();
    // Whoever runs the tests may have said how wide texts are, and that they have colors everywhere.
    trycmd::TestCases::new().env("COLUMNS", "").env("CLICOLOR_FORCE", "").case(cases.to_str().unwrap());
}

#[test]
fn commands_print_what_they_printed_before() {
    check("commands/*/*.trycmd", write_inputs);
}

/// Bundles of jobs, which have the names of other bundles.
#[test]
fn jobs_are_shown_and_refused_as_before() {
    check("jobs/*.trycmd", |folder| {
        becalm_fixtures::phases::write_phases(folder);
        becalm_fixtures::phases::write_beside(folder);
    });
}

/// What the real programs wrote, a folder a format.
#[test]
fn files_of_other_programs_become_what_they_did_before() {
    check("imports/*.trycmd", |folder| {
        let samples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../foreign/samples");
        for format in fs::read_dir(samples).unwrap().map(|entry| entry.unwrap().path()).filter(|path| path.is_dir()) {
            let into = folder.join(format.file_name().unwrap());
            fs::create_dir(&into).unwrap();
            for file in fs::read_dir(&format).unwrap().map(|entry| entry.unwrap().path()) {
                fs::copy(&file, into.join(file.file_name().unwrap())).unwrap();
            }
        }
        fs::write(folder.join("damaged.txt"), "core_i: 0 1\nint_n: 5\n").unwrap();
        fs::write(folder.join("nothing.txt"), "hello\n").unwrap();
        becalm_fixtures::write_all(folder);
    });
}
