//! Why runs cannot be compared.

use std::path::PathBuf;

use becalm_units::fault::{Fault, Wording};
use becalm_units::{CpuId, CpuList, cpus};

use crate::summary::SummaryError;

/// A comparison that could not be made.
#[derive(Debug, thiserror::Error)]
pub enum CompareError {
    /// One of the sides has no run.
    #[error("a comparison takes at least one run a side")]
    NoRun,
    /// One of the runs cannot be read, or lacks the selected data.
    #[error("{}", run_cause(.path, .cause))]
    Run {
        /// The bundle of the run.
        path: PathBuf,
        /// The error.
        cause: SummaryError,
    },
    /// No CPU was measured in both runs.
    #[error(
        "the runs have no CPU in common: {} measured {}, {} measured {}; name the CPUs of each that are to be compared as a \
         whole", .a.display(), cpus(.cpus_a), .b.display(), cpus(.cpus_b)
    )]
    NoCommonCpu {
        /// The bundle of the run before.
        a: PathBuf,
        /// The CPUs that the run before measured.
        cpus_a: CpuList,
        /// The bundle of the run after.
        b: PathBuf,
        /// The CPUs that the run after measured.
        cpus_b: CpuList,
    },
    /// The runs have several nodes, none with the same name.
    #[error(
        "the runs have no node in common: {} has {nodes_a}, {} has {nodes_b}; name one of each",
        .a.display(), .b.display()
    )]
    NoCommonNode {
        /// The bundle of the run before.
        a: PathBuf,
        /// The nodes of the run before, separated by commas.
        nodes_a: String,
        /// The bundle of the run after.
        b: PathBuf,
        /// The nodes of the run after, separated by commas.
        nodes_b: String,
    },
    /// The observation time of a CPU, needed for rates, is unknown.
    #[error(
        "{} does not say for how long CPU {cpu} of node '{node}' was observed, and without that it has no rates; compare \
         other CPUs, or record again", .path.display()
    )]
    NoDuration {
        /// The bundle of the run.
        path: PathBuf,
        /// The host with the incomplete document.
        node: String,
        /// The first CPU without a duration.
        cpu: CpuId,
    },
    /// A run without any CPU that a detour-detecting loop measured.
    #[error(
        "{} does not say that any CPU was measured: it is the run of another program, or one that failed at its start",
        .path.display()
    )]
    NoDetourLoop {
        /// The bundle of the run.
        path: PathBuf,
    },
}

impl Fault for CompareError {
    fn hint(&self) -> Option<Wording> {
        match self {
            Self::Run { cause, .. } => cause.hint(),
            Self::NoCommonCpu { .. } => Some(Wording::new(" ({cpus_before}, {cpus_after})")),
            Self::NoCommonNode { .. } => Some(Wording::new(" ({node_before}, {node_after})")),
            Self::NoRun | Self::NoDuration { .. } | Self::NoDetourLoop { .. } => None,
        }
    }
}

/// The bundle's own errors name their files, as does the error for a run of another kind.
fn run_cause(path: &std::path::Path, cause: &SummaryError) -> String {
    match cause {
        SummaryError::Bundle(cause) => cause.to_string(),
        SummaryError::Work { .. } | SummaryError::OwnTime { .. } => cause.to_string(),
        cause => format!("{}: {cause}", path.display()),
    }
}
