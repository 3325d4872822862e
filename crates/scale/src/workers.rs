//! Threads that share a computation, one on each CPU. Where the system gives none (`ulimit -u`), whoever computes does it alone.

use std::sync::OnceLock;

use rayon::prelude::*;
use rayon::{ThreadPool, ThreadPoolBuilder};

/// The threads, which are started when they are first needed. rayon's own would end the program where they cannot be.
pub(crate) fn workers() -> Option<&'static ThreadPool> {
    static WORKERS: OnceLock<Option<ThreadPool>> = OnceLock::new();
    WORKERS.get_or_init(|| ThreadPoolBuilder::new().build().ok()).as_ref()
}

/// What becomes of each value, in their order.
pub(crate) fn side_by_side<A: Sync, B: Send, E: Send>(
    values: &[A],
    act: impl Fn(&A) -> Result<B, E> + Sync,
) -> Result<Vec<B>, E> {
    match workers() {
        Some(workers) => workers.install(|| values.par_iter().map(&act).collect()),
        None => values.iter().map(act).collect(),
    }
}

/// A part of a computation.
pub(crate) type Task<'t> = Box<dyn FnOnce() + Send + 't>;

/// Does all tasks. They come without a type of their own: for each other type, rayon would be compiled once more.
pub(crate) fn run_all(tasks: Vec<Task<'_>>) {
    match workers() {
        Some(workers) => workers.install(|| tasks.into_par_iter().for_each(|task| task())),
        None => tasks.into_iter().for_each(|task| task()),
    }
}
