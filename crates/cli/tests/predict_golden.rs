//! What `becalm predict`, `becalm law`, `becalm import` and `becalm export` print, for formulas and for bundles made here: command by command as in a
//! terminal, in `predict_golden/*.trycmd`. The figures are those of a seed, and so the same on any machine.
//! `TRYCMD=overwrite cargo test -p becalm --test predict_golden` writes them anew.

mod bundles;

use std::env;
use std::fs;
use std::path::Path;
use std::process::Command;

/// As another program measured it, in microseconds.
const SELFISH: &str = "# offset duration\n100 10\n2100.5 20.25\n4100 10\n";

/// As netgauge writes it, in nanoseconds, with how long it measured.
const NETGAUGE: &str = "# Selfish Benchmark\n# Time [ns]\tselfish duration [ns]\n0.00\t203.46\n1003988.46\t1111.04\n\
                        # CPU overhead due to noise: 0.00%\n# Measurement period: 2.50 s\n";

#[test]
fn predictions_are_as_before() {
    let cases = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/predict_golden/*.trycmd");
    let folder = tempfile::tempdir().unwrap();
    bundles::write_all(folder.path());
    fs::write(folder.path().join("selfish.txt"), SELFISH).unwrap();
    for (name, text) in [
        ("overlapping", "10 5\n12 1\n"),
        ("unordered", "10 5\n1 5\n"),
        ("negative", "1 -5\n"),
        ("huge", "9223372036854775807 1\n"),
        ("full", "0 100\n"),
        ("netgauge", NETGAUGE),
    ] {
        fs::write(folder.path().join(name).with_extension("txt"), text).unwrap();
    }
    // The commands name the bundles as a user does who stands beside them, so that no path of this machine is printed.
    env::set_current_dir(folder.path()).unwrap();
    trycmd::TestCases::new().case(cases.to_str().unwrap());
}

#[test]
fn what_is_imported_is_exported() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("selfish.txt"), SELFISH).unwrap();
    let becalm = |line: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_becalm"));
        let status = command.args(line.split(' ')).current_dir(folder.path()).status().unwrap();
        assert!(status.success(), "{line}: {status}");
    };
    becalm("import --from selfish --unit us --length 10ms selfish.txt -o run.becalm");
    becalm("export --to loggopsim run -o noise.txt");
    let noise = fs::read_to_string(folder.path().join("noise.txt")).unwrap();
    assert_eq!(noise, "0\t0\n100000\t10000\n2100500\t20250\n4100000\t10000\n10000000\t0");
}
