//! Does a large run open instantly in Python, without copying its columns? Compared with PyArrow, which reads the same columns. And what does a span of a
//! program cost? Compared with the cheapest context manager that Python has, a lock.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use serde::Deserialize;

use crate::claims::{Claims, Figure};
use crate::effort::Effort;
use crate::figures::Repetitions;
use crate::large_bundle;

/// Detours of the run, and number of times it is opened.
const TEN_MILLION: u64 = 10_000_000;
const REPETITIONS: u64 = 9;
/// The root of the sources; `.ci/need python-packages` installs a Python with all readers of tables below it.
const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");
/// By how much a span may cost more than a lock.
const MOST_OF_A_LOCK: f64 = 2.0;
const SCRIPT: &str = include_str!("python.py");

/// Output of the script. Times are in seconds: wall-clock time, and processor time.
#[derive(Deserialize)]
struct ScriptResult {
    rows: u64,
    opened: Vec<[f64; 2]>,
    beside: Vec<[f64; 2]>,
    copied: u64,
    /// The nanoseconds of an empty span and of a lock, with the interpreter's own.
    span: f64,
    lock: f64,
}

pub fn run() -> ExitCode {
    let effort = Effort::from_arguments();
    let mut claims = Claims::begin("Python: a large run is open at once, and spans are cheap", effort);
    let python = Path::new(ROOT).join(".cache/python/bin/python");
    let what = "opening 10 million detours as a table";
    if !python.is_file() {
        claims.skip(what, "Python's packages are missing: .ci/need python-packages installs them");
    } else if let Err(why) = open(&mut claims, effort, &python) {
        claims.fail(what, &why);
    }
    claims.end()
}

fn open(claims: &mut Claims, effort: Effort, python: &Path) -> Result<(), String> {
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let package = lay_out(folder.path())?;
    let path = folder.path().join("large.becalm");
    large_bundle::write(&path, effort.share(TEN_MILLION)).map_err(|error| error.to_string())?;
    let mut command = Command::new(python);
    command.env("BECALM_SPANS", folder.path().join("spans.csv"));
    command.args(["-c", SCRIPT]).arg(&path).arg(effort.share(REPETITIONS).to_string());
    command.env("PYTHONPATH", package).env("PYTHONDONTWRITEBYTECODE", "1");
    let output = command.output().map_err(|error| format!("cannot run {}: {error}", python.display()))?;
    let result: ScriptResult = serde_json::from_slice(&output.stdout)
        .map_err(|error| format!("{error}: {}", String::from_utf8_lossy(&output.stderr)))?;
    if result.rows != effort.share(TEN_MILLION) {
        return Err(format!("the table has {} detours", result.rows));
    }
    let median = |times: &[[f64; 2]], which: usize| Repetitions::new(times.iter().map(|time| time[which]).collect());
    let (wall, processor, other) = (median(&result.opened, 0), median(&result.opened, 1), median(&result.beside, 1));
    let rows = result.rows;
    claims.at_most(&format!("opening {rows} detours as a table"), Figure::seconds(wall.median()), 1.0);
    claims.remark(&format!("by the wall {}; processor time {}", wall.range("s"), processor.range("s")));
    let (ours, other) = (Figure::seconds(processor.median()), Figure::seconds(other.median()));
    claims.state_beside(
        "  processor time, against PyArrow reading the same columns",
        ours,
        other,
        "on one thread each",
    );
    let (span, lock) = (Figure::ns(result.span.round()), Figure::ns(result.lock.round()));
    claims.at_most_times("a span of a program in Python, against `with lock`", span, lock, MOST_OF_A_LOCK);
    claims.none("  columns that PyArrow, Polars or NumPy have elsewhere", result.copied);
    Ok(())
}

/// Lays the package out like a wheel, with the extension built with this program; returns its path.
fn lay_out(folder: &Path) -> Result<PathBuf, String> {
    let built = std::env::current_exe().map_err(|error| error.to_string())?;
    let extension = built.with_file_name("libbecalm_python.so");
    if !extension.is_file() {
        return Err(format!("there is no {}: cargo build makes it", extension.display()));
    }
    let (from, to) = (Path::new(ROOT).join("crates/python/python/becalm"), folder.join("packages/becalm"));
    let linked = || -> std::io::Result<()> {
        fs::create_dir_all(&to)?;
        for file in fs::read_dir(from.canonicalize()?)? {
            let file = file?;
            symlink(file.path(), to.join(file.file_name()))?;
        }
        symlink(&extension, to.join("_native.abi3.so"))
    };
    linked().map_err(|error| format!("cannot assemble the package: {error}"))?;
    Ok(folder.join("packages"))
}
