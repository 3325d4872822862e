//! The spectrum of the noise: at which frequencies time is lost, for a chart and with its peaks named.

/// The spectrum of a run's noise, averaged over its CPUs.
#[derive(Clone, PartialEq, Debug)]
pub struct Spectrum {
    /// The distance of two frequencies that can be told apart, in Hz.
    pub resolution_hz: f64,
    /// How many stretches of time were averaged.
    pub segments: u32,
    /// The curve in order of frequency, reduced for drawing: each point is the highest of its surroundings.
    pub points: Vec<Point>,
    /// Where it stands out, in order of frequency.
    pub peaks: Vec<Peak>,
}

/// A point of the curve.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Point {
    /// The frequency in Hz, above 0.
    pub hz: f64,
    /// The power spectral density of the share of time lost, in 1/Hz.
    pub power: f64,
}

/// A peak of the curve that belongs to a period that was found.
#[derive(Clone, PartialEq, Debug)]
pub struct Peak {
    /// The period's frequency in Hz.
    pub hz: f64,
    /// The highest power within the resolution around it, in 1/Hz.
    pub power: f64,
    /// The name of what comes with that period, and the period: `timer: every 4.000ms`.
    pub label: String,
}
