//! Why a bundle cannot be summarized.

use std::path::PathBuf;

use becalm_bundle::BundleError;
use becalm_units::fault::{Fault, Wording};
use becalm_units::{CpuId, CpuList, cpus};

/// A summary that could not be made. The messages are complete, like those of [`BundleError`].
#[derive(Debug, thiserror::Error)]
pub enum SummaryError {
    /// A file of the bundle cannot be read.
    #[error("{0}")]
    Bundle(BundleError),
    /// A run of work, whose samples are no detours.
    #[error("{} holds samples of work and no detours", .path.display())]
    Work {
        /// The bundle of the run.
        path: PathBuf,
    },
    /// Counting becalm's own time was requested for a recording in summary form.
    #[error("the summary form of {} does not say which detours contain becalm's own time", .path.display())]
    OwnTime {
        /// The bundle of the summary form.
        path: PathBuf,
    },
    /// No selected node measured the requested CPUs.
    #[error("the run did not measure {}; it measured {}", cpus(missing), cpus(measured))]
    NotMeasured {
        /// The missing CPUs.
        missing: CpuList,
        /// The CPUs that the run measured.
        measured: CpuList,
    },
    /// The requested detour does not exist.
    #[error("CPU {cpu} of node '{node}' has no detour {number}: {}", range(*.detours))]
    NoSuchDetour {
        /// The node searched.
        node: String,
        /// The CPU searched.
        cpu: CpuId,
        /// The requested number.
        number: u64,
        /// The number of detours of the CPU.
        detours: u64,
    },
}

impl Fault for SummaryError {
    fn hint(&self) -> Option<Wording> {
        match self {
            Self::Bundle(error) => error.hint(),
            Self::Work { .. } => Some(Wording::new(
                ": becalm report shows them, becalm work --baseline compares them with others, and becalm record records detours",
            )),
            Self::OwnTime { .. } => Some(Wording::new("; leave {with_self!} out")),
            Self::NotMeasured { .. } | Self::NoSuchDetour { .. } => None,
        }
    }
}

fn range(detours: u64) -> String {
    match detours.checked_sub(1) {
        None => "the run has none on that CPU".to_owned(),
        Some(last) => format!("they are numbered from 0 to {last}"),
    }
}

impl From<BundleError> for SummaryError {
    fn from(error: BundleError) -> Self {
        Self::Bundle(error)
    }
}
