//! Booting the scenarios of the lab, and reading what they leave; and the tests of the lab itself.

use std::ffi::OsStr;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::Duration;
use std::{env, fs, io};

use becalm_lab::{Console, Flavor, Guest, Kernel, LabError, Outcome, Scenario};
use becalm_testing::{attempts, skip};
use serde_json::Value;

use crate::recording::Run;

/// How long a guest may take. The longest took 127 s while seven processes competed for the two CPUs. The lab waits as long for one that
/// hangs.
pub const LIMIT: Duration = Duration::from_secs(900);

/// How long it may take to boot. On an idle machine, a guest whose scenario does nothing takes 6 s in all.
pub const BOOT_LIMIT: Duration = Duration::from_secs(240);

/// Where the lab finds its parts.
pub struct Lab {
    cache: PathBuf,
    becalm: PathBuf,
}

impl Lab {
    /// The lab, unless this is a plain `cargo test`, which must neither fetch kernels nor take minutes.
    pub fn open() -> Option<Self> {
        let (Some(cache), Some(becalm)) = (env::var_os("BECALM_LAB_CACHE"), env::var_os("BECALM_LAB_PROGRAM")) else {
            skip("the lab runs with `make test-lab`");
            return None;
        };
        Some(Self { cache: cache.into(), becalm: becalm.into() })
    }

    pub fn boot(&self, scenario: &Scenario, limit: Duration, boot_limit: Duration) -> Result<Outcome, LabError> {
        let kernel = Kernel::debian(scenario.flavor, &self.cache)?;
        let console = Console::Kept;
        Guest { scenario, kernel: &kernel, becalm: &self.becalm, console, limit, boot_limit }.run()
    }

    /// Where the kernels are kept.
    pub fn cache(&self) -> &Path {
        &self.cache
    }

    /// The program that is tested.
    pub fn becalm(&self) -> &Path {
        &self.becalm
    }

    /// Boots a guest whose scenario must come to its end. One that hangs is booted once more: now and then an emulated
    /// kernel does not come up, and what becalm does wrong it does again.
    pub fn run(&self, name: &str) -> Outcome {
        self.run_scenario(&named(name))
    }

    pub fn run_scenario(&self, scenario: &Scenario) -> Outcome {
        let name = &scenario.name;
        let outcome = attempts(2, || match self.boot(scenario, LIMIT, BOOT_LIMIT) {
            Err(error @ (LabError::Hang(..) | LabError::NoBoot(..))) => {
                // Said at once: of a test that passes at the second attempt nothing else is printed.
                tell(&format!("{name}: {error}"));
                Err(error.to_string())
            }
            booted => Ok(booted.unwrap_or_else(|error| panic!("{error}"))),
        });
        tell(&format!("{name}: the guest took {:.1} s", outcome.wall().as_secs_f64()));
        println!("{name} printed:\n{}", text(&outcome, "log"));
        assert_eq!(outcome.status(), 0, "{name} failed");
        outcome
    }

    /// What becalm, on this machine, makes of runs that a guest left: the document that it prints for these arguments.
    pub fn ask(&self, arguments: &[&OsStr]) -> Value {
        // Runs may follow `--`.
        let (command, rest) = arguments.split_first().expect("a command has a name");
        let output = self.answer(&[&[*command, "--json".as_ref()], rest].concat());
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{arguments:?}: {error}"))
    }

    /// What becalm, on this machine, answers to these arguments.
    pub fn answer(&self, arguments: &[&OsStr]) -> Output {
        let output = Command::new(&self.becalm).args(arguments).output();
        output.unwrap_or_else(|error| panic!("cannot start {}: {error}", self.becalm.display()))
    }

    /// A run that a guest left under that name, with the report that becalm makes of it here.
    pub fn recorded(&self, outcome: &Outcome, name: &str) -> Run {
        let bundle = outcome.path(name);
        let report = self.ask(&["report".as_ref(), bundle.as_ref()]);
        Run { node: json(&bundle.join("runs/node=guest.json")), report }
    }
}

pub fn named(name: &str) -> Scenario {
    Scenario::named(name).unwrap_or_else(|error| panic!("{error}"))
}

/// Writes past the test harness, which keeps to itself what a passing test prints.
pub fn tell(line: &str) {
    // A closed standard error is no reason to fail.
    let _ = writeln!(io::stderr(), "{line}");
}

pub fn text(outcome: &Outcome, name: &str) -> String {
    outcome.text(name).unwrap_or_else(|error| panic!("{error}\n{}", outcome.console()))
}

pub fn number(outcome: &Outcome, name: &str) -> u64 {
    text(outcome, name).parse().unwrap_or_else(|_| panic!("{name} holds no number"))
}

pub fn json(path: &Path) -> Value {
    let text = fs::read_to_string(path).unwrap_or_else(|error| panic!("cannot read {}: {error}", path.display()));
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}: {text}", path.display()))
}

#[test]
fn the_lab_brings_back_files_and_the_status_of_a_failed_scenario() {
    let Some(lab) = Lab::open() else { return };
    let outcome = lab.boot(&named("failing"), LIMIT, BOOT_LIMIT).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(outcome.status(), 1);
    assert!(text(&outcome, "release").ends_with("-amd64"), "{}", text(&outcome, "release"));
    assert_eq!(number(&outcome, "cpus"), 2);
    assert_eq!(number(&outcome, "uid"), 0);
    assert!(!outcome.path("after").exists(), "the scenario went on after a failed command");
    let image = Kernel::debian(Flavor::Stock, lab.cache()).and_then(|kernel| kernel.image());
    let image = image.unwrap_or_else(|error| panic!("{error}"));
    assert!(image.ends_with("boot/vmlinux"), "{} takes long to boot, as it is compressed", image.display());
}

#[test]
fn the_lab_ends_a_guest_that_takes_too_long() {
    let Some(lab) = Lab::open() else { return };
    let short = Duration::from_millis(500);
    let error = lab.boot(&named("failing"), short, BOOT_LIMIT).expect_err("no kernel boots so fast");
    assert!(matches!(error, LabError::Hang(..)), "{error}");
    let error = lab.boot(&named("failing"), LIMIT, short).expect_err("no kernel boots so fast");
    assert!(matches!(error, LabError::NoBoot(..)), "{error}");
}
