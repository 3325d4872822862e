//! A row of the table of phases.

/// A phase of a rank.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Phase {
    /// When it began, by the node's clock.
    pub start_ns: i64,
    /// How long the compute phase took.
    pub compute_ns: i64,
    /// How long the collective took.
    pub collective_ns: i64,
}
