//! Plans, applied and restored on machines made of files, and written as files of other programs.

mod fake;
mod formats;
mod kill;
mod transaction;
