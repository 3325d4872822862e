//! Retries for tests that measure, with a report of the number of attempts.

use std::env;
use std::fmt::Write as _;
use std::fs::OpenOptions;
use std::io::Write as _;

use crate::test_name;

/// Runs an attempt until one succeeds, at most `budget` times, and returns its result.
///
/// For measurements on a shared machine: a hypervisor that takes the CPU, or a kernel thread, spoils a correct measurement. Assert what
/// must never fail within the attempt.
///
/// Prints the number of attempts. If the variable `BECALM_ATTEMPTS_FILE` names a file, appends a line `TEST<TAB>ATTEMPTS` to it for a
/// summary of all tests.
///
/// # Panics
///
/// If all attempts fail; the message has the reason of each.
#[track_caller]
pub fn attempts<T>(budget: u32, mut attempt: impl FnMut() -> Result<T, String>) -> T {
    let mut failures = String::new();
    for number in 1..=budget {
        match attempt() {
            Ok(value) => {
                report(number, budget);
                return value;
            }
            Err(why) => {
                eprintln!("{}: attempt {number} of {budget} failed: {why}", test_name());
                let _ = write!(failures, "\nattempt {number}: {why}");
            }
        }
    }
    report(budget, budget);
    panic!("all {budget} attempts failed:{failures}");
}

/// Reports the number of attempts.
fn report(attempts: u32, budget: u32) {
    let test = test_name();
    eprintln!("{test}: {attempts} of at most {budget} attempts");
    let Some(path) = env::var_os("BECALM_ATTEMPTS_FILE") else { return };
    // A single write keeps lines of parallel tests apart.
    let line = format!("{test}\t{attempts}\n");
    let written =
        OpenOptions::new().create(true).append(true).open(&path).and_then(|mut file| file.write_all(line.as_bytes()));
    written.unwrap_or_else(|error| panic!("cannot append to {}: {error}", path.display()));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_success_counts() {
        let mut calls = 0;
        let value = attempts(3, || {
            calls += 1;
            if calls == 2 { Ok("held") } else { Err("too slow".to_owned()) }
        });
        assert_eq!((value, calls), ("held", 2));
    }

    #[test]
    #[should_panic(expected = "all 2 attempts failed:\nattempt 1: too slow\nattempt 2: too slow")]
    fn a_spent_budget_fails_the_test() {
        attempts(2, || Err::<(), _>("too slow".to_owned()));
    }
}
