//! The figures of two runs that are compared, by name and unit.

/// A figure that is compared. Of each, more is worse.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Metric {
    /// Time lost over time observed.
    NoiseRatio,
    /// Detours a second, of one CPU; of a source, its activities a second.
    Rate,
    /// The mean length of a detour.
    Mean,
    /// The detour that 1 in 100 exceeds.
    P99,
    /// The detour that 1 in 1,000 exceeds.
    P999,
    /// The longest detour in a stretch of time, as long in both runs: what is typical of the stretches of each, if the
    /// two differ by the factor that their ranks say.
    StretchMax,
    /// The longest detour of the run.
    Max,
    /// A source's time over time observed.
    TimeRatio,
}

/// What a figure is measured in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MetricUnit {
    /// Nanoseconds, of a length of time.
    Nanoseconds,
    /// Hertz: how often something comes in a second.
    Hertz,
    /// Ratios, as parts of 1.
    Ratio,
}

impl Metric {
    /// Its name in JSON, as in a report: it ends in the unit.
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
