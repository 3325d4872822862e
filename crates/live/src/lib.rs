//! `becalm top`: what interrupts the CPUs, shown while it is measured. It measures exactly as `becalm record` does, into a
//! hidden recording that becomes a run when the user saves it.
//!
//! Two threads: the calling one records (`feed`), another one shows (`watch`); between them lies the `session`. What is known
//! (`live`), what the user has chosen (`view`) and how both become cells of a terminal (`draw`) know nothing of either.

#![forbid(unsafe_code)]

mod columns;
mod command;
mod draw;
mod feed;
mod grid;
mod grids;
mod help;
mod history;
mod keep;
mod keys;
mod live;
mod page;
mod plain;
#[cfg(feature = "schemas")]
pub mod schemas;
mod screen;
mod session;
mod show;
mod spark;
mod table;
mod tables;
mod theme;
mod view;
mod watch;

pub use command::TopArgs;
