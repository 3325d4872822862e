//! The spectrum of the noise: the frequencies at which time is lost, for a chart with named peaks.
//!
//! The signal is the share of time lost in bins of 50 us. Its power spectral density is the average of the periodograms of segments: P. D.
//! Welch, *The use of fast Fourier transform for the estimation of power spectra*, IEEE Trans. Audio Electroacoust. 15 (1967), with Hann
//! windows and without overlap. A CPU contributes up to eight segments of 1.6 s, spread over the run; a shorter run one, of the longest
//! power of two of bins that fits. With more than 256 CPUs each contributes fewer, but at least the first and the last one: the average of
//! 2,048 segments is accurate to 2 %.

use super::fourier::Fourier;

/// The length of a bin in nanoseconds: two bins for a cycle of 10 kHz.
const BIN_NS: i64 = 50_000;

/// The bins of a segment, at least and at most.
const BINS: std::ops::RangeInclusive<usize> = 1_024..=32_768;

/// The number of segments per CPU, at least and at most.
const STRETCHES: std::ops::RangeInclusive<usize> = 2..=8;

/// This many segments are enough for all CPUs.
const ENOUGH: usize = 2_048;

/// The maximum number of points per decade of frequency.
const POINTS_PER_DECADE: f64 = 150.0;

/// The spectrum of a run's noise, averaged over its CPUs.
#[derive(Clone, PartialEq, Debug)]
pub struct Spectrum {
    /// The smallest difference of distinguishable frequencies, in Hz.
    pub resolution_hz: f64,
    /// The number of segments averaged.
    pub segments: u32,
    /// The curve in order of frequency, reduced for drawing: each point is the maximum around it.
    pub points: Vec<SpectrumPoint>,
    /// The named peaks, in order of frequency.
    pub peaks: Vec<Peak>,
}

/// A point of the curve.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct SpectrumPoint {
    /// The frequency in Hz, above 0.
    pub hz: f64,
    /// The power spectral density of the share of time lost, in 1/Hz.
    pub power: f64,
}

/// A peak of the curve at the frequency of a known period.
#[derive(Clone, PartialEq, Debug)]
pub struct Peak {
    /// The period's frequency in Hz.
    pub hz: f64,
    /// The highest power within the resolution around it, in 1/Hz.
    pub power: f64,
    /// The name of the periodic source, and the period: `timer: every 4.000ms`.
    pub label: String,
}

/// The bins of the CPU's current segment: 128 KiB.
#[derive(Clone, Debug)]
pub struct FilledStretch {
    /// The start of the run.
    start: i64,
    /// The distance between the starts of two segments.
    stride: i64,
    count: i64,
    /// The number of the current segment.
    current: i64,
    begin: i64,
    bins: usize,
    /// The bins; empty before the first detour, because a run may have thousands of CPUs without any.
    noise: Vec<f32>,
}

impl FilledStretch {
    /// For each of this many CPUs, in a run of `length` nanoseconds from `start`; `None` for a run below 51 ms.
    pub fn new(start: i64, length: i64, cpus: usize) -> Option<Self> {
        let fits = usize::try_from(length / BIN_NS).ok().filter(|bins| bins >= BINS.start())?;
        let bins = (1 << fits.ilog2()).min(*BINS.end());
        let span = bins as i64 * BIN_NS;
        let most = (ENOUGH / cpus.max(1)).clamp(*STRETCHES.start(), *STRETCHES.end());
        let count = (length / span).clamp(1, most as i64);
        // The first segment starts with the run and the last ends with it.
        let stride = if count > 1 { (length - span) / (count - 1) } else { length };
        Some(Self { start, stride, count, current: 0, begin: start, bins, noise: Vec::new() })
    }

    /// Adds a detour; those of a CPU come in order of time. Segments that end before it are averaged.
    #[inline]
    pub fn add(&mut self, start: i64, duration: i64, welch: &mut Welch) {
        if start.saturating_sub(self.begin) >= self.span() {
            self.close(start, welch);
        }
        let (begin, end) =
            (start.saturating_sub(self.begin), start.saturating_add(duration).saturating_sub(self.begin));
        if end > 0 && begin < self.span() {
            self.fill(begin.max(0), end.min(self.span()));
        }
    }

    const fn span(&self) -> i64 {
        self.bins as i64 * BIN_NS
    }

    fn fill(&mut self, mut begin: i64, end: i64) {
        if self.noise.is_empty() {
            self.noise = vec![0.0; self.bins];
        }
        while begin < end {
            let bin = begin / BIN_NS;
            let next = ((bin + 1) * BIN_NS).min(end);
            self.noise[bin as usize] += (next - begin) as f32 / BIN_NS as f32;
            begin = next;
        }
    }

    /// Averages the segments that end before this time.
    #[cold]
    fn close(&mut self, time: i64, welch: &mut Welch) {
        while self.current < self.count && time.saturating_sub(self.begin) >= self.span() {
            welch.add(&mut self.noise, self.bins);
            self.current += 1;
            self.begin = match self.current < self.count {
                true => self.start.saturating_add(self.current.saturating_mul(self.stride)),
                // No segment follows the last.
                false => i64::MAX,
            };
        }
    }

    /// Averages the remaining segment.
    pub fn finish(mut self, welch: &mut Welch) {
        self.close(i64::MAX - 1, welch);
    }
}

/// The average of periodograms.
#[derive(Clone, Default)]
pub struct Welch {
    /// The sum of the periodograms, one value per frequency; empty before the first.
    power: Vec<f64>,
    segments: u32,
    windowed: Option<Windowed>,
}

/// The data shared by all segments of a size.
#[derive(Clone)]
struct Windowed {
    window: Vec<f32>,
    transform: Fourier,
}

impl Windowed {
    /// For segments of `n` bins.
    fn new(n: usize) -> Self {
        let hann = |at: usize| 0.5 - 0.5 * (std::f32::consts::TAU * at as f32 / n as f32).cos();
        Self { window: (0..n).map(hann).collect(), transform: Fourier::new(n) }
    }

    /// The periodogram.
    fn powers(&self, noise: &[f32]) -> Vec<f64> {
        let mean = noise.iter().sum::<f32>() / noise.len() as f32;
        let signal = noise.iter().zip(&self.window).map(|(x, window)| f64::from((x - mean) * window));
        self.transform.powers(signal.collect())
    }
}

impl std::fmt::Debug for Welch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Welch").field("bins", &self.power.len()).field("segments", &self.segments).finish()
    }
}

impl Welch {
    /// Adds a segment of `n` bins, which may be empty if nothing was lost, and resets its bins to 0. Ignores a segment that differs in size
    /// from the first.
    fn add(&mut self, noise: &mut [f32], n: usize) {
        if self.power.is_empty() {
            self.power = vec![0.0; n / 2];
        }
        if self.power.len() == n / 2 && noise.is_empty() {
            self.segments += 1;
        } else if self.power.len() == n / 2 {
            let powers = self.windowed.get_or_insert_with(|| Windowed::new(n)).powers(noise);
            self.power.iter_mut().zip(powers).for_each(|(sum, power)| *sum += power);
            self.segments += 1;
        }
        noise.fill(0.0);
    }

    /// Adds all segments of another average; those of another size are ignored.
    pub fn merge(&mut self, other: &Self) {
        if self.power.is_empty() {
            self.power.clone_from(&other.power);
            self.segments = other.segments;
        } else if self.power.len() == other.power.len() {
            self.power.iter_mut().zip(&other.power).for_each(|(ours, theirs)| *ours += theirs);
            self.segments += other.segments;
        }
    }

    /// The spectrum, with peaks at these frequencies; `None` before the first segment. Of two names for one frequency the first wins.
    pub fn spectrum(&self, periods: impl IntoIterator<Item = (f64, String)>) -> Option<Spectrum> {
        if self.segments == 0 {
            return None;
        }
        let (half, rate) = (self.power.len(), 1e9 / BIN_NS as f64);
        let step = rate / (2 * half) as f64;
        // One-sided; the squares of a Hann window sum to 3/8 of its length.
        let scale = 2.0 / (rate * 0.375 * (2 * half) as f64) / f64::from(self.segments);
        let at = |bin: usize| self.power[bin] * scale;
        let mut points: Vec<SpectrumPoint> = Vec::new();
        let mut last = f64::NEG_INFINITY;
        for bin in 1..half {
            let hz = bin as f64 * step;
            let column = (hz.log10() * POINTS_PER_DECADE).floor();
            let point = SpectrumPoint { hz, power: at(bin) };
            match points.last_mut() {
                Some(before) if column == last => {
                    if before.power < point.power {
                        *before = point;
                    }
                }
                _ => points.push(point),
            }
            last = column;
        }
        // The window widens a line to two bins on each side.
        let resolution_hz = 2.0 * step;
        let mut peaks: Vec<Peak> = Vec::new();
        for (hz, label) in periods {
            let near =
                ((hz / step).round() as usize).saturating_sub(1).max(1)..((hz / step).round() as usize + 2).min(half);
            let known = |peak: &Peak| (peak.hz - hz).abs() < resolution_hz.max(hz * 1e-3);
            if near.is_empty() || peaks.iter().any(known) {
                continue;
            }
            peaks.push(Peak { hz, power: near.map(at).fold(0.0, f64::max), label });
        }
        peaks.sort_by(|a, b| a.hz.total_cmp(&b.hz));
        Some(Spectrum { resolution_hz, segments: self.segments, points, peaks })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use becalm_testing::noise::Source;

    const SECOND: i64 = 1_000_000_000;

    fn spectrum(length: i64, detours: impl Iterator<Item = (i64, i64)>, periods: Vec<(f64, String)>) -> Spectrum {
        let mut welch = Welch::default();
        let mut stretch = FilledStretch::new(5, length, 1).unwrap();
        detours.for_each(|(start, duration)| stretch.add(5 + start, duration, &mut welch));
        stretch.finish(&mut welch);
        welch.spectrum(periods).unwrap()
    }

    /// Without a period the density is that of white noise: rate times the mean square of the lengths, twice, as
    /// frequencies are above 0 only (Campbell's theorem).
    #[test]
    fn random_noise_is_flat_at_its_height() {
        let mut source = Source::seeded(1);
        let times = source.poisson(500.0, 20.0 * SECOND as f64);
        let found = spectrum(20 * SECOND, times.into_iter().map(|time| (time as i64, 10_000)), Vec::new());
        assert_eq!(found.segments, 8);
        let expected = 2.0 * 500.0 * 1e-5_f64.powi(2);
        let low: Vec<f64> = found.points.iter().filter(|p| p.hz < 20.0).map(|p| p.power).collect();
        let mean = low.iter().sum::<f64>() / low.len() as f64;
        assert!((mean / expected - 1.0).abs() < 0.3, "{mean} for {expected}");
    }

    /// CPUs that lose nothing count in the average, and take neither time nor memory for it.
    #[test]
    fn quiet_cpus_halve_the_power() {
        let ticks: Vec<(i64, i64)> = (0..5_000).map(|tick| (tick * 4_000_000, 20_000)).collect();
        let alone = spectrum(20 * SECOND, ticks.iter().copied(), Vec::new());
        let mut welch = Welch::default();
        let mut lanes = [(); 2].map(|()| FilledStretch::new(5, 20 * SECOND, 2).unwrap());
        ticks.iter().for_each(|(start, duration)| lanes[1].add(5 + start, *duration, &mut welch));
        assert!(lanes[0].noise.is_empty());
        lanes.into_iter().for_each(|lane| lane.finish(&mut welch));
        let both = welch.spectrum(Vec::new()).unwrap();
        assert_eq!(both.segments, 2 * alone.segments);
        for (half, whole) in both.points.iter().zip(&alone.points) {
            assert_eq!((half.hz, half.power * 2.0), (whole.hz, whole.power));
        }
    }

    /// Of many CPUs fewer stretches make the same average: here all of them lose the same time at the same rate, each at random.
    #[test]
    fn stretches_of_many_cpus_are_fewer_and_tell_the_same() {
        let mut source = Source::seeded(3);
        let mut spectrum = |cpus: usize, told: usize| {
            let mut welch = Welch::default();
            for _ in 0..cpus {
                let mut stretch = FilledStretch::new(5, 20 * SECOND, told).unwrap();
                let times = source.poisson(100.0, 20.0 * SECOND as f64);
                times.into_iter().for_each(|time| stretch.add(5 + time as i64, 10_000, &mut welch));
                stretch.finish(&mut welch);
            }
            welch.spectrum(Vec::new()).unwrap()
        };
        let mean = |found: &Spectrum| found.points.iter().map(|p| p.power).sum::<f64>() / found.points.len() as f64;
        let [all, few] = [16, 4_096].map(|told| spectrum(16, told));
        assert_eq!((all.segments, few.segments), (16 * 8, 16 * 2));
        // Each point is the highest of its surroundings, which is somewhat higher where fewer were averaged.
        assert!((0.9..1.6).contains(&(mean(&few) / mean(&all))), "{} and {}", mean(&few), mean(&all));
        assert_eq!([256, 257, 512, 1_024, 100_000].map(|told| spectrum(1, told).segments), [8, 7, 4, 2, 2]);
    }

    #[test]
    fn a_tick_is_a_line_with_its_name() {
        let ticks = (0..5_000).map(|tick| (tick * 4_000_000, 20_000));
        let names = vec![(250.0, "timer: every 4.000ms".to_owned()), (250.01, "the same".to_owned())];
        let found = spectrum(20 * SECOND, ticks, names);
        let [peak] = &found.peaks[..] else { panic!("{:?}", found.peaks) };
        assert_eq!((peak.hz, peak.label.as_str()), (250.0, "timer: every 4.000ms"));
        let elsewhere =
            found.points.iter().filter(|p| (150.0..240.0).contains(&p.hz)).map(|p| p.power).fold(0.0, f64::max);
        assert!(peak.power > 1e4 * elsewhere, "{} over {elsewhere}", peak.power);
        assert!(found.points.windows(2).all(|pair| pair[0].hz < pair[1].hz));
        assert!(found.points.iter().all(|p| p.hz > 0.0 && p.hz < 10_000.0) && found.points.len() < 700);
    }

    #[test]
    fn short_runs_and_damaged_times_do_not_panic() {
        for length in [i64::MIN, -1, 0, 51_000_000] {
            assert!(FilledStretch::new(0, length, 1).is_none());
        }
        assert_eq!(spectrum(60_000_000, std::iter::empty(), Vec::new()).segments, 1);
        for length in [60_000_000, i64::MAX] {
            let mut welch = Welch::default();
            let mut stretch = FilledStretch::new(-5, length, 1).unwrap();
            for (start, duration) in [(i64::MIN, i64::MAX), (0, -7), (i64::MAX, i64::MAX), (i64::MIN, 5)] {
                stretch.add(start, duration, &mut welch);
            }
            stretch.finish(&mut welch);
        }
        assert_eq!(Welch::default().spectrum(Vec::new()), None);
    }
}
