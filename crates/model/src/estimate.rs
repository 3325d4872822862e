//! A figure with an error.

/// A mean and its 95 % confidence interval.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Estimate {
    /// The mean over the replicas.
    pub mean: f64,
    /// The lower end of the interval; with a single replica the mean itself, which means that the error is unknown.
    pub low: f64,
    /// The upper end of the interval.
    pub high: f64,
}
