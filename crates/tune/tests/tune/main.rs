//! Tuning of machines made of files: plans, what comes of them, and what comes back, also of a process that is killed.

mod fake;
mod formats;
mod kill;
mod transaction;
