//! C programs, and running them under noise.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use becalm_inject::Together;
use becalm_inject::{DeliveredSignals, Fit, InjectError, SignalNoise, SignalPlan};
use becalm_scale::NoiseTrace;
use becalm_scale::spec::NoiseSpec;

/// Builds a program with the compiler that links Rust's.
pub fn compiled(folder: &Path, name: &str) -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/programs/{name}.c"));
    let program = folder.join(name);
    let built =
        Command::new("cc").args(["-O1", "-Wall", "-Werror", "-pthread", "-o"]).arg(&program).arg(&source).status();
    assert!(built.expect("there is a C compiler").success());
    program
}

/// The noise of a formula.
pub fn trace(spec: &str) -> NoiseTrace {
    spec.parse::<NoiseSpec>().unwrap().trace(1).unwrap()
}

/// A plan to put the noise of a formula on all threads.
pub fn plan(spec: &str) -> SignalPlan {
    SignalPlan {
        traces: vec![trace(spec)],
        together: Together::Apart,
        seed: 1,
        node: 0,
        host: 0,
        fit: Fit::Exact,
        main_thread_only: false,
        user: None,
    }
}

/// Runs a command under noise to its end.
pub fn run_under_noise(plan: &SignalPlan, command: &mut Command) -> (Output, Result<DeliveredSignals, InjectError>) {
    let noise = SignalNoise::prepare(plan).unwrap();
    let output = command.envs(noise.environment()).output().unwrap();
    (output, noise.delivered())
}

/// The output of a command, and how it ended.
pub fn text(output: &Output) -> String {
    format!("{}{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr), output.status)
}
