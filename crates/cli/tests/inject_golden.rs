//! What `becalm inject` says of itself and refuses before it touches anything: command by command as in a terminal, in
//! `inject_golden/*.trycmd`. `TRYCMD=overwrite cargo test -p becalm --test inject_golden` writes them anew.

use std::env;
use std::path::Path;

#[test]
fn help_and_refusals_are_as_before() {
    let cases = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/inject_golden/*.trycmd");
    let folder = tempfile::tempdir().unwrap();
    // A program of no kind, so that no path of this machine is printed.
    std::fs::write(folder.path().join("text"), "hello\n").unwrap();
    env::set_current_dir(folder.path()).unwrap();
    trycmd::TestCases::new().case(cases.to_str().unwrap());
}
