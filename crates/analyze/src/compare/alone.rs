//! One recording per side: how much recordings of one machine differ on their own.
//!
//! Two recordings of an unchanged machine differ by more than the scatter within either: a thread moves to another CPU, the host gets another
//! neighbor, a timer starts at another phase. A single recording cannot show that scatter, so it is learned from two sets of equal recordings, half
//! an hour apart: 26 of 10 s, on a 2-CPU virtual machine (KVM, AMD EPYC, Linux 6.18) that was idle except for short commands in 3 of them. Other
//! machines may scatter more or less; only several recordings per side show that.
//!
//! - The variance of a figure is the variance within the recording, from blocks and the drift of its quarters
//!   ([`RatioOfSums::alone`](super::series::RatioOfSums::alone)), plus the variance between recordings, in proportion to the figure.
//! - Sources come and go: a writeback worker takes half of all noise in one recording and nothing in the next. The variance of a source is
//!   proportional to the noise (or the rate) of the quieter recording, whatever the source itself took.
//! - Each variance has its own degrees of freedom; their sum follows F. E. Satterthwaite, Biometrics Bulletin 2 (1946).

use super::Doubt;
use super::contrast::{Contrast, KnownFigure, RunFigure, Welch, contrast_known};
use super::ground::Side;
use super::metric::Metric;
use super::proportion::turned_back;
use super::series::{self, RatioOfSums, Scatter};
use super::tails::RunQuantile;
use super::verdict::Basis;

/// Minimum effective number of blocks of both runs together, the same as for the interval of one run.
const TRAINS_MIN: f64 = 10.0;

/// Degrees of freedom of the learned deviations: those of 26 recordings in two sets about their mean, less the disturbed recordings.
const FREEDOM: f64 = 20.0;

/// How much recordings of one machine differ, as standard deviations. Threads that move between CPUs change the figures of the whole machine little,
/// those of a subset of its CPUs more.
#[derive(Clone, Copy, Debug)]
pub(super) struct Deviations {
    /// Of the logarithm of the noise ratio; likewise for the next five.
    noise: f64,
    rate: f64,
    mean: f64,
    p99: f64,
    p999: f64,
    stretch_max: f64,
    /// Of a source's time, relative to all noise.
    source_time: f64,
    /// Of a source's rate, relative to the rate of all detours.
    source_rate: f64,
}

/// For all CPUs of a machine. The noise was measured within a set; the rate is mostly that of the shortest detours, which the host causes.
const WHOLE: Deviations = Deviations {
    noise: 0.08,
    rate: 0.6,
    mean: 0.6,
    p99: 0.4,
    p999: 1.0,
    stretch_max: 0.2,
    source_time: 0.15,
    source_rate: 0.8,
};

/// For one of the two CPUs.
const PART: Deviations = Deviations {
    noise: 0.4,
    rate: 0.8,
    mean: 0.7,
    p99: 0.8,
    p999: 1.2,
    stretch_max: 1.2,
    source_time: 0.4,
    source_rate: 0.8,
};

impl Deviations {
    /// The deviation of the logarithm of a figure; for a source's figure, relative to the total.
    pub(super) const fn figure(&self, metric: Metric) -> f64 {
        match metric {
            Metric::NoiseRatio => self.noise,
            Metric::Rate => self.rate,
            Metric::Mean => self.mean,
            Metric::P99 => self.p99,
            Metric::P999 => self.p999,
            Metric::StretchMax | Metric::Max => self.stretch_max,
            Metric::TimeRatio => self.source_time,
        }
    }

    /// The deviation of a source's figure, relative to the noise or the rate of all detours.
    pub(super) const fn source(&self, metric: Metric) -> f64 {
        match metric {
            Metric::Rate => self.source_rate,
            _ => self.source_time,
        }
    }
}

/// The scatter between recordings that a comparison assumes.
#[derive(Clone, Copy, Debug)]
pub(super) enum RunScatter {
    /// Measured from the recordings of a side.
    Shown,
    /// Learned from other recordings.
    Learned(Deviations),
}

impl RunScatter {
    /// For all compared CPUs together, or all of a node.
    pub(super) fn for_machines(sides: &[Side; 2], basis: Basis) -> Self {
        let is_whole = |side: &Side| {
            let docs = side.runs.iter().flat_map(|run| &run.docs);
            docs.into_iter().all(|doc| doc.cpus.len() >= doc.machine.online.len())
        };
        Self::learned(basis, if sides.iter().all(is_whole) { WHOLE } else { PART })
    }

    pub(super) const fn for_cpu(basis: Basis) -> Self {
        Self::learned(basis, PART)
    }

    const fn learned(basis: Basis, deviations: Deviations) -> Self {
        match basis {
            Basis::WithinRuns => Self::Learned(deviations),
            Basis::BetweenRuns => Self::Shown,
        }
    }
}

/// Compares sums over time whose logarithms scatter by `deviation` between recordings. Fails if there is too little data.
pub(super) fn contrast(a: &RatioOfSums, b: &RatioOfSums, deviation: f64) -> Result<Contrast, Doubt> {
    let [a, b] = scatters(a, b)?.map(|scatter| RecordedFigure::new(&scatter));
    Ok(in_proportion(a, b, deviation))
}

/// Compares sums over time that scatter by the absolute `deviation` between recordings. Fails if there is too little data.
pub(super) fn contrast_sources(a: &RatioOfSums, b: &RatioOfSums, deviation: f64) -> Result<Contrast, Doubt> {
    let [a, b] = scatters(a, b)?.map(|scatter| RecordedFigure::new(&scatter).widened(deviation * deviation));
    Ok(contrast_known(a, b))
}

/// Compares the same quantile of two recordings.
pub(super) fn contrast_tails(a: &mut RunQuantile, b: &mut RunQuantile, deviation: f64) -> Contrast {
    let [a, b] =
        [a, b].map(|tail| RecordedFigure { value: tail.value(), variance: tail.variance(), freedom: tail.freedom() });
    in_proportion(a, b, deviation)
}

/// Compares the medians of `stretches` stretches each. Fails if neither recording has a detour in half of them.
pub(super) fn contrast_medians(
    a: &RunFigure,
    b: &RunFigure,
    stretches: usize,
    deviation: f64,
) -> Result<Contrast, Doubt> {
    if a.value == 0.0 && b.value == 0.0 {
        return Err(Doubt::NoDetour);
    }
    let within =
        |run: &RunFigure| RecordedFigure { value: run.value, variance: run.within, freedom: (stretches - 1) as f64 };
    Ok(in_proportion(within(a), within(b), deviation))
}

fn scatters(a: &RatioOfSums, b: &RatioOfSums) -> Result<[Scatter; 2], Doubt> {
    let scatters = [a.alone()?, b.alone()?];
    let trains = series::trains(&scatters[0], &scatters[1]);
    if trains < TRAINS_MIN { Err(Doubt::FewTrains { trains }) } else { Ok(scatters) }
}

/// A figure of one recording.
#[derive(Clone, Copy, Debug)]
struct RecordedFigure {
    value: f64,
    variance: f64,
    /// The degrees of freedom of the variance.
    freedom: f64,
}

impl RecordedFigure {
    fn new(scatter: &Scatter) -> Self {
        Self { value: scatter.value, variance: scatter.variance, freedom: scatter.freedom() }
    }

    /// Adds the variance between recordings.
    fn widened(self, between: f64) -> KnownFigure {
        let variance = self.variance + between;
        let parts = self.variance * self.variance / self.freedom + between * between / FREEDOM;
        KnownFigure {
            value: self.value,
            variance,
            freedom: if parts > 0.0 { variance * variance / parts } else { FREEDOM },
        }
    }
}

/// Compares figures that scatter in proportion: by their logarithms if neither is 0.
fn in_proportion(a: RecordedFigure, b: RecordedFigure, deviation: f64) -> Contrast {
    let between = deviation * deviation;
    if a.value > 0.0 && b.value > 0.0 {
        // To first order, the variance of the logarithm is the figure's variance over its square.
        let logarithm = |run: RecordedFigure| RecordedFigure {
            value: run.value.ln(),
            variance: run.variance / (run.value * run.value),
            ..run
        };
        return turned_back(&Welch::from_known(logarithm(a).widened(between), logarithm(b).widened(between)));
    }
    let [a, b] = [a, b].map(|run| run.widened(between * run.value * run.value));
    contrast_known(a, b)
}

#[cfg(test)]
impl RunScatter {
    /// For the only CPU of a machine.
    pub(super) const fn for_whole(basis: Basis) -> Self {
        Self::learned(basis, WHOLE)
    }
}
