//! Helpers for the tests of several crates. No product code uses this crate.

#![forbid(unsafe_code)]
// A skipped test prints the reason, and a repeated one the number of attempts, on standard error.
#![allow(clippy::print_stderr)]

pub mod attack;
mod attempts;
pub mod book;
pub mod cgroup;
pub mod hostile;
pub mod machine;
mod needs;
pub mod noise;
pub mod page;
mod patience;
pub mod program;
pub mod rare;
pub mod watched;

pub use attempts::attempts;
pub use needs::{Need, find_program, machine_has, skip};
pub use patience::{PATIENCE, wait_until};

/// The name of the running test with its modules: the test harness names each test's thread after it.
fn test_name() -> String {
    std::thread::current().name().unwrap_or("a thread without a name").to_owned()
}
