//! Errors of questions about scale, apart from the noise itself ([`crate::noise::TraceError`]).

use becalm_units::Nanos;
use becalm_units::fault::Fault;

use crate::noise::TraceError;

/// Why a prediction was rejected.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum ScaleError {
    /// The noise is not usable.
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// A formula with impossible noise, or with a file that cannot be used; and the problem.
    #[error("{0}: {1}")]
    Formula(String, String),
    /// A job without ranks.
    #[error("the number of ranks is 0; at least 1 is needed")]
    NoRanks,
    /// Too many ranks for the method.
    #[error("{ranks} ranks are more than the {limit} that {method} can hold{advice}")]
    TooManyRanks {
        /// The requested number.
        ranks: u64,
        /// The maximum.
        limit: u64,
        /// The limited method.
        method: &'static str,
        /// The advice; empty or starting with a semicolon.
        advice: &'static str,
    },
    /// A prediction over no phases.
    #[error("the number of phases is 0; at least 1 is needed")]
    NoPhases,
    /// A grain that does not meet a need; the text is a part of a sentence.
    #[error("the grain is {0}; {1}")]
    Grain(Nanos, &'static str),
    /// This many ranks do not leave those of the table's last unit, with units of this many ranks.
    #[error("the table is for units of {1} ranks and another rest of them than {0} ranks leave")]
    PartialNode(u64, u64),
    /// A node with fewer recorded CPUs than ranks.
    #[error("{per_node} ranks a node need as many recorded CPUs, but node {node} has {cpus}")]
    FewCpus {
        /// Ranks of a node.
        per_node: u64,
        /// The name of the node.
        node: String,
        /// The number of its recorded CPUs.
        cpus: usize,
    },
    /// A time that would exceed its limit, and the advice.
    #[error("{0} would exceed the {1} that times can hold; {2}")]
    Overflow(&'static str, Nanos, &'static str),
    /// A parameter, its value, and the allowed values, as parts of a sentence.
    #[error("{0} is {1}, outside of {2}")]
    Range(&'static str, String, &'static str),
    /// A source that is not in the books.
    #[error("no source is called '{name}'; the sources are {known}")]
    UnknownSource {
        /// The requested name.
        name: String,
        /// The known names, separated by commas.
        known: String,
    },
    /// A text in the wrong format.
    #[error("'{text}' is not {expected}: {why}; {form}")]
    Text {
        /// The given text.
        text: String,
        /// The thing that it should describe.
        expected: &'static str,
        /// The problem.
        why: String,
        /// The expected format.
        form: &'static str,
    },
}

impl Fault for ScaleError {
    fn is_usage(&self) -> bool {
        !matches!(self, Self::Trace(_) | Self::FewCpus { .. } | Self::UnknownSource { .. })
    }
}
