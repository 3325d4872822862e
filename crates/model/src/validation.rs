//! The results of `becalm-mpi validate`: a job under a grid of known noises, each measured and predicted.

use becalm_units::Nanos;
use serde::Serialize;

use crate::Estimate;

/// The measurements and predictions of one run of `becalm-mpi validate`, over its whole grid of noises.
#[derive(Clone, PartialEq, Debug)]
pub struct ValidationDoc {
    /// The MPI library's description of itself.
    pub library: String,
    /// The number of ranks of the job.
    pub ranks: u32,
    /// The number of nodes of the job.
    pub nodes: u32,
    /// The collective, with the algorithm assumed for the library: `barrier:dissemination`.
    pub collective: String,
    /// Useful CPU time of a phase; 0 for back-to-back collectives.
    pub grain_ns: Nanos,
    /// The scheduling class of the ranks: `other`, `fifo:40`.
    pub sched: String,
    /// The length of a phase without noise, in nanoseconds: the mean of the quietest batch.
    pub quiet_phase_ns: f64,
    /// The length of a compute phase without noise, in nanoseconds; for ranks that share a CPU, the sum over them.
    pub quiet_compute_ns: f64,
    /// The number of CPUs with ranks; each is predicted as one rank.
    pub cpus: u32,
    /// The mean phase without injected noise next to every run, in nanoseconds.
    pub quiet: Vec<f64>,
    /// The number of runs during which that changed, even though they were repeated.
    pub unsteady: usize,
    /// The share of time that the CPU of each of the first ranks lost before, between 0 and 1.
    pub own_noise_ratio: Vec<f64>,
    /// The network of the predictions, as LogGP parameters.
    pub network: String,
    /// The factor applied to L and o of single messages for that.
    pub fit_factor: f64,
    /// The time of a small message from rank to rank, in nanoseconds.
    pub one_way_ns: f64,
    /// The number of runs per cell.
    pub repetitions: u32,
    /// The number of predictions per cell.
    pub replicas: u64,
    /// The seed of all random places.
    pub seed: u64,
    /// The tested noises.
    pub cells: Vec<ValidationCell>,
    /// Caveats of the numbers.
    pub warnings: Vec<String>,
}

/// One noise, measured and predicted.
#[derive(Clone, PartialEq, Debug)]
pub struct ValidationCell {
    /// The time from one detour to the next.
    pub interval_ns: Nanos,
    /// The length of a detour.
    pub detour_ns: Nanos,
    /// Whether all CPUs were interrupted at the same instants.
    pub synchronized: bool,
    /// The share of time that determined the interval; `None` if the interval was requested.
    pub constant_ratio: Option<f64>,
    /// The requested share of time.
    pub requested_ratio: f64,
    /// The delivered share of time; `None` without a run.
    pub delivered_ratio: Option<f64>,
    /// The measured slowdown of phases; `None` if it was not measured.
    pub measured: Option<Estimate>,
    /// The predicted slowdown of phases; `None` if it was not measured.
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
    /// The number of cells with both effects large compared with their errors. Only their agreement is meaningful.
    pub telling: usize,
    /// The number of those whose intervals overlap.
    pub telling_overlapping: usize,
}
