//! The Python package under test: laid out as a wheel lays it out, with the extension and the program that Cargo built, and run by
//! the Python that `.ci/need python-packages` prepares.

#![forbid(unsafe_code)]

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use becalm_fixtures::fleet::{Planted, write_fleet};
use becalm_fixtures::{costs, work};
use becalm_testing::skip;

/// The folder of this package.
const PACKAGE: &str = env!("CARGO_MANIFEST_DIR");

/// Where Cargo puts what it builds: this test is in its folder `deps`.
fn built() -> PathBuf {
    let test = std::env::current_exe().expect("a test knows its own path");
    test.parent().and_then(Path::parent).expect("tests are built in a folder of their own").to_owned()
}

/// The package with its extension, in a folder that Python finds it in.
fn lay_out(folder: &Path, extension: &Path) {
    let (from, to) = (Path::new(PACKAGE).join("python/becalm"), folder.join("becalm"));
    std::fs::create_dir(&to).unwrap();
    for file in std::fs::read_dir(from).unwrap().flatten() {
        if file.path().is_file() {
            symlink(file.path(), to.join(file.file_name())).unwrap();
        }
    }
    symlink(extension, to.join("_native.abi3.so")).unwrap();
}

/// Runs a file of tests, in a folder with stored runs.
fn run_tests(file: &str) {
    let python = Path::new(PACKAGE).join("../../.cache/python/bin/python");
    let (extension, program) = (built().join("libbecalm_python.so"), built().join("becalm"));
    if !python.is_file() {
        return skip("Python's packages are missing: .ci/need python-packages installs them");
    }
    assert!(extension.is_file(), "{} is built with this test", extension.display());
    assert!(program.is_file(), "{} is missing: cargo build --package becalm", program.display());
    let folder = tempfile::tempdir().unwrap();
    let (packages, programs, runs) =
        (folder.path().join("packages"), folder.path().join("bin"), folder.path().join("runs"));
    for each in [&packages, &programs, &runs] {
        std::fs::create_dir(each).unwrap();
    }
    lay_out(&packages, &extension);
    symlink(&program, programs.join("becalm")).unwrap();
    becalm_fixtures::write_all(&runs);
    work::write_all(&runs);
    write_fleet(&runs.join("cluster.becalm"), Planted::SlowNode, 1);
    std::fs::create_dir(runs.join("costs")).unwrap();
    costs::write_costs(&runs.join("costs"));
    let path = format!("{}:{}", programs.display(), std::env::var("PATH").unwrap_or_default());
    let done = Command::new(python)
        .arg(Path::new(PACKAGE).join("tests").join(file))
        .env("PATH", path)
        .env("PYTHONPATH", &packages)
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .env("MPLBACKEND", "agg")
        .env("MPLCONFIGDIR", folder.path())
        .env_remove("COLUMNS")
        .current_dir(&runs)
        .output()
        .unwrap();
    let text = [done.stdout, done.stderr].concat();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&text));
}

#[test]
fn tables_are_read_where_they_are() {
    run_tests("test_tables.py");
}

#[test]
fn answers_are_those_of_the_command_line() {
    run_tests("test_answers.py");
}

#[test]
fn recordings_are_made_and_interrupted() {
    run_tests("test_record.py");
}

#[test]
fn figures_have_the_look_of_the_page() {
    run_tests("test_plot.py");
}

#[test]
fn examples_print_what_they_say() {
    run_tests("test_examples.py");
}
