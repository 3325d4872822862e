//! What `becalm tune study` prints of a study made here, in `tune_study_golden/*.trycmd`. The figures are those of a seed, and so the
//! same on any machine. `TRYCMD=overwrite cargo test -p becalm --test tune_study_golden` writes them anew.

mod bundles;

use std::path::Path;
use std::process::Command;
use std::{env, fs};

#[test]
fn studies_are_shown_as_before() {
    let cases = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/tune_study_golden/*.trycmd");
    let folder = tempfile::tempdir().unwrap();
    bundles::write_study(&folder.path().join("node1.study"));
    let page = folder.path().join("study.html");
    let becalm = |arguments: &[&str]| {
        Command::new(env!("CARGO_BIN_EXE_becalm")).args(arguments).current_dir(folder.path()).output().unwrap()
    };
    let written = becalm(&["tune", "study", "--from", "node1.study", "--phases", "1000", "--html", "study.html"]);
    assert!(written.status.success(), "{}", String::from_utf8_lossy(&written.stderr));
    let text = fs::read_to_string(&page).unwrap();
    for part in ["<html", "Slowdown against ranks", "sibling-idle was skipped", "baseline", "isolated", "</html>"] {
        assert!(text.contains(part), "{part}");
    }
    // A recording that the study names and that is gone is an error, and no page comes of it.
    fs::remove_file(&page).unwrap();
    fs::rename(folder.path().join("node1.study/isolated.becalm"), folder.path().join("gone")).unwrap();
    let failed = becalm(&["tune", "study", "--from", "node1.study", "--html", "study.html"]);
    assert_eq!(failed.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&failed.stderr).contains("cannot read isolated.becalm"));
    assert!(!page.exists());
    fs::rename(folder.path().join("gone"), folder.path().join("node1.study/isolated.becalm")).unwrap();
    // The commands name the study as a user does who stands beside it, so that no path of this machine is printed.
    env::set_current_dir(folder.path()).unwrap();
    trycmd::TestCases::new().case(cases.to_str().unwrap());
}
