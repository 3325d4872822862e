//! The spectrum of the time that the samples lost, and the frequencies that stand out of it (Sottile and Minnich 2004).
//!
//! What a sample lost, its value less the main body's middle, is spread evenly over its time, on a grid of cells of one
//! grain; samples of fixed work, which are not equally long, so come onto the same grid as those of fixed time. The power
//! is averaged over stretches of the grid that overlap by half, each under a Hann window (Welch 1967).
//!
//! A source of frequency f that is shorter than a cell has power at f, 2f, 3f and so on. The power at a frequency is held
//! against the median of a band around it. Where the noise has no period, each of K independent stretches adds an
//! exponential variable, so that their mean exceeds x times its expectation with the probability of an Erlang tail; of all
//! frequencies, none does by chance with 99.9 %. Of a frequency that stands out and its multiples the lowest is named; a
//! multiple is named too where its power is four times that of the lower one, since then it is a source of its own.
//! Multiples beyond the highest frequency fold back into the spectrum, and belong to the lower one as well.
//!
//! Samples of fixed work have a rate of their own, a little off that of the grid; what folds back at that one may be named as
//! a further, weaker frequency.
//!
//! What it cannot find: frequencies above half of 1 / grain, whose aliases it may name instead, and periods of which fewer
//! than four fit a stretch.

use std::f64::consts::PI;

use rustfft::FftPlanner;
use rustfft::num_complex::Complex;

use super::body::MainBody;
use super::read::Samples;

/// Cells of a stretch, at most: at a grain of 1 ms 8.2 s, which tells 10.0 from 10.2 Hz.
const STRETCH: usize = 8_192;
/// Fewer cells than this make no spectrum.
const STRETCH_LEAST: usize = 256;
/// Stretches that are averaged, at most.
const STRETCHES: usize = 64;
/// More cells than this are not laid out: those of the beginning count.
const CELLS: usize = STRETCH * STRETCHES / 2;
/// The chance that noise without any period shows a frequency, over the whole spectrum.
const FALSE_ALARM: f64 = 1e-3;
/// Frequencies on either side from which the level around one is taken.
const BAND: usize = 32;
/// Frequencies that are named, at most.
const NAMED: usize = 8;
/// The window spreads a frequency over this many places to either side.
const SMEAR: usize = 2;
/// Multiples up to this many times the highest frequency are looked for where they fold back to; those beyond are weak.
const FOLDED_UP_TO: f64 = 8.0;
/// How much stronger a multiple must be to be a source of its own.
const OWN: f64 = 4.0;

/// A frequency that stands out.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Tone {
    /// The frequency.
    pub hz: f64,
    /// Its power, in times the level around it.
    pub prominence_ratio: f64,
    /// How much longer the loss is in its part of the period than on the average, in nanoseconds: the amplitude of this
    /// frequency alone. A source much shorter than its period takes about half of that each time, spread over a cell.
    pub amplitude_ns: f64,
}

/// The spectrum.
#[derive(Clone, PartialEq, Debug)]
pub struct Tones {
    /// The distance of two frequencies that can be told apart, in Hz.
    pub resolution_hz: f64,
    /// The highest frequency, in Hz.
    pub highest_hz: f64,
    /// How many stretches of time were averaged.
    pub stretches: u32,
    /// How many times the level around it a frequency must have to be named.
    pub threshold_ratio: f64,
    /// The power at each multiple of the resolution from 0 on, in ns^2: the square of the amplitude.
    pub power: Vec<f64>,
    /// What stands out, the strongest first.
    pub tones: Vec<Tone>,
}

/// The spectrum of what these samples lost; nothing of fewer than 256 grains.
#[must_use]
pub fn tones(samples: &Samples, body: &MainBody) -> Option<Tones> {
    // Of fixed work a sample may take another time than the grain asked for, as one iteration may be longer.
    let cell = samples.grain_ns.max(body.middle_ns).max(1);
    let lost = lost(samples, body, cell);
    let length = (1 << lost.len().checked_ilog2()?).min(STRETCH);
    if length < STRETCH_LEAST {
        return None;
    }
    let (power, stretches) = welch(&lost, length);
    let resolution_hz = 1e9 / (cell as f64 * length as f64);
    // Stretches that overlap by half under this window are worth about 0.72 independent ones each (Welch 1967).
    let independent = if stretches > 1 { (0.72 * stretches as f64).floor().max(1.0) } else { 1.0 };
    let threshold_ratio = threshold(independent as u32, power.len());
    Some(Tones {
        resolution_hz,
        highest_hz: resolution_hz * (power.len() - 1) as f64,
        stretches: stretches as u32,
        threshold_ratio,
        tones: prominent(&power, threshold_ratio, resolution_hz),
        power,
    })
}

/// What was lost in each cell of the grid, in nanoseconds.
fn lost(samples: &Samples, body: &MainBody, cell: i64) -> Vec<f64> {
    let (Some(first), Some(last)) = (samples.starts.first(), samples.starts.last()) else { return Vec::new() };
    let end = last + samples.durations.last().copied().unwrap_or(0);
    let cells = usize::try_from((end - first) / cell).unwrap_or(0).min(CELLS);
    let mut lost = vec![0.0; cells];
    for ((start, duration), value) in samples.starts.iter().zip(&samples.durations).zip(&samples.values) {
        let (mut at, until) = (start - first, start - first + (*duration).max(1));
        let density = (value - body.middle_ns) as f64 / (until - at) as f64;
        while at < until {
            let Some(place) = lost.get_mut((at / cell) as usize) else { break };
            let next = ((at / cell + 1) * cell).min(until);
            *place += density * (next - at) as f64;
            at = next;
        }
    }
    lost
}

/// The mean power at the frequencies from 0 to half of the grid's, and over how many stretches.
fn welch(signal: &[f64], length: usize) -> (Vec<f64>, usize) {
    let window: Vec<f64> = (0..length).map(|i| 0.5 - 0.5 * (2.0 * PI * i as f64 / length as f64).cos()).collect();
    let weight: f64 = window.iter().sum();
    let fft = FftPlanner::new().plan_fft_forward(length);
    let mut power = vec![0.0; length / 2 + 1];
    let mut stretches = 0;
    for begin in (0..=signal.len() - length).step_by(length / 2).take(STRETCHES) {
        let stretch = &signal[begin..begin + length];
        let mean = stretch.iter().sum::<f64>() / length as f64;
        let mut buffer: Vec<Complex<f64>> =
            stretch.iter().zip(&window).map(|(x, w)| Complex::new((x - mean) * w, 0.0)).collect();
        fft.process(&mut buffer);
        for (sum, value) in power.iter_mut().zip(&buffer) {
            // A sine of amplitude a has |X| = a * weight / 2.
            *sum += (value * 2.0 / weight).norm_sqr();
        }
        stretches += 1;
    }
    power.iter_mut().for_each(|sum| *sum /= f64::from(stretches).max(1.0));
    (power, stretches as usize)
}

/// How many times its expectation the mean of this many exponential variables exceeds at none of as many frequencies, but
/// for the chance allowed, by bisection; the level being a median, it is that many times its median.
fn threshold(stretches: u32, frequencies: usize) -> f64 {
    let chance = FALSE_ALARM / frequencies as f64;
    // P(mean of K > x) = exp(-Kx) * sum over i < K of (Kx)^i / i!.
    let tail = |x: f64| {
        let total = f64::from(stretches) * x;
        let mut term = 1.0;
        let mut sum = 1.0;
        for i in 1..stretches {
            term *= total / f64::from(i);
            sum += term;
        }
        (-total).exp() * sum
    };
    let solve = |chance: f64| {
        let (mut low, mut high) = (0.0, 100.0);
        for _ in 0..100 {
            let middle = (low + high) / 2.0;
            if tail(middle) > chance { low = middle } else { high = middle }
        }
        high
    };
    solve(chance) / solve(0.5)
}

fn prominent(power: &[f64], threshold: f64, resolution_hz: f64) -> Vec<Tone> {
    // From where on four periods fit a stretch.
    let peaks: Vec<usize> = (4..power.len())
        .filter(|place| {
            let around = &power[place.saturating_sub(SMEAR)..(place + SMEAR + 1).min(power.len())];
            let is_peak = around.iter().all(|other| power[*place] >= *other);
            is_peak && power[*place] > 0.0 && power[*place] / level(power, *place) >= threshold
        })
        .collect();
    let places: Vec<f64> = peaks.iter().map(|place| interpolated(power, *place)).collect();
    let belongs_to_another = |at: usize| {
        (0..peaks.len()).any(|other| {
            let (own, others) = (power[peaks[at]], power[peaks[other]]);
            // A fundamental must not pass for what a multiple of its own folds to, whose power is about the same.
            let (multiple, alias) = (peaks[other] < peaks[at], own * OWN < others);
            other != at && own < OWN * others && is_multiple(places[at], places[other], power.len(), multiple, alias)
        })
    };
    let mut tones: Vec<Tone> = (0..peaks.len())
        .filter(|at| !belongs_to_another(*at))
        .map(|at| Tone {
            hz: places[at] * resolution_hz,
            prominence_ratio: power[peaks[at]] / level(power, peaks[at]),
            amplitude_ns: power[peaks[at]].sqrt(),
        })
        .collect();
    tones.sort_by(|a, b| b.amplitude_ns.total_cmp(&a.amplitude_ns));
    tones.truncate(NAMED);
    tones
}

/// Whether one place is a multiple of another, as it is (`multiple`) or folded back at the ends of a spectrum of this many
/// places (`alias`), where multiples beyond its end appear.
fn is_multiple(place: f64, of: f64, places: usize, multiple: bool, alias: bool) -> bool {
    let end = (places - 1) as f64;
    let folded = |place: f64| {
        let rest = place % (2.0 * end);
        if rest > end { 2.0 * end - rest } else { rest }
    };
    (2..)
        .map(f64::from)
        // Each place is known to a small part of one, and a multiple that much worse. Where that comes near the distance of
        // two multiples, any place would be one.
        .take_while(|times| times * of <= FOLDED_UP_TO * end && 1.0 + 0.15 * times <= of / 4.0)
        .filter(|times| if times * of <= end { multiple } else { alias })
        .any(|times| (folded(times * of) - place).abs() <= 1.0 + 0.15 * times)
}

/// The median power around a place, without its own smear. A quantum's worth of power keeps silence from being a level.
fn level(power: &[f64], place: usize) -> f64 {
    let band = place.saturating_sub(BAND).max(1)..(place + BAND + 1).min(power.len());
    let mut around: Vec<f64> = band.filter(|other| other.abs_diff(place) > SMEAR).map(|other| power[other]).collect();
    let middle = around.len() / 2;
    let median = if around.is_empty() { 0.0 } else { *around.select_nth_unstable_by(middle, f64::total_cmp).1 };
    median.max(1e-6)
}

/// The peak between the places, from a parabola through the logarithms of three.
fn interpolated(power: &[f64], place: usize) -> f64 {
    let (Some(before), Some(after)) = (power.get(place - 1), power.get(place + 1)) else { return place as f64 };
    let [a, b, c] = [*before, power[place], *after].map(|power| power.max(1e-12).ln());
    let bend = a - 2.0 * b + c;
    if bend < 0.0 { place as f64 + (0.5 * (a - c) / bend).clamp(-0.5, 0.5) } else { place as f64 }
}

#[cfg(test)]
mod tests {
    use super::super::read::tests::fixed_work;
    use super::*;

    /// Samples of 1 ms of work, in which each source takes its time whenever its period is over, beside noise.
    fn disturbed(count: usize, sources: &[(f64, i64)], noise: i64) -> Samples {
        let mut next: Vec<f64> = sources.iter().map(|(hz, _)| 1e9 / hz * 0.37).collect();
        let mut random = 1_u64;
        let mut at = 0_i64;
        let durations: Vec<i64> = (0..count)
            .map(|_| {
                random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                let mut duration = 1_000_000 + (random >> 33) as i64 % noise.max(1);
                for ((hz, length), next) in sources.iter().zip(&mut next) {
                    while *next < (at + duration) as f64 {
                        duration += length;
                        *next += 1e9 / hz;
                    }
                }
                at += duration;
                duration
            })
            .collect();
        fixed_work(&durations)
    }

    fn found(samples: &Samples) -> Vec<f64> {
        let body = MainBody::of(&samples.values);
        tones(samples, &body).unwrap().tones.iter().map(|tone| tone.hz).collect()
    }

    #[test]
    fn planted_sources_are_found_among_noise() {
        for (hz, tolerance) in [(100.0, 0.1), (10.0, 0.1), (83.3, 0.1), (250.0, 0.2)] {
            let found = found(&disturbed(20_000, &[(hz, 50_000)], 30_000));
            assert!((found[0] - hz).abs() < tolerance, "{hz} Hz: {found:?}");
            let off = |other: &f64| ((other / hz) - (other / hz).round()).abs();
            assert!(found[1..].iter().all(|other| off(other) > 0.002), "{hz} Hz and its multiples are one: {found:?}");
        }
        let both = found(&disturbed(30_000, &[(10.0, 60_000), (100.0, 60_000)], 30_000));
        for hz in [10.0, 100.0] {
            assert!(both.iter().any(|found| (found - hz).abs() < 0.2), "{hz} Hz: {both:?}");
        }
    }

    #[test]
    fn noise_alone_has_no_frequency() {
        for count in [300, 3_000, 30_000] {
            assert_eq!(found(&disturbed(count, &[], 30_000)), [] as [f64; 0], "{count}");
        }
        assert!(found(&disturbed(3_000, &[], 0)).is_empty());
    }

    #[test]
    fn few_samples_have_no_spectrum() {
        let samples = disturbed(200, &[], 10);
        assert_eq!(tones(&samples, &MainBody::of(&samples.values)), None);
    }

    #[test]
    fn the_power_of_a_sine_is_the_square_of_its_amplitude() {
        let signal: Vec<f64> = (0..4_096).map(|i| 3.0 * (2.0 * PI * 100.0 * f64::from(i) / 1_024.0).sin()).collect();
        let (power, stretches) = welch(&signal, 1_024);
        assert_eq!(stretches, 7);
        assert!((power[100] - 9.0).abs() < 1e-9, "{}", power[100]);
        assert!(power[300] < 1e-12);
    }

    #[test]
    fn losses_are_spread_over_the_cells_that_they_cover() {
        let mut samples = fixed_work(&[100, 100, 350, 100]);
        samples.grain_ns = 100;
        let body = MainBody { low_ns: 99, high_ns: 101, middle_ns: 100, fasties: 0, slowies: 1 };
        let lost = lost(&samples, &body, 100);
        assert_eq!(lost.len(), 6);
        let share = 250.0 / 350.0 * 100.0;
        let expected = [0.0, 0.0, share, share, share, share / 2.0];
        assert!(lost.iter().zip(expected).all(|(found, expected)| (found - expected).abs() < 1e-9), "{lost:?}");
    }

    #[test]
    fn one_stretch_needs_what_an_exponential_tail_says() {
        // P(x) = exp(-x), whose median is ln 2.
        let expected = (1_000.0 / FALSE_ALARM).ln() / 2.0_f64.ln();
        assert!((threshold(1, 1_000) - expected).abs() < 1e-6);
        assert!(threshold(16, 1_000) < threshold(4, 1_000));
    }
}
