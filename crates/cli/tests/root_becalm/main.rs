//! The program from the outside, where that needs root or an idle machine. The tests run one at a time.

// A test says what it has measured.
#![allow(clippy::print_stderr)]

mod bench;
mod book;
mod campaign;
mod cost;
mod explain;
mod foreign;
mod habits;
mod hosts;
mod inject;
mod kubernetes;
mod names;
mod observe;
mod quota;
mod recording;
mod rights;
mod robust;
mod slurm;
mod top;
mod tune;
mod watch;
