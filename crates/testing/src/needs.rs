//! Requirements of tests that not every machine meets, and skipping.
//!
//! A skipped test prints the reason on standard error. With the variable `BECALM_CI` set, skipping is a failure.

use std::env;
use std::path::{Path, PathBuf};

use rustix::process::geteuid;
use rustix::thread::sched_getaffinity;

use crate::test_name;

/// A requirement of a test.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Need<'a> {
    /// Root rights.
    Root,
    /// At least two CPUs that this process may run on.
    TwoCpus,
    /// The kernel's tracing files at `/sys/kernel/tracing`.
    Tracefs,
    /// A program of this name.
    Program(&'a str),
}

impl Need<'_> {
    /// Whether the machine meets the need, for a test that does less without it instead of being skipped.
    pub fn is_met(self) -> bool {
        self.missing().is_none()
    }

    /// Why the machine does not meet the need; `None` if it does.
    fn missing(self) -> Option<String> {
        match self {
            Self::Root => (!geteuid().is_root()).then(|| "it needs root".to_owned()),
            Self::TwoCpus => {
                let cpus = sched_getaffinity(None).map_or(0, |cpus| cpus.count());
                (cpus < 2).then(|| "it needs two CPUs".to_owned())
            }
            Self::Tracefs => (!Path::new("/sys/kernel/tracing/instances").is_dir())
                .then(|| "there is no tracefs at /sys/kernel/tracing".to_owned()),
            Self::Program(name) => find_program(name).is_none().then(|| format!("the program {name} is not installed")),
        }
    }
}

/// Whether the machine has everything that the running test needs. If not, prints what is missing; the test should return.
///
/// ```no_run
/// # use becalm_testing::{Need, machine_has};
/// if !machine_has(&[Need::Root, Need::TwoCpus]) {
///     return;
/// }
/// ```
///
/// # Panics
///
/// If something is missing although `BECALM_CI` is set.
#[must_use]
#[track_caller]
pub fn machine_has(needs: &[Need<'_>]) -> bool {
    match needs.iter().find_map(|need| need.missing()) {
        Some(why) => {
            skip(&why);
            false
        }
        None => true,
    }
}

/// Prints why the running test is skipped, in whole or in part.
///
/// # Panics
///
/// If `BECALM_CI` is set.
#[track_caller]
pub fn skip(why: &str) {
    let test = test_name();
    assert!(env::var_os("BECALM_CI").is_none(), "{test} must not be skipped here, but {why}");
    eprintln!("{test}: skipped, as {why}");
}

/// The path of a program, including administrators' programs that may not be in a user's `PATH`.
pub fn find_program(name: &str) -> Option<PathBuf> {
    let folders = env::var_os("PATH").unwrap_or_default();
    let folders: Vec<PathBuf> = env::split_paths(&folders).chain(["/usr/sbin".into(), "/sbin".into()]).collect();
    folders.into_iter().map(|folder| folder.join(name)).find(|path| path.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_harness_names_the_thread_after_the_test() {
        assert_eq!(test_name(), "needs::tests::the_harness_names_the_thread_after_the_test");
    }

    #[test]
    fn a_program_is_found_or_said_to_be_missing() {
        assert_eq!(Need::Program("sh").missing(), None);
        let why = Need::Program("no-such-program").missing();
        assert_eq!(why.as_deref(), Some("the program no-such-program is not installed"));
    }
}
