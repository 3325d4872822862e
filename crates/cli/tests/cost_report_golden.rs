//! What `becalm report` prints of costs and campaigns that were stored, and what refuses them: command by command as in a
//! terminal, in `cost_report_golden/*.trycmd`. `TRYCMD=overwrite cargo test -p becalm --test cost_report_golden` writes them
//! anew.

mod bundles;

use std::env;
use std::path::Path;

#[test]
fn stored_costs_are_shown_and_refused_as_before() {
    let cases = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cost_report_golden/*.trycmd");
    let folder = tempfile::tempdir().unwrap();
    bundles::write_all(folder.path());
    bundles::costs::write_costs(folder.path());
    // The commands name the bundles as a user does who stands beside them, so that no path of this machine is printed.
    env::set_current_dir(folder.path()).unwrap();
    trycmd::TestCases::new().case(cases.to_str().unwrap());
}
