//! Noise from a known distribution, to test estimates.

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

/// The noise in successive time slots, on a node that is like its peers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SlotLaw {
    /// A tick, and random daemons.
    Daemons,
    /// Random trains of five slots on average; slots have a generalized Pareto distribution with infinite variance.
    Bursts,
    /// A tick, and in a fifth of the slots a detour with a generalized Pareto distribution of infinite variance.
    HeavyTails,
    /// Drifting noise: its logarithm is autocorrelated over 50 slots.
    Drift,
    /// A tick, and on every second node one or two storms with ten times the noise, for 25 slots on average.
    Storms,
}

impl SlotLaw {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Daemons, Self::Bursts, Self::HeavyTails, Self::Drift, Self::Storms];

    /// The approximate mean of a slot, in nanoseconds.
    pub const MEAN: f64 = 10_000.0;
}

/// Random values from a seed.
pub struct Source(Xoshiro256PlusPlus);

impl Source {
    /// A source that gives the same values for the same seed.
    pub fn seeded(seed: u64) -> Self {
        Self(Xoshiro256PlusPlus::seed_from_u64(seed))
    }

    /// Uniform between 0 and 1, exclusive.
    pub fn uniform(&mut self) -> f64 {
        ((self.0.next_u64() >> 11) as f64 + 0.5) / (1_u64 << 53) as f64
    }

    /// Exponentially distributed with this mean.
    pub fn exponential(&mut self, mean: f64) -> f64 {
        -mean * self.uniform().ln()
    }

    /// Standard normal, by Box and Muller.
    pub fn normal(&mut self) -> f64 {
        (-2.0 * self.uniform().ln()).sqrt() * (std::f64::consts::TAU * self.uniform()).cos()
    }

    /// Lognormal with this mean and a coefficient of variation of 1.3.
    pub fn lognormal(&mut self, mean: f64) -> f64 {
        (mean.ln() - 0.5 + self.normal()).exp()
    }

    /// Generalized Pareto above 0.
    pub fn pareto(&mut self, scale: f64, shape: f64) -> f64 {
        let u = self.uniform();
        if shape == 0.0 { -scale * u.ln() } else { scale / shape * (u.powf(-shape) - 1.0) }
    }

    /// Random times at this rate, from 0 to `length` nanoseconds, in order.
    pub fn poisson(&mut self, hz: f64, length: f64) -> Vec<f64> {
        let mut times = Vec::new();
        let mut time = self.exponential(1e9 / hz);
        while time < length {
            times.push(time);
            time += self.exponential(1e9 / hz);
        }
        times
    }

    /// The noise in each slot of one node, in nanoseconds, with a mean of about [`SlotLaw::MEAN`].
    pub fn slots(&mut self, law: SlotLaw, slots: usize) -> Vec<i64> {
        // A generalized Pareto value of shape 0.6 and mean 1.
        let heavy = |source: &mut Self| source.pareto(0.4, 0.6);
        let tick = |source: &mut Self| 0.5 + 0.02 * source.normal();
        let mut left = 0_u32;
        let mut wander = 0.7 * self.normal();
        let slot = |_| {
            let share = match law {
                SlotLaw::Daemons => {
                    let daemons = if self.uniform() < 0.3 { self.lognormal(1.7) } else { 0.0 };
                    tick(self) + daemons
                }
                SlotLaw::Bursts => {
                    // Trains are 20 slots apart on average.
                    if left == 0 && self.uniform() < 0.05 {
                        left = 1 + self.exponential(4.5) as u32;
                    }
                    let burst = if left > 0 { 2.5 * heavy(self) } else { 0.0 };
                    left = left.saturating_sub(1);
                    tick(self) + burst
                }
                SlotLaw::HeavyTails => tick(self) + if self.uniform() < 0.2 { 2.5 * heavy(self) } else { 0.0 },
                SlotLaw::Drift => {
                    wander = 0.98 * wander + 0.7 * (1.0 - 0.98_f64 * 0.98).sqrt() * self.normal();
                    (wander - 0.245).exp()
                }
                SlotLaw::Storms => {
                    if left == 0 && self.uniform() < 0.7 / slots as f64 {
                        left = 1 + self.exponential(25.0) as u32;
                    }
                    let storm = if left > 0 { 7.5 } else { 0.0 };
                    left = left.saturating_sub(1);
                    1.5 * tick(self) + storm
                }
            };
            (share.max(0.0) * SlotLaw::MEAN) as i64
        };
        (0..slots).map(slot).collect()
    }

    /// Trains at random times with this rate, in order; each has a geometric number of events, `size` on average, with gaps of `gap`
    /// nanoseconds on average. Includes trains that started before 0.
    pub fn trains(&mut self, hz: f64, size: f64, gap: f64, length: f64) -> Vec<f64> {
        let before = 50.0 * size * gap;
        let mut times = Vec::new();
        for begin in self.poisson(hz, length + before) {
            let mut at = begin - before;
            loop {
                if (0.0..length).contains(&at) {
                    times.push(at);
                }
                if self.uniform() < 1.0 / size {
                    break;
                }
                at += self.exponential(gap);
            }
        }
        times.sort_by(f64::total_cmp);
        times
    }
}
