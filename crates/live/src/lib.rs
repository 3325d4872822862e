//! `becalm top`: shows what interrupts the CPUs during the measurement. It measures exactly like `becalm record`, into a hidden recording that the
//! user can save.
//!
//! There are two threads: the calling one records (`feed`), another one shows (`watch`); they share the `session`. The data (`live`), the user's
//! choices (`view`) and the drawing (`draw`) depend on neither. With `--observe`, one thread observes and shows (`observed`), with sums in `since`.

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
mod observed;
mod page;
mod plain;
#[cfg(feature = "schemas")]
pub mod schemas;
mod screen;
mod session;
mod show;
mod since;
mod spark;
mod table;
mod tables;
mod theme;
mod view;
mod watch;

pub use command::TopArgs;
