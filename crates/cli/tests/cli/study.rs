//! The page of `becalm study`.

use std::fs;

use becalm_testing::program::becalm;

#[test]
fn a_study_has_a_page_or_none_if_a_recording_is_gone() {
    let folder = tempfile::tempdir().unwrap();
    becalm_fixtures::write_study(&folder.path().join("node1.study"));
    let page = folder.path().join("study.html");
    let run = |arguments: &[&str]| becalm(arguments).current_dir(folder.path()).output().unwrap();
    let written = run(&["study", "--from", "node1.study", "--phases", "1000", "--html", "study.html"]);
    assert!(written.status.success(), "{}", String::from_utf8_lossy(&written.stderr));
    let text = fs::read_to_string(&page).unwrap();
    for part in
        ["<html", "Cost at scale", "Is the change significant?", "sibling-idle was skipped", "isolated", "</html>"]
    {
        assert!(text.contains(part), "{part}");
    }
    // A recording that the study names and that is gone is an error, and no page comes of it.
    fs::remove_file(&page).unwrap();
    fs::rename(folder.path().join("node1.study/isolated-2.becalm"), folder.path().join("gone")).unwrap();
    let failed = run(&["study", "--from", "node1.study", "--html", "study.html"]);
    assert_eq!(failed.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&failed.stderr).contains("cannot read isolated-2.becalm"));
    assert!(!page.exists());
}
