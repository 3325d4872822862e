//! A figure that is known with an error.

/// A mean and the interval that holds the true one with 95 % confidence.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Estimate {
    /// The mean over the replicas.
    pub mean: f64,
    /// The lower end of the interval; the mean itself with a single replica, which says nothing about its error.
    pub low: f64,
    /// The upper end of the interval.
    pub high: f64,
}
