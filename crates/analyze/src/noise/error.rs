//! Why noise for a prediction cannot be read from a run.

use std::path::PathBuf;

use becalm_bundle::BundleError;
use becalm_scale::TraceError;
use becalm_scale::books::BooksError;
use becalm_units::Nanos;
use becalm_units::fault::{Fault, Wording};

use crate::summary::SummaryError;

/// The noise of a run cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum NoiseError {
    /// The run lacks what was selected.
    #[error(transparent)]
    Selection(#[from] SummaryError),
    /// A file of the run cannot be read.
    #[error(transparent)]
    Bundle(#[from] BundleError),
    /// The run was recorded without sources.
    #[error(
        "{} does not say what took the time on node {node}, so no source can be taken out; record it with sources",
        .run.display()
    )]
    NoBooks {
        /// The path of the run.
        run: PathBuf,
        /// The node without books.
        node: String,
    },
    /// No observed thread ran or waited for a CPU, or the kernel was not traced.
    #[error("{} shows no thread that ran: it was observed without the kernel's trace, or the threads slept", .run.display())]
    NoThreads {
        /// The path of the recording.
        run: PathBuf,
    },
    /// The detours of a CPU are not a valid noise trace, or its books do not match them.
    #[error("the recording of CPU {cpu} of node {node}: {source}")]
    Cpu {
        /// The number of the CPU.
        cpu: i32,
        /// The name of the node that the CPU belongs to.
        node: String,
        /// The error.
        r#source: BooksError,
    },
    /// Nodes that were recorded at different times.
    #[error(
        "the nodes were watched together for {common} only, by their wall clocks, and one of them for {longest}; ranks as recorded \
         need at least half of that"
    )]
    NotAtOneTime {
        /// The time when all of them were watched.
        common: Nanos,
        /// The longest time that one of them was watched.
        longest: Nanos,
    },
    /// Nodes are to be replayed as recorded, but the file of one does not contain its start time.
    #[error("the file of one of the nodes does not say when it was recorded, so ranks as recorded cannot be aligned")]
    StartUnknown,
    /// The CPUs together are not a valid noise.
    #[error(transparent)]
    Trace(#[from] TraceError),
}

impl Fault for NoiseError {
    fn hint(&self) -> Option<Wording> {
        match self {
            Self::Selection(error) => error.hint(),
            Self::Bundle(error) => error.hint(),
            Self::NotAtOneTime { .. } => {
                Some(Wording::new(": record the nodes at the same time, or take one with {node}"))
            }
            Self::StartUnknown => Some(Wording::new(": take one node with {node}, or other placements of the ranks")),
            Self::NoBooks { .. } | Self::NoThreads { .. } | Self::Cpu { .. } | Self::Trace(_) => None,
        }
    }
}
