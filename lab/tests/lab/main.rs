//! What becalm does on kernels that are not the one at hand.
//!
//! Durations are the emulator's and mean little; counts are the kernel's, and becalm's must agree with them.

#![forbid(unsafe_code)]
#![allow(clippy::print_stdout, reason = "the test harness keeps it and shows it when the test fails")]

mod apply;
mod comparison;
mod functions;
mod guests;
mod matrix;
mod osnoise;
mod recording;
mod recordings;
mod settings;
