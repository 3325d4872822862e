//! What can be wrong with a question about scale, apart from the noise itself ([`crate::noise::TraceError`]).

use becalm_units::Nanos;
use becalm_units::fault::Fault;

use crate::noise::TraceError;

/// Why a prediction was refused.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum ScaleError {
    /// The noise is not usable.
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// A formula that no noise can follow.
    #[error("{formula}: {problem}")]
    Formula {
        /// The formula.
        formula: String,
        /// What is wrong with its noise, or with a file that it names.
        problem: String,
    },
    /// A job without ranks.
    #[error("the number of ranks is 0; at least 1 is needed")]
    NoRanks,
    /// More ranks than the method can hold.
    #[error("{ranks} ranks are more than the {limit} that {method} can hold{advice}")]
    TooManyRanks {
        /// How many were asked for.
        ranks: u64,
        /// How many are possible.
        limit: u64,
        /// The method that cannot hold them.
        method: &'static str,
        /// What to do instead; empty or starting with a semicolon.
        advice: &'static str,
    },
    /// A prediction over no phases.
    #[error("the number of phases is 0; at least 1 is needed")]
    NoPhases,
    /// A grain of zero or less where one is needed.
    #[error("the grain is {grain}; {needed}")]
    Grain {
        /// The grain that was given.
        grain: Nanos,
        /// What is needed instead, as a part of a sentence.
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
        /// The number of CPUs that were recorded on it.
        cpus: usize,
    },
    /// Times that would not fit.
    #[error("{what} would exceed the {limit} that times can hold; {advice}")]
    Overflow {
        /// The time that would be too long.
        what: &'static str,
        /// The longest time that can be held.
        limit: Nanos,
        /// What to do instead.
        advice: &'static str,
    },
    /// A number outside its range.
    #[error("{name} is {value}, outside of {allowed}")]
    Range {
        /// The parameter, as a part of a sentence.
        name: &'static str,
        /// The value that was given.
        value: String,
        /// The values that are allowed, as a part of a sentence.
        allowed: &'static str,
    },
    /// A source that the books do not hold.
    #[error("no source is called '{name}'; the sources are {known}")]
    UnknownSource {
        /// What was asked for.
        name: String,
        /// The names that there are, separated by commas.
        known: String,
    },
    /// A text that does not describe what it should.
    #[error("'{text}' is not {expected}: {why}; {form}")]
    Text {
        /// The text that was given.
        text: String,
        /// What it should describe.
        expected: &'static str,
        /// What is wrong with it.
        why: String,
        /// How to write it.
        form: &'static str,
    },
}

impl Fault for ScaleError {
    fn is_usage(&self) -> bool {
        !matches!(self, Self::Trace(_) | Self::FewCpus { .. } | Self::UnknownSource { .. })
    }
}
