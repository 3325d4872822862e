//! Lines of a spectrum: frequencies with significantly more power than their surroundings.
//!
//! If a signal has no period, its power at each frequency is exponential, and the mean over K stretches without overlap is an Erlang variable over K.
//! Three things make that true for measured samples:
//!
//! - Stretches overlap by half (Welch 1967), but K counts those that would fit without overlap: with a Hann window the others are so little
//!   correlated (1/6 of the amplitude) that the tail is no heavier than that of K.
//! - A stretch with a few very long detours would dominate the mean, as if K were one; and trains of detours have more power at low frequencies,
//!   without a period. So each power is divided by the level around it in its own stretch before averaging. The reported power, also used for
//!   amplitudes, is the plain mean.
//! - That level is the median of a band of n frequencies over ln 2, the median of an exponential variable. It is itself an estimate, about as good as
//!   the mean of M = 0.48 n exponential variables. The tail of the ratio is no heavier than that of Fisher's F with 2K and 2M degrees of freedom,
//!   which has the same error in all stretches.
//!
//! The false alarm probability of a line is the tail probability of F times the number of frequencies (Bonferroni).

use std::f64::consts::PI;

use becalm_stats::fourier::Fourier;
use becalm_stats::{fisher_tail, median_high};

/// Maximum number of averaged stretches.
pub(super) const STRETCHES: usize = 64;
/// The number of frequencies on either side that the level around one is taken from: half of its own index, within these limits.
const BAND: std::ops::RangeInclusive<usize> = 16..=64;
/// This many neighbors share a level.
const BLOCK: usize = 8;
/// The window spreads a frequency over this many bins to either side.
pub(super) const SMEAR: usize = 2;
/// Lines are searched from this bin on, with 32 periods per stretch. Below, there are too few bins around it.
const FIRST: usize = 32;
/// The power of one quantum, so silence is not a level.
const LEAST: f64 = 1e-6;

/// The power of a signal by frequency.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Power {
    /// The mean power at the frequencies from 0 to half of the signal's, in its unit squared: the square of the amplitude.
    pub mean: Vec<f64>,
    /// The mean of the power relative to the level around it in its own stretch: about 1 by chance.
    leveled: Vec<f64>,
    /// The number of averaged stretches.
    pub stretches: usize,
    /// The number of stretches that fit without overlap.
    pub independent: usize,
}

/// A significant line of the spectrum.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct SpectralLine {
    /// Its position in multiples of the resolution, with fractions.
    pub place: f64,
    /// The bin with the highest power.
    pub peak: usize,
    /// The power there relative to its surroundings.
    pub prominence: f64,
    /// The probability that a signal without any period has one as prominent, anywhere.
    pub false_alarm: f64,
}

impl Power {
    /// From a signal, in at least one stretch of this length, a power of two.
    pub(super) fn from_signal(signal: &[f64], length: usize) -> Self {
        let window: Vec<f64> = (0..length).map(|i| 0.5 - 0.5 * (2.0 * PI * i as f64 / length as f64).cos()).collect();
        let weight: f64 = window.iter().sum();
        let fourier = Fourier::new(length);
        let places = length / 2 + 1;
        let mut power = Self { mean: vec![0.0; places], leveled: vec![0.0; places], stretches: 0, independent: 0 };
        for begin in (0..=signal.len() - length).step_by(length / 2).take(STRETCHES) {
            let stretch = &signal[begin..begin + length];
            let mean = stretch.iter().sum::<f64>() / length as f64;
            let mut own = fourier.powers(stretch.iter().zip(&window).map(|(x, w)| (x - mean) * w).collect());
            // A sine of amplitude a has |X| = a * weight / 2.
            own.iter_mut().for_each(|power| *power *= (2.0 / weight).powi(2));
            let levels = levels(&own);
            for (at, value) in own.into_iter().enumerate() {
                power.mean[at] += value;
                power.leveled[at] += value / levels[at / BLOCK];
            }
            power.stretches += 1;
        }
        power.independent = power.stretches.div_ceil(2);
        let count = power.stretches.max(1) as f64;
        power.mean.iter_mut().chain(&mut power.leveled).for_each(|sum| *sum /= count);
        power
    }

    /// The lines whose false alarm is at most this.
    pub(super) fn lines(&self, false_alarm: f64) -> Vec<SpectralLine> {
        let power = &self.leveled;
        let trials = power.len() as f64;
        (FIRST..power.len())
            .filter_map(|peak| {
                let around = &power[peak.saturating_sub(SMEAR)..(peak + SMEAR + 1).min(power.len())];
                if self.mean[peak] <= LEAST || around.iter().any(|other| *other > power[peak]) {
                    return None;
                }
                let prominence = power[peak];
                let found = (trials * self.chance(prominence, band(peak / BLOCK * BLOCK, power.len()).len())).min(1.0);
                let line = SpectralLine { place: interpolated(power, peak), peak, prominence, false_alarm: found };
                (found <= false_alarm).then_some(line)
            })
            .collect()
    }

    /// The power of a bin relative to its surroundings.
    pub(super) fn prominence(&self, place: usize) -> f64 {
        self.leveled.get(place).copied().unwrap_or(0.0)
    }

    /// The prominence that a line needs for this false alarm probability, away from the ends of the spectrum.
    pub(super) fn threshold(&self, false_alarm: f64) -> f64 {
        let chance = false_alarm / self.leveled.len() as f64;
        let frequencies = band(self.leveled.len() / 2, self.leveled.len()).len();
        bisected(|x| self.chance(x, frequencies) > chance)
    }

    /// The probability that a power is this many times the level estimated from this many frequencies around it.
    fn chance(&self, prominence: f64, frequencies: usize) -> f64 {
        // The relative error of a median of n exponential variables is 1 / (ln 2 sqrt(n)).
        let level = std::f64::consts::LN_2.powi(2) * frequencies.max(1) as f64;
        fisher_tail(prominence, 2.0 * self.independent.max(1) as f64, 2.0 * level)
    }
}

/// The frequencies around a bin, including itself and its smear, in a spectrum with `places` bins.
fn band(place: usize, places: usize) -> std::ops::Range<usize> {
    let reach = (place / 2).clamp(*BAND.start(), *BAND.end());
    place.saturating_sub(reach).max(1)..(place + reach + 1).min(places)
}

/// The level of the power around each block of bins: the mean of exponential variables with that median.
fn levels(power: &[f64]) -> Vec<f64> {
    let blocks = (0..power.len()).step_by(BLOCK);
    blocks.map(|place| (median(&power[band(place, power.len())]) / std::f64::consts::LN_2).max(LEAST)).collect()
}

/// The end of a monotonic condition that holds at 0.
fn bisected(holds: impl Fn(f64) -> bool) -> f64 {
    let (mut low, mut high) = (0.0, 1.0);
    while holds(high) && high < 1e12 {
        (low, high) = (high, high * 2.0);
    }
    for _ in 0..60 {
        let middle = (low + high) / 2.0;
        if holds(middle) { low = middle } else { high = middle }
    }
    high
}

/// The upper median, which is one of the values; 0 without values.
fn median(values: &[f64]) -> f64 {
    median_high(&mut values.to_vec()).unwrap_or(0.0)
}

/// The peak between the bins, from a parabola through the logarithms of three.
fn interpolated(power: &[f64], place: usize) -> f64 {
    let (Some(before), Some(after)) = (power.get(place - 1), power.get(place + 1)) else { return place as f64 };
    let [a, b, c] = [*before, power[place], *after].map(|power| power.max(1e-12).ln());
    let bend = a - 2.0 * b + c;
    if bend < 0.0 { place as f64 + (0.5 * (a - c) / bend).clamp(-0.5, 0.5) } else { place as f64 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use becalm_testing::noise::Source;

    #[test]
    fn the_power_of_a_sine_is_the_square_of_its_amplitude() {
        let signal: Vec<f64> = (0..4_096).map(|i| 3.0 * (2.0 * PI * 100.0 * f64::from(i) / 1_024.0).sin()).collect();
        let power = Power::from_signal(&signal, 1_024);
        assert_eq!((power.stretches, power.independent), (7, 4));
        assert!((power.mean[100] - 9.0).abs() < 1e-9, "{}", power.mean[100]);
        assert!(power.mean[300] < 1e-12);
    }

    /// The false alarm rate is kept without a period, whatever the noise is like: normal, with rare detours of very different lengths, and in trains.
    #[test]
    fn false_alarms_are_as_rare_as_stated() {
        let mut source = Source::seeded(11);
        let stated = 0.05;
        let (mut alarms, runs) = ([0; 3], 300);
        for _ in 0..runs {
            let normal: Vec<f64> = (0..5_000).map(|_| 1e3 * source.normal()).collect();
            let mut heavy = vec![0.0; 5_000];
            for time in source.poisson(20.0, 5e9) {
                heavy[(time / 1e6) as usize] += source.pareto(5e4, 0.9);
            }
            let mut trains: Vec<f64> = (0..5_000).map(|_| 1e3 * source.normal()).collect();
            for time in source.trains(4.0, 10.0, 3e6, 5e9) {
                trains[((time / 1e6) as usize).min(4_999)] += source.exponential(2e4);
            }
            for (alarms, signal) in alarms.iter_mut().zip([normal, heavy, trains]) {
                *alarms += i32::from(!Power::from_signal(&signal, 1_024).lines(stated).is_empty());
            }
        }
        // At most 15 of 300 are expected; more than 26 have a probability of 0.3 %.
        assert!(alarms.iter().all(|alarms| *alarms <= 26), "{alarms:?} of {runs}");
    }

    #[test]
    fn a_line_is_found_where_it_is() {
        let mut source = Source::seeded(12);
        let signal: Vec<f64> =
            (0..20_000).map(|i| 300.0 * (2.0 * PI * 0.1234 * f64::from(i)).sin() + 1e3 * source.normal()).collect();
        let power = Power::from_signal(&signal, 8_192);
        let lines = power.lines(1e-3);
        let [line] = lines[..] else { panic!("{lines:?}") };
        assert!((line.place / 8_192.0 - 0.1234).abs() < 3e-5, "{line:?}");
        assert!(line.prominence > power.threshold(1e-3) && line.false_alarm < 1e-6, "{line:?}");
    }

    #[test]
    fn one_stretch_needs_what_an_exponential_tail_says() {
        let power = Power { mean: Vec::new(), leveled: vec![0.0; 4_097], stretches: 1, independent: 1 };
        // -ln of the probability if the level were known; estimating it costs some more.
        let exact = (4_097.0 / 1e-3_f64).ln();
        let threshold = power.threshold(1e-3);
        assert!((exact..1.2 * exact).contains(&threshold), "{threshold} for {exact}");
        let four = Power { independent: 4, ..power };
        assert!(four.threshold(1e-3) < 0.5 * threshold);
    }
}
