//! Finds periods in the times of events: a timer among interrupts, a daemon's poll among wake-ups.
//!
//! Events every P, even with jitter, missed beats and others in between, add up in phase at the frequency 1/P and, because the beat is
//! sharp, at its multiples; events at random times do not. With the power p(f) = |sum of e^(2 pi i f t)|^2 / N of N events at times t, that
//! of random events is exponential with mean 1 at every frequency (Lord Rayleigh, 1880), so the sum over m multiples is an Erlang variable:
//! the statistic Z^2_m / 2 of R. Buccheri et al., *Search for pulsed gamma-ray emission*, Astron. Astrophys. 128 (1983), for m = 1, 2, 4
//! and 8.
//!
//! - A Fourier transform of the counts in narrow bins gives the power at all frequencies. The few best are recomputed from the times
//!   themselves, on a finer grid.
//! - Trains of events raise the power at low frequencies without any period. Each power is therefore divided by the median of a band of
//!   frequencies around it, if that is above 1.
//! - The probability of the best, times the number of frequencies and sums examined (Bonferroni), is the [false alarm](Period::false_alarm)
//!   of the whole search. The caller chooses which one to accept.
//! - Multiples of the frequency have power too, and so do its divisors if beats are missed. The lowest frequency with a power of its own
//!   like that of the best wins.
//! - Two trains of events add up at the greatest common divisor of their periods. If most residues of the beats modulo m have hardly any
//!   events, and one has far more than chance allows (hypergeometric), the events of that residue have m times the period.
//! - A line through the times of the events on the beat gives the period, its error and the jitter. These events are removed and the search
//!   is repeated, because a source may have two periods.
//! - A program that sleeps and then works, or restarts after a disturbance, keeps no beat over the whole run. Its events add up best at
//!   some fraction of its period, an interval that no two of them have. If the gap between neighbors is far more constant than the distance
//!   of the events from the line, that gap is the period, and the events with that gap are removed.
//!
//! Not found: a period with fewer than a quarter of its beats, one that fewer than about a tenth of the events belong to, and one with a
//! beat that drifts too much over the events kept.

use rustfft::num_complex::Complex;

use super::distributions::ln_erlang_tail;
use super::fourier::{Fourier, Signal};
use super::median_high;

/// The number of events of a kind that are kept and searched: the first ones.
pub const EVENTS: usize = 1_024;

/// The shortest period searched for, in nanoseconds: slightly below that of 10 kHz, to include it.
const SHORTEST_NS: f64 = 95_000.0;

/// Fewer beats are no period.
const BEATS_MIN: usize = 8;

/// At least this share of the beats must have an event.
const FILL_MIN: f64 = 0.25;

/// The maximum number of periods of one kind of events.
const PERIODS_MAX: usize = 3;

/// The numbers of multiples to sum powers over.
const SUMS: [usize; 4] = [1, 2, 4, 8];

/// The number of best frequencies to recompute.
const CANDIDATES: usize = 4;

/// The grid of the recomputed frequencies is this many times finer than 1 / (time of all events).
const FINER: usize = 16;

/// Events that recur after the same time.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Period {
    /// The time between two events, in nanoseconds.
    pub interval_ns: f64,
    /// The standard error of the interval, in nanoseconds.
    pub interval_error_ns: f64,
    /// The standard deviation of events around the beat, in nanoseconds; without a beat over the whole run, around one interval after the
    /// previous event.
    pub jitter_ns: f64,
    /// The number of events on the beat.
    pub events: u64,
    /// The number of beats from the first event to the last; those in excess of `events` were missed.
    pub beats: u64,
    /// The maximum probability that events without a period would show one as clear anywhere in the search.
    pub false_alarm: f64,
}

impl Period {
    /// The frequency in Hz.
    pub fn frequency_hz(&self) -> f64 {
        1e9 / self.interval_ns
    }
}

/// The first [`EVENTS`] times of one kind of events.
#[derive(Clone, Default, Debug)]
pub struct Times(Vec<i64>);

impl Times {
    /// Adds the time of an event, in nanoseconds; events of a kind come roughly in order.
    #[inline]
    pub fn add(&mut self, time: i64) {
        if self.0.len() < EVENTS {
            self.0.push(time);
        }
    }

    /// Whether there are enough for a period.
    pub fn can_be_searched(&self) -> bool {
        self.0.len() > BEATS_MIN
    }

    /// The periods in these events, the clearest first, each with at most this false alarm.
    pub fn periods(&self, false_alarm: f64) -> Vec<Period> {
        let origin = self.0.first().copied().unwrap_or(0);
        let mut times: Vec<f64> = self.0.iter().map(|time| time.saturating_sub(origin) as f64).collect();
        times.sort_unstable_by(f64::total_cmp);
        let (mut periods, mut beats): (Vec<Period>, Vec<f64>) = (Vec::new(), Vec::new());
        while periods.len() < PERIODS_MAX
            && let Some((period, beat, rest)) = search(&times, false_alarm)
        {
            // Caused by the jitter of a beat found before.
            let is_known = |interval: f64| beats.iter().any(|known: &f64| (known / interval - 1.0).abs() < 0.01);
            if !is_known(beat) && !is_known(period.interval_ns) {
                periods.push(period);
            }
            beats.extend([beat, period.interval_ns]);
            if rest.len() == times.len() {
                break;
            }
            times = rest;
        }
        periods
    }
}

/// The clearest period; the beat at which it was found (the period may be a multiple of it); and the events that do not belong to the period.
fn search(times: &[f64], false_alarm: f64) -> Option<(Period, f64, Vec<f64>)> {
    let length = times.last()? - times.first()?;
    if times.len() <= BEATS_MIN || length <= 0.0 {
        return None;
    }
    let coarse = Powers::from_times(times, length);
    let trials = coarse.highest() * length * 8.0 * SUMS.len() as f64;
    let mut best: Option<(f64, f64)> = None;
    for frequency in coarse.candidates() {
        // Up to half of 1 / length on both sides; the next candidates are no closer.
        for step in 0..=FINER {
            let frequency = frequency + (step as f64 / FINER as f64 - 0.5) / length;
            if frequency * length < BEATS_MIN as f64 {
                continue;
            }
            let powers = multiples(times, frequency);
            let chance = SUMS.into_iter().map(|m| {
                let sum = (1..=m).map(|h| powers[h - 1] / coarse.level(frequency * h as f64)).sum();
                ln_erlang_tail(m, sum)
            });
            let chance = chance.fold(f64::INFINITY, f64::min);
            if best.is_none_or(|(least, _)| chance < least) {
                best = Some((chance, frequency));
            }
        }
    }
    let (chance, frequency) = best?;
    let found = (chance + trials.ln()).exp().min(1.0);
    if found > false_alarm {
        return None;
    }
    let frequency = fundamental(times, frequency, length);
    let (period, rest) = on_the_beat(times, frequency, found)?;
    (period.interval_ns >= SHORTEST_NS).then_some((period, 1.0 / frequency, rest))
}

/// The powers at a frequency and its multiples, computed from the times themselves.
fn multiples(times: &[f64], frequency: f64) -> [f64; 8] {
    let mut sums = [Complex::new(0.0, 0.0); 8];
    for time in times {
        let cycles = time * frequency;
        let (sin, cos) = (std::f64::consts::TAU * cycles.fract()).sin_cos();
        let turn = Complex::new(cos, sin);
        let mut phase = turn;
        for sum in &mut sums {
            *sum += phase;
            phase *= turn;
        }
    }
    sums.map(|sum| sum.norm_sqr() / times.len() as f64)
}

/// The lowest frequency with about the power of the strongest of its multiples.
fn fundamental(times: &[f64], frequency: f64, length: f64) -> f64 {
    let powers = multiples(times, frequency);
    let strongest = (0..8).max_by(|a, b| powers[*a].total_cmp(&powers[*b])).unwrap_or(0);
    let (frequency, power) = if powers[0] < 0.5 * powers[strongest] {
        (frequency * (strongest + 1) as f64, powers[strongest])
    } else {
        (frequency, powers[0])
    };
    let divided = |k: &f64| {
        let lower = frequency / k;
        lower * length >= BEATS_MIN as f64 && multiples(times, lower)[0] >= 0.5 * power
    };
    frequency / (2..=8).map(f64::from).rfind(divided).unwrap_or(1.0)
}

/// The period from a line through the events on the beat, and the remaining events.
fn on_the_beat(times: &[f64], frequency: f64, false_alarm: f64) -> Option<(Period, Vec<f64>)> {
    let sum: Complex<f64> =
        times.iter().map(|time| Complex::from_polar(1.0, std::f64::consts::TAU * (time * frequency).fract())).sum();
    let mut interval = 1.0 / frequency;
    let mut first = sum.arg() / std::f64::consts::TAU * interval;
    let mut window = 0.2;
    let mut line = None;
    for _ in 0..4 {
        let beats = nearest_to_beats(times, first, interval, window);
        let fitted = Line::through(&beats)?;
        (first, interval) = (fitted.first, fitted.interval);
        // As wide as the jitter requires; events outside are others.
        window = (4.0 * fitted.spread / interval).clamp(0.01, 0.2);
        line = Some((fitted, beats));
    }
    let (mut line, mut on_beat) = line?;
    let mut least = FILL_MIN;
    if let Some((multiple, place)) = place_in_turn(&on_beat) {
        // If all events together keep no beat, those of one residue must clearly keep theirs.
        least = if filled(&on_beat) < FILL_MIN { CLEARLY_FILLED } else { FILL_MIN };
        on_beat.retain(|(beat, _)| beat.rem_euclid(multiple) == place);
        on_beat.iter_mut().for_each(|(beat, _)| *beat = (*beat - place) / multiple);
        window /= multiple;
        line = Line::through(&on_beat)?;
    }
    if on_beat.len() < BEATS_MIN || filled(&on_beat) < least {
        return None;
    }
    let span = on_beat.last()?.0 - on_beat.first()?.0 + 1.0;
    let away = |time: &&f64| {
        let cycles = (*time - line.first) / line.interval;
        (cycles - cycles.round()).abs() > window
    };
    let rest = times.iter().filter(away).copied().collect();
    let period = Period {
        interval_ns: line.interval,
        interval_error_ns: line.interval_error,
        jitter_ns: line.spread,
        events: on_beat.len() as u64,
        beats: span as u64,
        false_alarm,
    };
    Some(Gap::from_beats(&on_beat, &line).map_or((period, rest), |gap| gap.period(times, &on_beat, false_alarm)))
}

/// The share of beats with an event, from the first event to the last.
fn filled(beats: &[(f64, f64)]) -> f64 {
    match beats {
        [(first, _), .., (last, _)] => beats.len() as f64 / (last - first + 1.0),
        _ => 0.0,
    }
}

/// The largest modulus m tried.
const PLACES: u32 = 32;

/// The maximum probability that events on random beats have one of two residues as often. The limit falls with the square of m, so at most
/// 3 in 1,000 periods with missed beats are mistaken for longer ones.
const BY_CHANCE: f64 = 1e-3;

/// The share of its beats that a train needs if the beat of all events has less than [`FILL_MIN`].
const CLEARLY_FILLED: f64 = 0.5;

/// A residue counts as used if its share of filled beats is at least this part of the fullest one's.
const USED: f64 = 0.45;

/// The modulus m and the residue of the events; `None` if they are spread evenly over all beats.
fn place_in_turn(beats: &[(f64, f64)]) -> Option<(f64, f64)> {
    let (first, last) = (beats.first()?.0, beats.last()?.0);
    let all = (last - first) as u32 + 1;
    let events = beats.len() as u32;
    let ln_factorials = LnFactorials::up_to(all);
    let mut found: Vec<(u32, u32, f64)> = Vec::new();
    for places in 2..=PLACES.min(all / 2) {
        let mut counts = vec![0; places as usize];
        beats.iter().for_each(|(beat, _)| counts[(beat - first) as usize % places as usize] += 1);
        let beats_of = |place: u32| (all - place).div_ceil(places);
        let filled = |place: u32| f64::from(counts[place as usize]) / f64::from(beats_of(place));
        let place = (0..places).max_by(|a, b| filled(*a).total_cmp(&filled(*b)))?;
        let chance = ln_factorials.ln_hypergeometric_tail(all, beats_of(place), events, counts[place as usize]);
        let limit = BY_CHANCE * (2.0 / f64::from(places)).powi(2);
        // A beat that another train hides repeatedly is still a beat.
        let used = (0..places).filter(|other| filled(*other) >= USED * filled(place)).count() as u32;
        if 2 * used <= places && chance + f64::from(places).ln() < limit.ln() {
            found.push((places, place, filled(place)));
        }
    }
    let fullest = found.iter().map(|(.., filled)| *filled).fold(0.0, f64::max);
    let (places, place, _) = found.into_iter().find(|(.., filled)| *filled >= 0.9 * fullest)?;
    let places = f64::from(places);
    Some((places, (first + f64::from(place)).rem_euclid(places)))
}

struct LnFactorials(Vec<f64>);

impl LnFactorials {
    fn up_to(most: u32) -> Self {
        let mut sum = 0.0;
        let logarithms = (1..=most).map(|number| {
            sum += f64::from(number).ln();
            sum
        });
        Self(std::iter::once(0.0).chain(logarithms).collect())
    }

    fn ln_choose(&self, all: u32, drawn: u32) -> f64 {
        self.0[all as usize] - self.0[drawn as usize] - self.0[(all - drawn) as usize]
    }

    /// The logarithm of the probability that at least `least` of `drawn` out of `all` are among `marked`.
    fn ln_hypergeometric_tail(&self, all: u32, marked: u32, drawn: u32, least: u32) -> f64 {
        let possible = least.max((marked + drawn).saturating_sub(all))..=marked.min(drawn);
        let term = |hits: u32| {
            self.ln_choose(marked, hits) + self.ln_choose(all - marked, drawn - hits) - self.ln_choose(all, drawn)
        };
        let terms: Vec<f64> = possible.map(term).collect();
        let largest = terms.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        largest + terms.iter().map(|term| (term - largest).exp()).sum::<f64>().ln()
    }
}

/// The gap between neighbors that keep no common beat.
struct Gap {
    time: f64,
    /// The standard deviation, from the median of absolute deviations.
    spread: f64,
    /// The number of neighbors with this gap.
    count: usize,
}

/// The gap must be this many times more constant than the distance of the events from the line.
const CLOSER: f64 = 4.0;

/// In nanoseconds; smaller differences do not count, because no loop sees the start of a detour more precisely.
const RESOLUTION: f64 = 100.0;

/// The median absolute deviation of normal values over their standard deviation.
const MAD_OF_NORMAL: f64 = 0.674_5;

impl Gap {
    /// The most frequent gap, if half of the neighbors have it and the line does not fit as well.
    fn from_beats(beats: &[(f64, f64)], line: &Line) -> Option<Self> {
        let gaps: Vec<(f64, f64)> = beats.windows(2).map(|two| (two[1].0 - two[0].0, two[1].1 - two[0].1)).collect();
        let gaps_over = |step: u32| gaps.iter().filter(move |gap| gap.0 == f64::from(step)).map(|gap| gap.1);
        let step = (1..=8).rev().max_by_key(|step| gaps_over(*step).count())?;
        let count = gaps_over(step).count();
        if count < BEATS_MIN - 1 || 2 * count < gaps.len() {
            return None;
        }
        let time = median(gaps_over(step).collect());
        let spread = median(gaps_over(step).map(|gap| (gap - time).abs()).collect()) / MAD_OF_NORMAL;
        let off = |(beat, at): &(f64, f64)| (at - line.first - beat * line.interval).abs();
        let from_line = median(beats.iter().map(off).collect()) / MAD_OF_NORMAL;
        (from_line > CLOSER * spread.max(RESOLUTION)).then_some(Self { time, spread, count })
    }

    /// The period, and the events that no other is one gap away from.
    fn period(&self, times: &[f64], beats: &[(f64, f64)], false_alarm: f64) -> (Period, Vec<f64>) {
        let near = (5.0 * self.spread).max(2e-3 * self.time);
        let has_one_at = |time: f64| {
            let at = times.partition_point(|other| *other < time - near);
            times.get(at).is_some_and(|other| *other <= time + near)
        };
        let alone = |time: &&f64| !has_one_at(**time + self.time) && !has_one_at(**time - self.time);
        let length = beats.last().map_or(0.0, |last| last.1) - beats.first().map_or(0.0, |first| first.1);
        let events = self.count as u64 + 1;
        let period = Period {
            interval_ns: self.time,
            // The standard error of the median of normal values.
            interval_error_ns: (std::f64::consts::FRAC_PI_2 / self.count as f64).sqrt() * self.spread,
            // The spread of each gap includes the jitter of both events.
            jitter_ns: self.spread / std::f64::consts::SQRT_2,
            events,
            beats: ((length / self.time).round() as u64 + 1).max(events),
            false_alarm,
        };
        (period, times.iter().filter(alone).copied().collect())
    }
}

/// The upper median, which is a value that occurred; 0 for no values.
fn median(mut values: Vec<f64>) -> f64 {
    median_high(&mut values).unwrap_or(0.0)
}

/// The event nearest to each beat: the beat's number and the time.
fn nearest_to_beats(times: &[f64], first: f64, interval: f64, window: f64) -> Vec<(f64, f64)> {
    let mut beats: Vec<(f64, f64)> = Vec::new();
    let off = |time: f64, beat: f64| (time - first - beat * interval).abs();
    for time in times {
        let beat = ((time - first) / interval).round();
        if off(*time, beat) > window * interval {
            continue;
        }
        match beats.last_mut() {
            Some((last, before)) if *last == beat => {
                if off(*time, beat) < off(*before, beat) {
                    *before = *time;
                }
            }
            _ => beats.push((beat, *time)),
        }
    }
    beats
}

/// A least-squares line through the times of beats.
#[derive(Clone, Copy)]
struct Line {
    first: f64,
    interval: f64,
    interval_error: f64,
    spread: f64,
}

impl Line {
    fn through(beats: &[(f64, f64)]) -> Option<Self> {
        let n = beats.len() as f64;
        if n < 3.0 {
            return None;
        }
        let beat = beats.iter().map(|(beat, _)| beat).sum::<f64>() / n;
        let time = beats.iter().map(|(_, time)| time).sum::<f64>() / n;
        let across: f64 = beats.iter().map(|(b, _)| (b - beat).powi(2)).sum();
        let along: f64 = beats.iter().map(|(b, t)| (b - beat) * (t - time)).sum();
        let interval = along / across;
        let first = time - interval * beat;
        let squares: f64 = beats.iter().map(|(b, t)| (t - first - interval * b).powi(2)).sum();
        let spread = (squares / (n - 2.0)).sqrt();
        (interval > 0.0).then(|| Self { first, interval, interval_error: spread / across.sqrt(), spread })
    }
}

/// The power at equally spaced frequencies, two in each 1 / (time of all events).
struct Powers {
    powers: Vec<f64>,
    /// The end and level of each band.
    bands: Vec<(usize, f64)>,
    step: f64,
    /// The indices of the frequencies searched.
    range: std::ops::Range<usize>,
}

impl Powers {
    fn from_times(times: &[f64], length: f64) -> Self {
        let bins = (16 * times.len()).next_power_of_two();
        // Pad with as many zeros as bins: that adds a frequency between each two.
        let mut counts = Signal::zeros(2 * bins);
        let begin = times[0];
        for time in times {
            counts[(((time - begin) / length * bins as f64) as usize).min(bins - 1)] += 1.0;
        }
        let n = times.len() as f64;
        let mut powers = Fourier::new(2 * bins).powers(counts);
        powers.truncate(bins);
        powers.iter_mut().for_each(|power| *power /= n);
        let step = 1.0 / (2.0 * length);
        // If only a quarter of its beats have an event, a period is four times as frequent as its events.
        let highest = (n / length / FILL_MIN).min(1.0 / SHORTEST_NS);
        let range = 2 * BEATS_MIN..((highest / step) as usize + 1).min(bins / 2);
        Self { bands: bands(&powers), powers, step, range }
    }

    fn highest(&self) -> f64 {
        self.range.end as f64 * self.step
    }

    /// The level of the power around a frequency, at least 1.
    fn level(&self, frequency: f64) -> f64 {
        let at = (frequency / self.step) as usize;
        let band = self.bands.partition_point(|(end, _)| *end <= at).min(self.bands.len() - 1);
        self.bands[band].1
    }

    /// The frequencies with the highest power at themselves and at twice themselves.
    fn candidates(&self) -> Vec<f64> {
        let mut level = self.bands.iter().copied().peekable();
        let mut whitened = Vec::with_capacity(self.powers.len());
        for (at, power) in self.powers.iter().enumerate() {
            while level.peek().is_some_and(|(end, _)| *end <= at) {
                level.next();
            }
            whitened.push(power / level.peek().map_or(1.0, |band| band.1));
        }
        let score = |at: usize| {
            let twice = whitened[2 * at - 1].max(whitened[2 * at]).max(whitened[2 * at + 1]);
            // -ln of the probabilities of one power and of two.
            let sum = whitened[at] + twice;
            whitened[at].max(sum - sum.ln_1p())
        };
        let range = self.range.start..self.range.end.min(self.powers.len() / 2 - 1);
        let scores: Vec<f64> = range.clone().map(score).collect();
        let mut best: Vec<(f64, usize)> = Vec::new();
        for (k, score) in scores.iter().enumerate() {
            let is_peak = (k == 0 || scores[k - 1] <= *score) && scores.get(k + 1).is_none_or(|next| next < score);
            if is_peak && (best.len() < CANDIDATES || best[best.len() - 1].0 < *score) {
                let place = best.partition_point(|(other, _)| other >= score);
                best.insert(place, (*score, range.start + k));
                best.truncate(CANDIDATES);
            }
        }
        best.into_iter().map(|(_, at)| at as f64 * self.step).collect()
    }
}

/// Frequency bands, each a fifth wider than the one before, with the level of the power in each: the median over ln 2, which equals the
/// mean of exponential powers and ignores single lines.
fn bands(powers: &[f64]) -> Vec<(usize, f64)> {
    let (mut begin, mut bands) = (1, Vec::new());
    while begin < powers.len() {
        let mut end = (begin + (begin / 5).max(48)).min(powers.len());
        if powers.len() - end < 48 {
            end = powers.len();
        }
        let median = median_high(&mut powers[begin..end].to_vec()).unwrap_or(0.0);
        bands.push((end, (median / std::f64::consts::LN_2).max(1.0)));
        begin = end;
    }
    bands
}

#[cfg(test)]
mod tests;
