//! Noise whose law is known, to test estimates with.

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

/// Random values from a seed.
pub struct Source(Xoshiro256PlusPlus);

impl Source {
    /// A source that gives the same values for the same seed.
    pub fn seeded(seed: u64) -> Self {
        Self(Xoshiro256PlusPlus::seed_from_u64(seed))
    }

    /// Above 0 and below 1.
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

    /// Times at random with this rate, from 0 to `length` nanoseconds, in order.
    pub fn poisson(&mut self, hz: f64, length: f64) -> Vec<f64> {
        let mut times = Vec::new();
        let mut time = self.exponential(1e9 / hz);
        while time < length {
            times.push(time);
            time += self.exponential(1e9 / hz);
        }
        times
    }

    /// Trains at random times with this rate; each with a geometric number of events, `size` on average, that follow
    /// each other after `gap` nanoseconds on average. Trains that began before 0 reach into the time. In order.
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
