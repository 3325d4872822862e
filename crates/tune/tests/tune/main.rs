//! Plans, applied and restored on machines made of files, and written as files of other programs.

mod bench;
mod fake;
mod formats;
mod full;
mod journal;
mod kill;
mod transaction;
