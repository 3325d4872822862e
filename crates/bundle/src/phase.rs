//! A row of the table of phases.

/// A phase of a rank.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Phase {
    /// The start, by the node's clock.
    pub start_ns: i64,
    /// The duration of the compute phase.
    pub compute_ns: i64,
    /// The duration of the collective.
    pub collective_ns: i64,
}
