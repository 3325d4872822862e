//! Which of several equals - the CPUs of a node, the nodes of a cluster - is noisier or quieter than the others.
//!
//! Noise ratios of equals scatter by factors, so their logarithms are compared. The middle is the median and the spread
//! s the median absolute deviation times 1.4826, which outliers do not move (F. R. Hampel, J. Am. Stat. Assoc. 69
//! (1974)). The score of one is its distance from the middle over sqrt(s^2 + e^2), with its own error e from the interval
//! of its ratio, so that a run too short to know a CPU does not call it an outlier.
//!
//! With the spread from few equals the score has heavy tails: it is compared with Student's t, whose degrees of freedom
//! are 0.37 (n - 1), as the median absolute deviation of n values is worth that many as a spread (its efficiency is 37 %);
//! and at 5 % over the number compared (Bonferroni), so that among equals a false outlier is named in at most 5 of 100
//! runs. Equals may differ a little without that being of interest: what is within [`FACTOR_MIN`] of the middle is none.

use super::Interval;
use super::distributions::student_tail;
use crate::median_mid;

/// With fewer equals there is no telling what is usual.
pub const PEERS_MIN: usize = 6;

/// An outlier differs at least by this factor from the middle.
pub const FACTOR_MIN: f64 = 1.25;

/// The probability of naming any where there is none, at most.
pub const FALSE_ALARM: f64 = 0.05;

/// A value that differs from the others it was compared with.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Outlier {
    /// Its place among those that were compared.
    pub place: usize,
    /// Its ratio over the median of all: above 1 noisier, below 1 quieter.
    pub factor: f64,
    /// The probability that any of so many equals would differ as much, at most.
    pub chance: f64,
}

/// There are too few to compare.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TooFewPeers {
    /// How many have an interval; [`PEERS_MIN`] are needed.
    pub compared: usize,
}

/// Those that differ from the others, the noisiest first, out of the noise ratio and its interval of each. One without an
/// interval, or whose interval reaches down to 0, is not compared.
///
/// # Errors
/// If fewer than [`PEERS_MIN`] can be compared.
pub fn outliers(peers: &[(f64, Interval)]) -> Result<Vec<Outlier>, TooFewPeers> {
    // Place, logarithm, error of the logarithm.
    let known: Vec<(usize, f64, f64)> = peers
        .iter()
        .enumerate()
        .filter_map(|(place, (ratio, interval))| match interval {
            Interval::Between { low, high } | Interval::Rough { low, high, .. } if *ratio > 0.0 && *low > 0.0 => {
                Some((place, ratio.ln(), (high / low).ln() / (2.0 * 1.96)))
            }
            _ => None,
        })
        .collect();
    let n = known.len();
    if n < PEERS_MIN {
        return Err(TooFewPeers { compared: n });
    }
    let median = |mut values: Vec<f64>| median_mid(&mut values).expect("there are enough peers");
    let middle = median(known.iter().map(|peer| peer.1).collect());
    let spread = 1.4826 * median(known.iter().map(|peer| (peer.1 - middle).abs()).collect());
    let freedom = 0.37 * (n - 1) as f64;
    let mut outliers: Vec<Outlier> = known
        .iter()
        .map(|(place, log, error)| {
            let deviation = (log - middle).abs();
            let score = deviation / (spread * spread + error * error).sqrt();
            // The errors of all are in the spread already; its own may be larger.
            let chance = if deviation == 0.0 { 1.0 } else { 2.0 * student_tail(score, freedom) * n as f64 };
            Outlier { place: *place, factor: (log - middle).exp(), chance: chance.min(1.0) }
        })
        .filter(|peer| peer.chance <= FALSE_ALARM && peer.factor.max(1.0 / peer.factor) >= FACTOR_MIN)
        .collect();
    outliers.sort_by(|a, b| b.factor.total_cmp(&a.factor));
    Ok(outliers)
}

#[cfg(test)]
mod tests {
    use super::*;
    use becalm_testing::noise::Source;

    /// A ratio known to `error`, as a run gives it.
    fn measured(source: &mut Source, truth: f64, error: f64) -> (f64, Interval) {
        let ratio = truth * (error * source.normal()).exp();
        (ratio, Interval::Between { low: ratio * (-1.96 * error).exp(), high: ratio * (1.96 * error).exp() })
    }

    #[test]
    fn equals_are_seldom_called_outliers() {
        for n in [6, 8, 16, 64, 256] {
            for (differ, error) in [(0.0, 0.2), (0.3, 0.05), (0.2, 0.2)] {
                let mut source = Source::seeded(1);
                let wrong = (0..1_000).filter(|_| {
                    let peers: Vec<_> = (0..n)
                        .map(|_| {
                            let truth = 0.001 * (differ * source.normal()).exp();
                            measured(&mut source, truth, error)
                        })
                        .collect();
                    !outliers(&peers).unwrap().is_empty()
                });
                let wrong = wrong.count();
                assert!(wrong <= 50, "{wrong} of 1,000 runs name one of {n} equals (differ {differ}, error {error})");
            }
        }
    }

    #[test]
    fn the_noisy_and_the_quiet_one_are_named() {
        let mut source = Source::seeded(2);
        let mut found = 0;
        for _ in 0..200 {
            let mut peers: Vec<_> = (0..16).map(|_| measured(&mut source, 0.001, 0.1)).collect();
            peers[3] = measured(&mut source, 0.003, 0.1);
            peers[9] = measured(&mut source, 0.0003, 0.1);
            let places: Vec<usize> = outliers(&peers).unwrap().iter().map(|outlier| outlier.place).collect();
            found += i32::from(places == [3, 9]);
        }
        assert!(found >= 190, "{found} of 200");
    }

    #[test]
    fn too_few_or_unknown_ones_are_not_compared() {
        let mut source = Source::seeded(3);
        let mut peers: Vec<_> = (0..5).map(|_| measured(&mut source, 0.001, 0.1)).collect();
        assert_eq!(outliers(&peers), Err(TooFewPeers { compared: 5 }));
        peers.push((0.5, Interval::Unknown(super::super::TooLittle::ShortRun)));
        peers.push((0.0, Interval::Between { low: 0.0, high: 0.1 }));
        assert_eq!(outliers(&peers), Err(TooFewPeers { compared: 5 }));
        let same = (0.001, Interval::Between { low: 0.001, high: 0.001 });
        assert_eq!(outliers(&[same; 8]), Ok(Vec::new()));
    }
}
