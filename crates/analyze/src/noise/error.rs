//! Why a run gives no noise to predict from.

use std::path::PathBuf;

use becalm_bundle::BundleError;
use becalm_scale::TraceError;
use becalm_scale::books::BooksError;

use crate::summary::SummaryError;

/// The noise of a run cannot be had.
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
        "{} does not say what took the time on node {node}, so that no source can be taken out; record it with sources",
        .run.display()
    )]
    NoBooks {
        /// The path of the run.
        run: PathBuf,
        /// The node without books.
        node: String,
    },
    /// The detours of a CPU are no noise, or their books do not fit them.
    #[error("the recording of CPU {cpu} of node {node}: {source}")]
    Cpu {
        /// The number of the CPU.
        cpu: i32,
        /// The name of the node that the CPU belongs to.
        node: String,
        /// What is wrong with it.
        r#source: BooksError,
    },
    /// The CPUs together are no noise.
    #[error(transparent)]
    Trace(#[from] TraceError),
}
