//! The spectrum of the time that the samples lost, and the frequencies in it (Sottile and Minnich 2004).
//!
//! The loss of a sample, its value less the middle of the main body, is spread evenly over its time, on a grid of cells. A cell is one grain, or, for
//! fixed work with samples of unequal length, the mean sample: on a grid with another rate than the samples' own, every frequency would appear twice.
//!
//! A frequency is named by one of two rules. Each has half of the allowed probability, [`FALSE_ALARM`] in all, of naming anything in samples without
//! a period:
//!
//! - as a *line*, if its power is significantly above its surroundings: frequent and short, such as a tick;
//! - as a *beat*, if the slowest samples have its period: rarer and longer, such as a daemon.
//!
//! A source of frequency f that is shorter than a cell has power at f, 2f, 3f and so on. Of a frequency and the lines at its multiples, the lowest is
//! named. A multiple is named too if its power is four times that of the lower one, because then it is a source of its own. Multiples beyond the
//! highest frequency fold back into the spectrum, and belong to the lower one as well. A frequency is listed with the source in the kernel's trace
//! whose own samples have that period.
//!
//! Samples of fixed work have a slightly varying rate, so folded multiples are less sharp, and a weak source next to one may not be named.
//!
//! Not found are frequencies above half of 1 / grain, whose aliases may be named instead, and periods with fewer than four per stretch.

use becalm_model::node::Fixed;

use super::beats::{beats, has_period};
use super::body::MainBody;
use super::lines::{Power, STRETCHES, SpectralLine};
use super::read::WorkSamples;

/// Maximum number of cells per stretch: 8.2 s at a grain of 1 ms, which separates 10.0 from 10.2 Hz.
const STRETCH: usize = 8_192;
/// Minimum number of cells for a spectrum.
const STRETCH_LEAST: usize = 256;
/// Maximum number of cells used, from the start of the run.
const CELLS: usize = STRETCH * STRETCHES / 2;
/// The total probability that samples without any period have a frequency named.
pub const FALSE_ALARM: f64 = 1e-3;
/// Maximum number of named frequencies.
const NAMED: usize = 8;
/// Multiples up to this many times the highest frequency are checked for where they fold back to; those beyond are weak.
const FOLDED_UP_TO: f64 = 8.0;
/// A beat that could be a fraction of another's frequency is a source of its own if its power is this many times that around it.
const PROMINENT: f64 = 3.0;
/// Relative variation of the rate of samples of fixed work.
const UNEVEN: f64 = 0.002;
/// How much stronger a multiple must be to be a source of its own.
const OWN: f64 = 4.0;

/// A frequency in the samples.
#[derive(Clone, PartialEq, Debug)]
pub struct Tone {
    /// The frequency, in Hz.
    pub hz: f64,
    /// Its power relative to the level around it.
    pub prominence_ratio: f64,
    /// The amplitude of this frequency alone, in nanoseconds: how much larger than average the loss is at its peak. A source much shorter than its
    /// period takes about half of that each time, spread over a cell.
    pub amplitude_ns: f64,
    /// The probability that samples without any period would show one as clear, by the rule that named it.
    pub false_alarm: f64,
    /// The source in the kernel's trace with this period; `None` if there is none, or no trace.
    pub source: Option<String>,
}

/// The spectrum of a CPU's samples, and its significant tones.
#[derive(Clone, PartialEq, Debug)]
pub struct Tones {
    /// The distance of two distinguishable frequencies, in Hz.
    pub resolution_hz: f64,
    /// The highest frequency, in Hz.
    pub highest_hz: f64,
    /// The number of averaged stretches of time.
    pub stretches: u32,
    /// The prominence that a frequency needs to be named as a line.
    pub threshold_ratio: f64,
    /// The power at each multiple of the resolution from 0 on, in ns^2: the square of the amplitude.
    pub power: Vec<f64>,
    /// The named frequencies, the strongest first.
    pub tones: Vec<Tone>,
}

/// The spectrum of the loss of these samples; `None` for fewer than 256 grains.
pub fn tones(samples: &WorkSamples, body: &MainBody) -> Option<Tones> {
    let cell = match samples.fixed {
        Fixed::Time => samples.grain_ns.max(1),
        Fixed::Work => mean_duration(samples)?,
    };
    let lost = lost(samples, body, cell);
    let length = (1 << lost.len().checked_ilog2()?).min(STRETCH);
    if length < STRETCH_LEAST {
        return None;
    }
    let power = Power::from_signal(&lost, length);
    let resolution_hz = 1e9 / (cell as f64 * length as f64);
    let mut tones = named(samples, body, cell, &power, resolution_hz);
    for tone in &mut tones {
        tone.source = source(samples, 1e9 / tone.hz, cell);
    }
    Some(Tones {
        resolution_hz,
        highest_hz: resolution_hz * (power.mean.len() - 1) as f64,
        stretches: power.stretches as u32,
        threshold_ratio: power.threshold(FALSE_ALARM / 2.0),
        tones,
        power: power.mean,
    })
}

/// The mean duration of a sample; `None` without samples.
fn mean_duration(samples: &WorkSamples) -> Option<i64> {
    let total: i64 = samples.durations.iter().sum();
    let count = i64::try_from(samples.durations.len()).ok()?;
    Some(total.checked_div(count)?.max(1))
}

/// The loss in each cell of the grid, in nanoseconds.
fn lost(samples: &WorkSamples, body: &MainBody, cell: i64) -> Vec<f64> {
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

/// The frequencies of both rules, the strongest first, without the multiples that belong to another.
fn named(samples: &WorkSamples, body: &MainBody, cell: i64, power: &Power, resolution_hz: f64) -> Vec<Tone> {
    let end = (power.mean.len() - 1) as f64;
    let blur = if samples.fixed == Fixed::Work { UNEVEN * end } else { 0.0 };
    let spectrum = PowerSpectrum { power: &power.mean, end, blur };
    let beats = beats(samples, body, cell, FALSE_ALARM / 2.0);
    let beats = beats.into_iter().map(|beat| {
        let place = beat.frequency_hz() / resolution_hz;
        let peak = strongest(&power.mean, place);
        SpectralLine { place, peak, prominence: power.prominence(peak), false_alarm: beat.false_alarm }
    });
    // Beats below the first bin are in no spectrum.
    let beats: Vec<SpectralLine> = beats.filter(|beat| (1.0..end).contains(&beat.place)).collect();
    // A period's fractions are found too, with beats missing, but they are less certain.
    let whole = |beat: &&SpectralLine| {
        let is_part =
            |other: &SpectralLine| other.false_alarm < beat.false_alarm && spectrum.multiple_of(beat, other, false);
        // A few of another's beats have twice its period, but no power of their own.
        let is_some = |other: &SpectralLine| {
            let times = (other.place / beat.place).round();
            let whole = times >= 2.0 && (beat.place * times / other.place - 1.0).abs() < 0.01;
            whole && other.false_alarm < beat.false_alarm && beat.prominence < PROMINENT
        };
        !beats.iter().any(|other| is_part(other) || is_some(other))
    };
    let beats: Vec<SpectralLine> = beats.iter().filter(whole).copied().collect();
    let lines = power.lines(FALSE_ALARM / 2.0);
    let belongs = |line: &SpectralLine| {
        let belongs_to_beat = beats.iter().any(|beat| {
            (line.place - beat.place).abs() <= 1.5
                || spectrum.multiple_of(line, beat, power.mean[line.peak] < OWN * power.mean[beat.peak])
        });
        let belongs_to_line = lines.iter().any(|other| {
            // A fundamental must not be taken for an alias of one of its multiples, which has about the same power.
            let (own, others) = (power.mean[line.peak], power.mean[other.peak]);
            other != line && own < OWN * others && spectrum.multiple_of(line, other, own * OWN < others)
        });
        belongs_to_beat || belongs_to_line
    };
    let lines: Vec<SpectralLine> = lines.iter().filter(|line| !belongs(line)).copied().collect();
    let mut all: Vec<SpectralLine> = beats.iter().copied().chain(lines).collect();
    all.sort_by(|a, b| a.false_alarm.total_cmp(&b.false_alarm));
    all.truncate(NAMED);
    let mut tones: Vec<Tone> = all
        .into_iter()
        .map(|line| Tone {
            hz: line.place * resolution_hz,
            prominence_ratio: line.prominence,
            amplitude_ns: power.mean[line.peak].sqrt(),
            false_alarm: line.false_alarm,
            source: None,
        })
        .collect();
    tones.sort_by(|a, b| b.amplitude_ns.total_cmp(&a.amplitude_ns));
    tones
}

/// The bin with the highest power next to a frequency.
fn strongest(power: &[f64], place: f64) -> usize {
    let middle = (place.round() as usize).min(power.len() - 1);
    let near = middle.saturating_sub(1)..(middle + 2).min(power.len());
    near.max_by(|a, b| power[*a].total_cmp(&power[*b])).unwrap_or(middle)
}

/// A spectrum, for deciding whether lines belong together.
struct PowerSpectrum<'a> {
    power: &'a [f64],
    /// The last bin, beyond which multiples fold back.
    end: f64,
    /// The additional uncertainty of folded positions, in bins.
    blur: f64,
}

impl PowerSpectrum<'_> {
    /// Whether a line is a multiple of another: directly if it is above it, or folded back (`alias`).
    fn multiple_of(&self, line: &SpectralLine, base: &SpectralLine, alias: bool) -> bool {
        let above = line.place > base.place;
        let strong = self.power[line.peak] >= OWN * self.power[base.peak];
        !strong && self.is_multiple(line.place, base.place, above, alias)
    }

    /// Whether one position is a multiple of another, directly (`multiple`) or folded back at the end of the spectrum (`alias`).
    fn is_multiple(&self, place: f64, base: f64, multiple: bool, alias: bool) -> bool {
        let folded = |place: f64| {
            let rest = place % (2.0 * self.end);
            if rest > self.end { 2.0 * self.end - rest } else { rest }
        };
        (2..)
            .map(f64::from)
            // Each position is known to a small fraction of a bin, and a multiple that much worse. If that approaches the distance of two multiples,
            // any position would match.
            .take_while(|times| times * base <= FOLDED_UP_TO * self.end && 1.0 + 0.15 * times <= base / 4.0)
            .any(|times| match times * base <= self.end {
                true => multiple && (times * base - place).abs() <= 1.0 + 0.15 * times,
                false => alias && (folded(times * base) - place).abs() <= 1.0 + 0.15 * times + self.blur,
            })
    }
}

/// The source with this period; of several the one that took most.
fn source(samples: &WorkSamples, interval_ns: f64, cell: i64) -> Option<String> {
    let mut sources: Vec<_> = samples.sources.iter().collect();
    sources.sort_by_key(|source| std::cmp::Reverse(source.total_ns()));
    let comes_so = |numbers: &mut Vec<usize>| {
        numbers.dedup();
        has_period(samples, numbers, interval_ns, cell)
    };
    sources
        .into_iter()
        .find(|source| comes_so(&mut source.times.iter().map(|(number, _)| *number).collect()))
        .map(|source| source.source.clone())
}

#[cfg(test)]
mod tests {
    use super::super::read::SourceTimes;
    use super::super::read::tests::fixed_work;
    use super::*;
    use becalm_model::Kind;
    use becalm_testing::noise::Source;

    /// Samples of 1 ms of work with random noise, in which each source takes its time once per period; with the numbers of the samples that each
    /// source hit.
    fn disturbed(count: usize, sources: &[(f64, i64)], noise: i64) -> WorkSamples {
        let mut next: Vec<f64> = sources.iter().map(|(hz, _)| 1e9 / hz * 0.37).collect();
        let mut hits: Vec<SourceTimes> = sources
            .iter()
            .map(|(hz, _)| SourceTimes { kind: Kind::Task, source: format!("{hz} Hz"), times: Vec::new() })
            .collect();
        let mut random = Source::seeded(7);
        let mut at = 0_i64;
        let durations: Vec<i64> = (0..count)
            .map(|number| {
                let mut duration = 1_000_000 + (random.uniform() * noise as f64) as i64;
                for (((hz, length), next), hits) in sources.iter().zip(&mut next).zip(&mut hits) {
                    while *next < (at + duration) as f64 {
                        duration += length;
                        *next += 1e9 / hz;
                        hits.times.push((number, *length));
                    }
                }
                at += duration;
                duration
            })
            .collect();
        WorkSamples { sources: hits, ..fixed_work(&durations) }
    }

    fn all(samples: &WorkSamples) -> Vec<Tone> {
        tones(samples, &MainBody::from_values(&samples.values)).unwrap().tones
    }

    fn found(samples: &WorkSamples) -> Vec<f64> {
        all(samples).iter().map(|tone| tone.hz).collect()
    }

    #[test]
    fn planted_sources_are_found_among_noise() {
        for (hz, tolerance) in [(100.0, 0.1), (10.0, 0.1), (83.3, 0.1), (250.0, 0.2)] {
            let found = found(&disturbed(20_000, &[(hz, 50_000)], 30_000));
            assert!((found[0] - hz).abs() < tolerance, "{hz} Hz: {found:?}");
            let off = |other: &f64| ((other / hz) - (other / hz).round()).abs();
            assert!(found[1..].iter().all(|other| off(other) > 0.002), "{hz} Hz and its multiples are one: {found:?}");
            // Only multiples folded at the samples' own rate may be named in addition.
            assert!(found.len() <= 2, "{hz} Hz alone was planted: {found:?}");
        }
        let both = found(&disturbed(30_000, &[(10.0, 60_000), (100.0, 60_000)], 30_000));
        for hz in [10.0, 100.0] {
            assert!(both.iter().any(|found| (found - hz).abs() < 0.2), "{hz} Hz: {both:?}");
        }
        assert!(both.len() <= 3, "two were planted: {both:?}");
    }

    #[test]
    fn a_tone_has_the_name_of_its_source() {
        let mut samples = disturbed(20_000, &[(10.0, 150_000), (100.0, 90_000)], 30_000);
        // Two that took more: one at random, and one of another rate.
        let mut random = Source::seeded(3);
        let numbers: std::collections::BTreeSet<usize> =
            (0..2_000).map(|_| (random.uniform() * 2e4) as usize).collect();
        let source = |name: &str, numbers: Vec<usize>| SourceTimes {
            kind: Kind::Irq,
            source: name.to_owned(),
            times: numbers.into_iter().map(|number| (number, 500_000)).collect(),
        };
        samples.sources.push(source("at random", numbers.into_iter().collect()));
        samples.sources.push(source("of 50 Hz", (0..1_000).map(|at| at * 20).collect()));
        let tones = all(&samples);
        for (hz, name) in [(10.0, "10 Hz"), (100.0, "100 Hz")] {
            let tone = tones.iter().find(|tone| (tone.hz - hz).abs() < 0.2).unwrap();
            assert_eq!(tone.source.as_deref(), Some(name), "{tones:?}");
        }
        samples.sources.clear();
        assert!(all(&samples).iter().all(|tone| tone.source.is_none()));
    }

    #[test]
    fn noise_alone_has_no_frequency() {
        for count in [300, 3_000, 30_000] {
            assert_eq!(found(&disturbed(count, &[], 30_000)), [] as [f64; 0], "{count}");
        }
        assert!(found(&disturbed(3_000, &[], 0)).is_empty());
    }

    /// Detours at random times, of lengths from microseconds to many milliseconds: one run of a thousand may show a frequency.
    #[test]
    fn poisson_noise_has_no_frequency() {
        let mut source = Source::seeded(31);
        let (mut alarms, runs) = (0, 120);
        for _ in 0..runs {
            let mut durations: Vec<i64> = (0..4_000).map(|_| 1_000_000 + source.exponential(3e3) as i64).collect();
            for time in source.poisson(30.0, 4e9) {
                durations[(time / 1e6) as usize] += source.pareto(3e4, 0.8) as i64;
            }
            alarms += i32::from(!found(&fixed_work(&durations)).is_empty());
        }
        assert!(alarms <= 2, "{alarms} of {runs}");
    }

    #[test]
    fn few_samples_have_no_spectrum() {
        let samples = disturbed(200, &[], 10);
        assert_eq!(tones(&samples, &MainBody::from_values(&samples.values)), None);
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
}
