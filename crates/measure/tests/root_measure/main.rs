//! Measurements on the running kernel, held against what is known: noise that the tests make themselves, and what must cost
//! more than what. Most tests need root and two CPUs, and run one at a time; those in `quiet` need a machine that does nothing else.

// A test says what it has measured.
#![allow(clippy::print_stderr)]

mod carried;
mod inject;
mod known_noise;
mod makers;
mod makers_hold;
mod planted;
mod quiet;
mod recording;
