//! The compared figures, by name and unit.

/// A compared figure. More is worse for each.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Metric {
    /// Time lost over time observed.
    NoiseRatio,
    /// Detours per second and CPU; for a source, its activities per second.
    Rate,
    /// The mean length of a detour.
    Mean,
    /// The detour length that 1 in 100 exceeds.
    P99,
    /// The detour length that 1 in 1,000 exceeds.
    P999,
    /// The median longest detour of a stretch of time, equally long in both runs.
    StretchMax,
    /// The longest detour of the run.
    Max,
    /// A source's time over time observed.
    TimeRatio,
}

/// The unit of a figure.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MetricUnit {
    /// Nanoseconds.
    Nanoseconds,
    /// Hertz: events per second.
    Hertz,
    /// Ratios, as fractions of 1.
    Ratio,
}

impl Metric {
    /// Its name in JSON, as in a report; it ends in the unit.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::NoiseRatio => "noise_ratio",
            Self::Rate => "rate_hz",
            Self::Mean => "mean_ns",
            Self::P99 => "p99_ns",
            Self::P999 => "p999_ns",
            Self::StretchMax => "stretch_max_ns",
            Self::Max => "max_ns",
            Self::TimeRatio => "time_ratio",
        }
    }

    /// The unit of its figures.
    #[must_use]
    pub const fn unit(self) -> MetricUnit {
        match self {
            Self::NoiseRatio | Self::TimeRatio => MetricUnit::Ratio,
            Self::Rate => MetricUnit::Hertz,
            Self::Mean | Self::P99 | Self::P999 | Self::StretchMax | Self::Max => MetricUnit::Nanoseconds,
        }
    }
}
