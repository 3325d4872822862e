//! becalm attacked: killed, stopped, starved, and fed with what is damaged or made up, each many times over. Nothing may be
//! left behind, nothing may crash or hang, and every refusal has a message.
//!
//! Each kind of attack is a row of the table in `docs/src/attacks.md`. Every run of the tests makes a few tries of each; `make
//! test-attack` makes all, and prints the table. The tests run one at a time.

// A test says what it has tried.
#![allow(clippy::print_stderr)]

mod bundles;
mod damage;
mod injecting;
mod kills;
mod limits;
mod recording;
mod stuck;
mod texts;
mod trace;
mod tuning;
mod views;
mod watch;
