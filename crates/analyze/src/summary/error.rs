//! Why a bundle gives no numbers.

use std::path::PathBuf;

use becalm_bundle::BundleError;
use becalm_units::fault::{Fault, Wording};
use becalm_units::{CpuId, CpuList, cpus};

/// A summary that could not be made. The messages are whole, as those of [`BundleError`].
#[derive(Debug, thiserror::Error)]
pub enum SummaryError {
    /// A file of the bundle.
    #[error("{0}")]
    Bundle(BundleError),
    /// A run of work, whose samples are no detours.
    #[error("{} holds samples of work and no detours", .path.display())]
    Work {
        /// The bundle that holds them.
        path: PathBuf,
    },
    /// Of a recording in summary form becalm's own time was asked to count.
    #[error("the summary form of {} does not say in which detours becalm itself ran", .path.display())]
    OwnTime {
        /// The bundle that holds the summary form.
        path: PathBuf,
    },
    /// CPUs were asked for that no node of the selection measured.
    #[error("the run did not measure {}; it measured {}", cpus(missing), cpus(measured))]
    NotMeasured {
        /// What was asked for in vain.
        missing: CpuList,
        /// The CPUs that the run measured.
        measured: CpuList,
    },
    /// A detour was asked for that does not exist.
    #[error("CPU {cpu} of node '{node}' has no detour {number}: {}", range(*.detours))]
    NoSuchDetour {
        /// The node on which it was looked for.
        node: String,
        /// The CPU on which it was looked for.
        cpu: CpuId,
        /// The number that was asked for.
        number: u64,
        /// How many detours the CPU has.
        detours: u64,
    },
}

impl Fault for SummaryError {
    fn hint(&self) -> Option<Wording> {
        match self {
            Self::Bundle(error) => error.hint(),
            Self::Work { .. } => Some(Wording::new(
                ": becalm report shows them, becalm work --baseline holds them against others, and becalm record records detours",
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
