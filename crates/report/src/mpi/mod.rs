//! The output of `becalm-mpi`: the duration of a job's phases, and the accuracy of predictions.

pub(crate) mod grains;
pub(crate) mod jobs;
pub(crate) mod run;
pub(crate) mod validate;

use becalm_units::plural;

/// A number of ranks, in words.
fn ranks(count: u32) -> String {
    format!("{count} {}", plural(count.into(), "rank", "ranks"))
}

/// A number of nodes, in words.
fn nodes(count: u32) -> String {
    format!("{count} {}", plural(count.into(), "node", "nodes"))
}
