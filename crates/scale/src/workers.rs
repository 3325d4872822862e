//! Threads that share a computation, one per CPU. If the system allows none (`ulimit -u`), the caller computes alone.

#[cfg(feature = "parallel")]
use std::sync::OnceLock;

#[cfg(feature = "parallel")]
use rayon::{ThreadPool, ThreadPoolBuilder, prelude::*};

/// The threads, started on first use. rayon's own pool would abort the program if they cannot be started.
#[cfg(feature = "parallel")]
fn workers() -> Option<&'static ThreadPool> {
    static WORKERS: OnceLock<Option<ThreadPool>> = OnceLock::new();
    WORKERS.get_or_init(|| ThreadPoolBuilder::new().build().ok()).as_ref()
}

/// Maps each value, keeping their order.
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

/// Runs all tasks. They are boxed because rayon would otherwise be compiled again for each type.
pub(crate) fn run_all(tasks: Vec<Task<'_>>) {
    #[cfg(feature = "parallel")]
    if let Some(workers) = workers() {
        return workers.install(|| tasks.into_par_iter().for_each(|task| task()));
    }
    tasks.into_iter().for_each(|task| task());
}
