//! The power of a real signal by frequency: the squares |X_k|^2 of its discrete Fourier transform.
//!
//! A real signal of n values is treated as n/2 complex ones, with the values at even places as real parts and those at odd places as
//! imaginary parts. With Z their transform, E_k = (Z_k + conj Z_(n/2-k)) / 2 is that of the values at even places, O_k = (Z_k - conj
//! Z_(n/2-k)) / 2i that of the values at odd places, and X_k = E_k + e^(-2 pi i k/n) O_k: H. V. Sorensen et al., *Real-valued fast Fourier
//! transform algorithms*, IEEE Trans. Acoust. Speech Signal Process. 35 (1987). That takes half the time and memory of a transform of n
//! complex values.
//!
//! All lengths are powers of two and all numbers `f64`, so a single algorithm is compiled, once.

use std::ops::{Index, IndexMut};
use std::sync::Arc;

use rustfft::algorithm::Radix4;
use rustfft::num_complex::Complex;
use rustfft::{Fft, FftDirection, Length};

/// A real signal, packed as the transform needs it; 0 where not set.
#[derive(Clone, Debug)]
pub struct Signal(Vec<Complex<f64>>);

impl Signal {
    /// A signal of this many zeros, rounded up to an even number.
    pub fn zeros(length: usize) -> Self {
        Self(vec![Complex::default(); length.div_ceil(2)])
    }
}

impl FromIterator<f64> for Signal {
    /// An odd number of values is padded with a 0.
    fn from_iter<I: IntoIterator<Item = f64>>(values: I) -> Self {
        let mut values = values.into_iter();
        let pair = || Some(Complex::new(values.next()?, values.next().unwrap_or(0.0)));
        Self(std::iter::from_fn(pair).collect())
    }
}

impl Index<usize> for Signal {
    type Output = f64;

    fn index(&self, at: usize) -> &f64 {
        let pair = &self.0[at / 2];
        if at.is_multiple_of(2) { &pair.re } else { &pair.im }
    }
}

impl IndexMut<usize> for Signal {
    fn index_mut(&mut self, at: usize) -> &mut f64 {
        let pair = &mut self.0[at / 2];
        if at.is_multiple_of(2) { &mut pair.re } else { &mut pair.im }
    }
}

/// The transform of signals of one length.
#[derive(Clone)]
pub struct Fourier {
    /// The transform of half as many complex values.
    half: Arc<Radix4<f64>>,
    /// e^(-2 pi i k/n) for k = 0..=n/4, computed once for all signals.
    turns: Arc<[Complex<f64>]>,
}

impl Fourier {
    /// Prepares for signals of this length. Panics if the length is 1 or not a power of two.
    pub fn new(length: usize) -> Self {
        assert!(length.is_power_of_two() && length > 1, "a signal of {length} values cannot be transformed");
        let half = length / 2;
        let turn = |k: usize| Complex::cis(-std::f64::consts::PI * k as f64 / half as f64);
        Self { half: Arc::new(Radix4::new(half, FftDirection::Forward)), turns: (0..=half / 2).map(turn).collect() }
    }

    /// The powers |X_k|^2 at k = 0..=n/2 cycles in the signal's n values. A signal of another length is cut off or padded with zeros.
    pub fn powers(&self, signal: Signal) -> Vec<f64> {
        let Signal(mut pairs) = signal;
        let half = self.half.len();
        pairs.resize(half, Complex::default());
        self.half.process(&mut pairs);
        let mut powers = vec![0.0; half + 1];
        // The terms at k also give those at n/2 - k, conjugated.
        for (k, turn) in self.turns.iter().enumerate() {
            let (this, mirrored) = (pairs[k], pairs[(half - k) % half].conj());
            let even = (this + mirrored) * 0.5;
            let odd = (this - mirrored) * Complex::new(0.0, -0.5);
            let turned = odd * turn;
            powers[half - k] = (even - turned).norm_sqr();
            powers[k] = (even + turned).norm_sqr();
        }
        powers
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// From the sum that defines it.
    fn defined(values: &[f64], k: usize) -> f64 {
        let turn = |at: usize| -std::f64::consts::TAU * ((at * k) % values.len()) as f64 / values.len() as f64;
        values.iter().enumerate().map(|(at, value)| value * Complex::cis(turn(at))).sum::<Complex<f64>>().norm_sqr()
    }

    proptest! {
        #[test]
        fn powers_are_those_of_the_sum(exponent in 1_u32..9, values in prop::collection::vec(-1e3_f64..1e3, 256)) {
            let values = &values[..1 << exponent];
            let powers = Fourier::new(values.len()).powers(values.iter().copied().collect());
            prop_assert_eq!(powers.len(), values.len() / 2 + 1);
            // No power is more than all values in phase have.
            let most = values.iter().map(|value| value.abs()).sum::<f64>().powi(2);
            for (k, power) in powers.into_iter().enumerate() {
                prop_assert!((power - defined(values, k)).abs() <= 1e-12 * most, "{} at {}", power, k);
            }
        }
    }

    #[test]
    fn a_shorter_signal_goes_on_with_zeros() {
        let mut long = Signal::zeros(16);
        (long[0], long[1], long[2]) = (3.0, -1.0, 4.0);
        assert_eq!((long[1], long[3]), (-1.0, 0.0));
        let fourier = Fourier::new(16);
        assert_eq!(fourier.powers([3.0, -1.0, 4.0].into_iter().collect()), fourier.powers(long));
        assert_eq!(fourier.powers(Signal::zeros(0)), [0.0; 9]);
    }
}
