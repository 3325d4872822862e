//! Nodes with noise from a known process: ticks, and rare detours with a known distribution. The cost at scale is computed from the
//! process, without a recording.

use crate::noise::Source;

/// Ticks per second, and the range of their lengths, in nanoseconds.
const TICKS_HZ: f64 = 250.0;
const TICK: (f64, f64) = (3_000.0, 6_000.0);

/// Rare detours per second of one CPU.
const RARE_HZ: f64 = 2.0;

/// The distribution of the lengths of rare detours.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RareLaw {
    /// Exponential, 100 us on average.
    Exponential,
    /// Lognormal with a median of 50 us and a sigma of 1.5.
    Lognormal,
    /// Pareto with exponent 1.5 from 20 us to 20 ms.
    Pareto,
    /// The first two, equally often.
    Two,
    /// All three, equally often.
    Three,
}

impl RareLaw {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Exponential, Self::Lognormal, Self::Pareto, Self::Two, Self::Three];

    /// A length in nanoseconds.
    fn length(self, source: &mut Source) -> f64 {
        match self {
            Self::Exponential => source.exponential(1e5),
            Self::Lognormal => 5e4 * (1.5 * source.normal()).exp(),
            Self::Pareto => loop {
                let length = 2e4 * source.uniform().powf(-1.0 / 1.5);
                if length < 2e7 {
                    return length;
                }
            },
            Self::Two if source.uniform() < 0.5 => Self::Exponential.length(source),
            Self::Two => Self::Lognormal.length(source),
            Self::Three => {
                [Self::Exponential, Self::Lognormal, Self::Pareto][(source.uniform() * 3.0) as usize].length(source)
            }
        }
    }

    /// A recording of one CPU over `length` nanoseconds: starts and lengths of its detours, in order and not overlapping.
    pub fn recording(self, source: &mut Source, length: i64) -> Vec<(i64, i64)> {
        let mut detours = Vec::new();
        let interval = (1e9 / TICKS_HZ) as i64;
        let first = (source.uniform() * interval as f64) as i64;
        detours.extend(
            (0..)
                .map(|tick| first + tick * interval)
                .take_while(|at| *at < length)
                .map(|at| (at, (TICK.0 + (TICK.1 - TICK.0) * source.uniform()) as i64)),
        );
        for at in source.poisson(RARE_HZ, length as f64) {
            detours.push((at as i64, self.length(source) as i64));
        }
        detours.sort_unstable();
        // Overlapping detours are shifted to the end of the previous one; the last one is cut off.
        let mut end = 0;
        detours.retain_mut(|(start, duration)| {
            *start = (*start).max(end);
            *duration = (*duration).min(length - 1 - *start);
            end = *start + (*duration).max(0);
            *duration > 0
        });
        detours
    }

    /// The mean extension of a phase with this many ranks, relative to the grain, over this many phases; each rank has its own process.
    ///
    /// Phase by phase: detours start in ranks while they work, and while they wait for the last one; the remainder of the latter counts in
    /// the next phase. Two rare detours of one rank in one phase are rare enough to be ignored.
    pub fn added(self, source: &mut Source, ranks: u64, grain_ns: f64, phases: u64) -> f64 {
        let ticked = grain_ns * TICKS_HZ / 1e9;
        // The longest of very many ticks.
        let ticks = TICK.1 - (TICK.1 - TICK.0) / (ranks as f64 * ticked + 1.0);
        let (mut left, mut total) = (0.0_f64, 0.0);
        for _ in 0..phases {
            let mut longest = ticks.max(left);
            for _ in 0..count(source, ranks as f64 * RARE_HZ * grain_ns / 1e9) {
                let tick = if source.uniform() < ticked { TICK.0 + (TICK.1 - TICK.0) * source.uniform() } else { 0.0 };
                longest = longest.max(self.length(source) + tick);
            }
            total += longest;
            left = 0.0;
            for _ in 0..count(source, ranks as f64 * RARE_HZ * longest / 1e9) {
                left = left.max(self.length(source) - longest * source.uniform());
            }
        }
        total / phases as f64 / grain_ns
    }
}

/// A Poisson number of this mean.
fn count(source: &mut Source, mean: f64) -> u64 {
    if mean > 500.0 {
        return (mean + mean.sqrt() * source.normal()).round().max(0.0) as u64;
    }
    let (mut product, mut number) = (source.uniform(), 0);
    while product > (-mean).exp() {
        product *= source.uniform();
        number += 1;
    }
    number
}
