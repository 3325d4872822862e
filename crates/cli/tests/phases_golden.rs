//! What `becalm report` prints of a parallel benchmark that `becalm-mpi` stored, and what refuses it: command by command as in
//! a terminal, in `phases_golden/*.trycmd`. `TRYCMD=overwrite cargo test -p becalm --test phases_golden` writes them anew.

mod bundles;

use std::env;
use std::path::Path;

#[test]
fn stored_jobs_are_shown_and_refused_as_before() {
    let cases = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/phases_golden/*.trycmd");
    let folder = tempfile::tempdir().unwrap();
    bundles::phases::write_phases(folder.path());
    // The commands name the bundles as a user does who stands beside them, so that no path of this machine is printed.
    env::set_current_dir(folder.path()).unwrap();
    trycmd::TestCases::new().case(cases.to_str().unwrap());
}
