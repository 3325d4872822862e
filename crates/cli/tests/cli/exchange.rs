//! What is imported comes out again when it is exported.

use std::fs;

use becalm_testing::program::becalm;

/// As another program measured it, in microseconds.
const SELFISH: &str = "# offset duration\n100 10\n2100.5 20.25\n4100 10\n";

#[test]
fn what_is_imported_is_exported() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("selfish.txt"), SELFISH).unwrap();
    let run = |line: &str| {
        let arguments: Vec<&str> = line.split(' ').collect();
        let status = becalm(&arguments).current_dir(folder.path()).status().unwrap();
        assert!(status.success(), "{line}: {status}");
    };
    run("import --from selfish --unit us --length 10ms selfish.txt -o run.becalm");
    run("export --to loggopsim run -o noise.txt");
    let noise = fs::read_to_string(folder.path().join("noise.txt")).unwrap();
    assert_eq!(noise, "0\t0\n100000\t10000\n2100500\t20250\n4100000\t10000\n10000000\t0");
}
