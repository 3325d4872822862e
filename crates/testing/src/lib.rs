//! Helpers that the tests of several crates share. No product code uses this crate.

#![forbid(unsafe_code)]
// A skipped test says why, and a repeated one says how often, on standard error.
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

/// The name of the running test with its modules. The test harness runs each test on a thread of that name.
fn test_name() -> String {
    std::thread::current().name().unwrap_or("a thread without a name").to_owned()
}
