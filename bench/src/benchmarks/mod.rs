//! The benchmarks, one question each. A single program, because each one would be compiled and linked with the parts of all others.

use std::process::ExitCode;

mod afterwards;
mod books;
mod checks;
mod collectives;
mod costs;
mod equal;
mod fleet;
mod loggopsim;
mod observe;
mod published;
mod python;
mod quiet;
mod recordings;
mod replay;
mod sharp;
mod size;
mod spans;
mod storms;
mod threads;

/// Runs a benchmark; returns whether its claims hold.
pub type Run = fn() -> ExitCode;

/// Benchmarks that record on this machine or tune it, by name, in running order.
pub const RECORDING: [(&str, Run); 8] = [
    ("sharp", sharp::run),
    ("quiet", quiet::run),
    ("storms", storms::run),
    ("equal", equal::run),
    ("costs", costs::run),
    ("afterwards", afterwards::run),
    ("threads", threads::run),
    ("observe", observe::run),
];

/// Benchmarks that only compute.
pub const COMPUTING: [(&str, Run); 11] = [
    ("replay", replay::run),
    ("published", published::run),
    ("recordings", recordings::run),
    ("books", books::run),
    ("collectives", collectives::run),
    ("loggopsim", loggopsim::run),
    ("checks", checks::run),
    ("fleet", fleet::run),
    ("python", python::run),
    ("size", size::run),
    ("spans", spans::run),
];

/// All benchmarks in running order.
pub fn all() -> impl Iterator<Item = (&'static str, Run)> {
    RECORDING.into_iter().chain(COMPUTING)
}
