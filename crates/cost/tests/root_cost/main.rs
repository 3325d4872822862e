//! Costs on the running kernel. Most tests need root and two CPUs, and run one at a time.

// A test says what it has measured.
#![allow(clippy::print_stderr)]

mod probes;
mod tick;
