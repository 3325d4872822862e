//! What `becalm cost tick --from` prints for the published tables of Tsafrir 2007 and for tables that are not what they
//! should be: command by command as in a terminal, in `cost_tick_golden/*.trycmd`.
//! `TRYCMD=overwrite cargo test -p becalm --test cost_tick_golden` writes them anew.

use std::env;
use std::fs;
use std::path::Path;

const BAD: [(&str, &str); 4] = [
    ("short.csv", "processor,processes,ms_100hz,ms_1000hz\nPIII-664,1,12.67\n"),
    ("word.csv", "processor,processes,ms_100hz,ms_1000hz\nPIII-664,1,12.67,fast\n"),
    ("unknown.csv", "processor,processes,ms_100hz,ms_1000hz\nPIII-664,1,12.67,12.72\nZ80,1,1,2\n"),
    ("single.csv", "processor,processes,ms_100hz\nPIII-664,1,12.67\n"),
];

#[test]
fn published_tables_give_what_was_published() {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folder = tempfile::tempdir().unwrap();
    for name in ["tsafrir2007_sort.csv", "tsafrir2007_direct.csv"] {
        fs::copy(manifest.join("../analyze/tests/data").join(name), folder.path().join(name)).unwrap();
    }
    for (name, text) in BAD {
        fs::write(folder.path().join(name), text).unwrap();
    }
    fs::create_dir(folder.path().join("empty.tick")).unwrap();
    // The commands name the tables as a user does who stands beside them, so that no path of this machine is printed.
    env::set_current_dir(folder.path()).unwrap();
    trycmd::TestCases::new().case(manifest.join("tests/cost_tick_golden/*.trycmd").to_str().unwrap());
}
