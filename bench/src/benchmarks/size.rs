//! The size of the installed program.

use std::fs;
use std::process::ExitCode;

use crate::claims::{Claims, Figure};
use crate::effort::Effort;
use crate::programs;

/// The limit, in megabytes.
const LARGEST: f64 = 15.0;

pub fn run() -> ExitCode {
    let effort = Effort::from_arguments();
    let mut claims = Claims::begin("size: the program as it is installed", effort);
    let path = programs::becalm();
    match fs::metadata(&path) {
        // The build for tests includes what the tests need, and is not stripped.
        Ok(_) if effort == Effort::Quick => claims.skip("the program's file", "a quick run has the build of the tests"),
        Ok(file) => {
            claims.at_most("the program's file", Figure { value: file.len() as f64 / 1e6, unit: "MB" }, LARGEST)
        }
        Err(error) => claims.fail("the program's file", &format!("{}: {error}", path.display())),
    }
    claims.end()
}
