//! The program from the outside, as far as that needs neither root nor an idle machine. What it prints word by word is
//! tested in `golden`.

// A test says what it has measured.
#![allow(clippy::print_stderr)]

mod compare;
mod cost;
mod deploy;
mod doctor;
mod exchange;
mod explain;
mod foreign;
mod habits;
mod inject;
mod inject_sweep;
mod missing;
mod pages;
mod paper;
mod robust;
mod safe;
mod shell;
mod study;
mod sweep;
mod threads;
