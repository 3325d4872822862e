//! Threads that share a computation, one on each CPU. Where the system gives none (`ulimit -u`), whoever computes does it alone.

#[cfg(feature = "parallel")]
use std::sync::OnceLock;

#[cfg(feature = "parallel")]
use rayon::{ThreadPool, ThreadPoolBuilder, prelude::*};

/// The threads, which are started when they are first needed. rayon's own would end the program where they cannot be.
#[cfg(feature = "parallel")]
fn workers() -> Option<&'static ThreadPool> {
    static WORKERS: OnceLock<Option<ThreadPool>> = OnceLock::new();
    WORKERS.get_or_init(|| ThreadPoolBuilder::new().build().ok()).as_ref()
}

/// What becomes of each value, in their order.
pub(crate) fn side_by_side<A: Sync, B: Send, E: Send>(
    values: &[A],
    act: impl Fn(&A) -> Result<B, E> + Sync,
) -> Result<Vec<B>, E> {
    #[cfg(feature = "parallel")]
    if let Some(workers) = workers() {
        return workers.install(|| values.par_iter().map(&act).collect());
    }
    values.iter().map(act).collect()
}

/// A part of a computation.
pub(crate) type Task<'t> = Box<dyn FnOnce() + Send + 't>;

/// Does all tasks. They come without a type of their own: for each other type, rayon would be compiled once more.
pub(crate) fn run_all(tasks: Vec<Task<'_>>) {
    #[cfg(feature = "parallel")]
    if let Some(workers) = workers() {
        return workers.install(|| tasks.into_par_iter().for_each(|task| task()));
    }
    tasks.into_iter().for_each(|task| task());
}
