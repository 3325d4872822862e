//! What `becalm predict` and `becalm law` print, for formulas and for bundles made here: command by command as in a
//! terminal, in `predict_golden/*.trycmd`. The figures are those of a seed, and so the same on any machine.
//! `TRYCMD=overwrite cargo test -p becalm --test predict_golden` writes them anew.

mod bundles;

use std::env;
use std::path::Path;

#[test]
fn predictions_are_as_before() {
    let cases = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/predict_golden/*.trycmd");
    let folder = tempfile::tempdir().unwrap();
    bundles::write_all(folder.path());
    // The commands name the bundles as a user does who stands beside them, so that no path of this machine is printed.
    env::set_current_dir(folder.path()).unwrap();
    trycmd::TestCases::new().case(cases.to_str().unwrap());
}
