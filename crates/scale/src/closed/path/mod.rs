//! Closed books of jobs with messages: along the critical path.
//!
//! The rank that ends last was delayed by its own work or by a message that it waited for, whose sender was delayed likewise, and so on back to the
//! start. Noise during work on this path is attributed to the sources of its detours. Other noise came while ranks waited anyway, and cost nothing.
//!
//! Without noise, the same path is at most as long as the job without noise. If it is shorter, that much of its noise is hidden, because the job
//! would have waited anyway. If ranks share a node's card, or receive messages in order of arrival, noise also changes their order; if that costs
//! time, the hidden part is negative. Attributed is the added time plus the hidden part, to the nanosecond.

use std::collections::HashMap;

use becalm_units::Nanos;

use super::{BookedReplica, ClosedBooks, DetourBooks, ReplicaBooks, SlotCosts, sum_replicas};
use crate::ScaleError;
use crate::machine::{HeldUp, RankStart};
use crate::noise::{Noise, NoiseTrace};
use crate::predict::{CriticalPaths, Prediction};

/// The replicas of a prediction with messages at one number of ranks, with their books and the `dearest` most expensive detours.
pub(crate) fn books_along_the_path(
    prediction: &Prediction<'_>,
    noise: &Noise,
    books: &DetourBooks,
    ranks: u64,
    dearest: usize,
) -> Result<ClosedBooks, ScaleError> {
    let traces: Vec<&NoiseTrace> = noise.traces().collect();
    let CriticalPaths { quiet, replicas } = prediction.critical_paths(ranks)?;
    let replicas = replicas.into_iter().map(|path| {
        let costs = path_costs(&path.held_up, &path.starts, &traces);
        let added = books.by_source(&traces, &costs);
        let booked: Nanos = added.iter().copied().sum();
        let hidden = booked - (path.outcome.total - quiet);
        BookedReplica { books: ReplicaBooks { outcome: path.outcome, quiet, added, hidden }, costs }
    });
    Ok(sum_replicas(books, &traces, ranks, dearest, replicas))
}

/// The time that each detour of each trace took from the work on a path, for ranks with these traces and offsets.
fn path_costs(path: &[HeldUp], starts: &[RankStart<'_>], traces: &[&NoiseTrace]) -> Vec<Vec<i64>> {
    let cpus: HashMap<*const NoiseTrace, usize> =
        traces.iter().enumerate().map(|(cpu, trace)| (std::ptr::from_ref(*trace), cpu)).collect();
    let mut costs: Vec<SlotCosts> = traces.iter().map(|trace| SlotCosts::new(trace)).collect();
    for held_up in path {
        let RankStart { trace, offset } = starts[held_up.rank];
        let position = (held_up.start + offset).rem_euclid(trace.length_ns());
        let laps = (held_up.work - 1) / trace.work_ns();
        let rest = held_up.work - laps * trace.work_ns();
        costs[cpus[&std::ptr::from_ref(trace)]].add(trace, position, laps, rest);
    }
    costs.iter().zip(traces).map(|(costs, trace)| costs.costs(trace)).collect()
}

#[cfg(test)]
mod tests;
