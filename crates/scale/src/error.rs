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
    /// A formula with impossible noise.
    #[error("{formula}: {problem}")]
    Formula {
        /// The formula.
        formula: String,
        /// The problem with its noise, or with a file that it names.
        problem: String,
    },
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
    /// A grain of zero or less where one is needed.
    #[error("the grain is {grain}; {needed}")]
    Grain {
        /// The given grain.
        grain: Nanos,
        /// The needed grain, as a part of a sentence.
        needed: &'static str,
    },
    /// A table of delays whose last unit has another number of ranks.
    #[error("the table is for units of {per_node} ranks and another rest of them than {ranks} ranks leave")]
    PartialNode {
        /// Ranks of the job.
        ranks: u64,
        /// Ranks of a full unit.
        per_node: u64,
    },
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
    /// Times that would not fit.
    #[error("{what} would exceed the {limit} that times can hold; {advice}")]
    Overflow {
        /// The time that is too long.
        what: &'static str,
        /// The maximum.
        limit: Nanos,
        /// The advice.
        advice: &'static str,
    },
    /// A number outside its range.
    #[error("{name} is {value}, outside of {allowed}")]
    Range {
        /// The parameter, as a part of a sentence.
        name: &'static str,
        /// The given value.
        value: String,
        /// The allowed values, as a part of a sentence.
        allowed: &'static str,
    },
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
