//! What `becalm report` prints of samples of work, for bundles made here, and what `becalm work` refuses: command by command
//! as in a terminal, in `work_golden/*.trycmd`. `TRYCMD=overwrite cargo test -p becalm --test work_golden` writes them anew.

mod bundles;

use std::env;
use std::path::Path;

#[test]
fn runs_of_work_are_reported_as_before() {
    let cases = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/work_golden/*.trycmd");
    let folder = tempfile::tempdir().unwrap();
    bundles::write_all(folder.path());
    bundles::work::write_all(folder.path());
    // The commands name the bundles as a user does who stands beside them, so that no path of this machine is printed.
    env::set_current_dir(folder.path()).unwrap();
    trycmd::TestCases::new().case(cases.to_str().unwrap());
}
