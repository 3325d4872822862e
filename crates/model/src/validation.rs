//! What `becalm-mpi validate` found: a job under a grid of known noises, each measured and predicted.

use becalm_units::Nanos;
use serde::Serialize;

use crate::Estimate;

/// What one run of `becalm-mpi validate` measured and predicted, over its whole grid of noises.
#[derive(Clone, PartialEq, Debug)]
pub struct ValidationDoc {
    /// The MPI library's own words.
    pub library: String,
    /// The number of ranks of the job.
    pub ranks: u32,
    /// The number of nodes of the job.
    pub nodes: u32,
    /// The collective, with the algorithm that is taken for the library's: `barrier:dissemination`.
    pub collective: String,
    /// Useful CPU time of a phase; 0 of collectives back to back.
    pub grain_ns: Nanos,
    /// The scheduling class of the ranks: `other`, `fifo:40`.
    pub sched: String,
    /// How long a phase takes without noise, in nanoseconds: the mean of the quietest batch.
    pub quiet_phase_ns: f64,
    /// How long a compute phase takes without noise, in nanoseconds; of ranks that share a CPU, those of all of them.
    pub quiet_compute_ns: f64,
    /// The number of CPUs that the ranks run on, each of which is predicted as one rank.
    pub cpus: u32,
    /// The mean phase without injected noise beside every run, in nanoseconds.
    pub quiet: Vec<f64>,
    /// The number of runs during which that changed, though they were made again.
    pub unsteady: usize,
    /// The share of time that each of the first ranks' CPUs lost before, between 0 and 1.
    pub own_noise_ratio: Vec<f64>,
    /// The network of the predictions, as LogGP's parameters.
    pub network: String,
    /// What L and o of single messages were multiplied with for that.
    pub fit_factor: f64,
    /// What a small message takes from rank to rank, in nanoseconds.
    pub one_way_ns: f64,
    /// The number of runs of a cell.
    pub repetitions: u32,
    /// The number of predictions of a cell.
    pub replicas: u64,
    /// The seed from which all random places were drawn.
    pub seed: u64,
    /// The noises that were tried.
    pub cells: Vec<ValidationCell>,
    /// What must be known before the numbers are believed.
    pub warnings: Vec<String>,
}

/// One noise, measured and predicted.
#[derive(Clone, PartialEq, Debug)]
pub struct ValidationCell {
    /// From one detour to the next.
    pub interval_ns: Nanos,
    /// How long a detour lasts.
    pub detour_ns: Nanos,
    /// Whether all CPUs lost the same instants.
    pub synchronized: bool,
    /// The share of time from which the interval follows; `None` where the interval was asked for.
    pub constant_ratio: Option<f64>,
    /// The share of time asked for.
    pub requested_ratio: f64,
    /// The share of time delivered; `None` if no run was made.
    pub delivered_ratio: Option<f64>,
    /// How many times as long phases took; `None` if it was not measured.
    pub measured: Option<Estimate>,
    /// How many times as long phases were to take; `None` if it was not measured.
    pub predicted: Option<Estimate>,
    /// Why it was not measured; `None` if it was.
    pub why_not: Option<String>,
}

/// Mean absolute errors of some cells; `None` of no cells.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct ValidationErrors {
    /// The number of cells that were measured.
    pub cells: usize,
    /// The mean error of their slowdowns.
    pub mean_error_ratio: Option<f64>,
    /// The largest error of their slowdowns.
    pub max_error_ratio: Option<f64>,
    /// The number of cells whose noise is visible.
    pub visible: usize,
    /// The mean error of the time that those add.
    pub mean_added_error_ratio: Option<f64>,
    /// The number of cells whose intervals overlap.
    pub overlapping: usize,
    /// The number of cells in which both effects are large against their errors, so that agreeing says something.
    pub telling: usize,
    /// The number of those whose intervals overlap.
    pub telling_overlapping: usize,
}
