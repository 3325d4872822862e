//! The Python package under test: laid out as a wheel lays it out, with the extension and the program that Cargo built, and run by
//! the Python that `.ci/need python-packages` prepares.

#![forbid(unsafe_code)]

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use becalm_fixtures::fleet::{Planted, write_fleet};
use becalm_fixtures::{costs, observed, pages, work};
use becalm_testing::skip;

/// The folder of this package.
const PACKAGE: &str = env!("CARGO_MANIFEST_DIR");

/// Where `cargo build` leaves programs and libraries: Cargo puts tests into a folder there.
fn built() -> PathBuf {
    let test = std::env::current_exe().expect("a test knows its own path");
    test.ancestors().nth(2).expect("it is in a folder of a folder").to_owned()
}

/// Copies the extension: from beside this test, where Cargo has just built it, or from where `cargo build` left it, as Cargo takes the
/// first away when clippy is to judge the package.
fn copy_extension(to: &Path) {
    const NAME: &str = "libbecalm_python.so";
    let places = [built().join("deps").join(NAME), built().join(NAME)];
    let copied = places.iter().any(|place| std::fs::copy(place, to).is_ok());
    assert!(copied, "neither {} nor {} is there: cargo build makes them", places[0].display(), places[1].display());
}

/// The package with its extension, in a folder that Python finds it in.
fn lay_out(folder: &Path) {
    let (from, to) = (Path::new(PACKAGE).join("python/becalm"), folder.join("becalm"));
    std::fs::create_dir(&to).unwrap();
    for file in std::fs::read_dir(from).unwrap().flatten() {
        if file.path().is_file() {
            symlink(file.path(), to.join(file.file_name())).unwrap();
        }
    }
    copy_extension(&to.join("_native.abi3.so"));
}

/// Writes the stored runs that the tests speak of.
fn write_runs(folder: &Path) {
    becalm_fixtures::write_all(folder);
    pages::write_all(folder);
    work::write_all(folder);
    observed::write_observed(folder);
    observed::write_compared(folder);
    write_fleet(&folder.join("cluster.becalm"), Planted::SlowNode, 1);
    std::fs::create_dir(folder.join("costs")).unwrap();
    costs::write_costs(&folder.join("costs"));
}

/// All of `test_*.py` beside this file, in one process, which says which of them failed.
#[test]
fn the_package_does_what_it_says() {
    let python = Path::new(PACKAGE).join("../../.cache/python/bin/python");
    let program = built().join("becalm");
    if !python.is_file() {
        return skip("Python's packages are missing: .ci/need python-packages installs them");
    }
    assert!(program.is_file(), "{} is missing: cargo build makes it", program.display());
    let folder = tempfile::tempdir().unwrap();
    let [packages, programs, runs] = ["packages", "bin", "runs"].map(|name| folder.path().join(name));
    for each in [&packages, &programs, &runs] {
        std::fs::create_dir(each).unwrap();
    }
    lay_out(&packages);
    symlink(&program, programs.join("becalm")).unwrap();
    write_runs(&runs);
    let path = format!("{}:{}", programs.display(), std::env::var("PATH").unwrap_or_default());
    let done = Command::new(python)
        .args(["-m", "unittest", "discover", "--start-directory"])
        .arg(Path::new(PACKAGE).join("tests"))
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
