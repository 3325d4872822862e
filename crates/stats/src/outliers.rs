//! Which of several peers (the CPUs of a node, the nodes of a cluster) is noisier or quieter than the others.
//!
//! Noise ratios of peers differ by factors, so their logarithms are compared. The center is the median and the spread s is the median
//! absolute deviation times 1.4826, both robust against outliers (F. R. Hampel, J. Am. Stat. Assoc. 69 (1974)). The score of a peer is its
//! distance from the center over sqrt(s^2 + e^2), with its own error e from the interval of its ratio, so a CPU with too short a run is not
//! called an outlier.
//!
//! With the spread from few peers the score has heavy tails. It is compared with Student's t with 0.37 (n - 1) degrees of freedom, because
//! the median absolute deviation has an efficiency of 37 %, at the 5 % level over the number compared (Bonferroni): at most 5 of 100 runs
//! name a false outlier. Small differences do not matter: a peer within [`FACTOR_MIN`] of the center is no outlier.
//!
//! A peer with noise too uneven for an interval is compared only in one way: it is noisier if even the quietest part of its time
//! ([`Peer::steady`]) is noisier than the others' whole time by more than their scatter allows. Its total noise is larger than that of its
//! quietest part, so false outliers are even rarer.

use super::Interval;
use super::distributions::student_tail;
use crate::median_mid;

/// Fewer peers do not show what is usual.
pub const PEERS_MIN: usize = 6;

/// An outlier differs from the center at least by this factor.
pub const FACTOR_MIN: f64 = 1.25;

/// The maximum probability of naming any outlier if there is none.
pub const FALSE_ALARM: f64 = 0.05;

/// A value that differs from its peers.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Outlier {
    /// Its index among the peers.
    pub place: usize,
    /// Its ratio over the median of all: above 1 noisier, below 1 quieter.
    pub factor: f64,
    /// The maximum probability that any of so many equal peers would differ as much.
    pub chance: f64,
}

/// There are too few peers to compare.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TooFewPeers {
    /// The number with an interval; [`PEERS_MIN`] are needed.
    pub compared: usize,
}

/// A peer to compare.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Peer {
    /// Its noise ratio, as parts of 1.
    pub ratio: f64,
    /// The interval of the ratio.
    pub interval: Interval,
    /// Its noise ratio in the quietest of [`PARTS`] equal parts of its time; `None` if unknown.
    pub steady: Option<f64>,
}

/// The number of parts into which the time of a peer without an interval is divided.
pub const PARTS: usize = 8;

/// The peers that differ from the others, the noisiest first, given the noise ratio and interval of each. Peers without an interval, or
/// with one that reaches down to 0, are not compared. Fails if fewer than [`PEERS_MIN`] can be compared.
pub fn outliers(peers: &[(f64, Interval)]) -> Result<Vec<Outlier>, TooFewPeers> {
    let peers: Vec<Peer> =
        peers.iter().map(|(ratio, interval)| Peer { ratio: *ratio, interval: *interval, steady: None }).collect();
    outliers_of(&peers, 0)
}

/// The same for peers with a known quietest part, when `others` more are compared separately: the false alarm probability covers all of
/// them. Fails if fewer than [`PEERS_MIN`] can be compared.
pub fn outliers_of(peers: &[Peer], others: usize) -> Result<Vec<Outlier>, TooFewPeers> {
    // Index, logarithm, error of the logarithm.
    let known: Vec<(usize, f64, f64)> = peers
        .iter()
        .enumerate()
        .filter_map(|(place, peer)| match peer.interval {
            Interval::Between { low, high } | Interval::Rough { low, high, .. } if peer.ratio > 0.0 && low > 0.0 => {
                Some((place, peer.ratio.ln(), (high / low).ln() / (2.0 * 1.96)))
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
    let uneven: Vec<(usize, f64)> = peers
        .iter()
        .enumerate()
        .filter(|(_, peer)| peer.interval.low().is_none())
        .filter_map(|(place, peer)| Some((place, peer.steady.filter(|steady| *steady > 0.0)?.ln())))
        .collect();
    let all = (n + uneven.len() + others) as f64;
    let chance = |deviation: f64, error: f64| {
        // The spread includes the errors of all; this one's may be larger.
        let score = deviation / (spread * spread + error * error).sqrt();
        if deviation == 0.0 { 1.0 } else { (2.0 * student_tail(score, freedom) * all).min(1.0) }
    };
    let whole = known.iter().map(|(place, log, error)| {
        let chance = chance((log - middle).abs(), *error);
        (Outlier { place: *place, factor: (log - middle).exp(), chance }, (log - middle).exp())
    });
    let steady = uneven.iter().filter(|(_, least)| *least > middle).map(|(place, least)| {
        let factor = (peers[*place].ratio.ln() - middle).exp();
        (Outlier { place: *place, factor, chance: chance(least - middle, 0.0) }, (least - middle).exp())
    });
    let mut outliers: Vec<Outlier> = whole
        .chain(steady)
        .filter(|(_, factor)| factor.max(1.0 / factor) >= FACTOR_MIN)
        .map(|(outlier, _)| outlier)
        .filter(|outlier| outlier.chance <= FALSE_ALARM)
        .collect();
    outliers.sort_by(|a, b| b.factor.total_cmp(&a.factor));
    Ok(outliers)
}

#[cfg(test)]
mod tests {
    use super::*;
    use becalm_testing::noise::{SlotLaw, Source};

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

    /// 32 nodes, each with its noise in 512 slots; where `planted`, number 17 has nine times as much, of a source that is always there.
    fn nodes(source: &mut Source, law: SlotLaw, planted: bool) -> Vec<Peer> {
        let node = |number: usize| {
            let mut slots = source.slots(law, 512);
            if planted && number == 17 {
                slots.iter_mut().for_each(|ns| *ns += (8.0 * SlotLaw::MEAN) as i64);
            }
            let (width, observed) = (1 << 24, 512 << 24);
            let total: i64 = slots.iter().sum();
            let least = slots.chunks(512 / PARTS).map(|part| part.iter().sum::<i64>()).min().unwrap();
            let steady = Some(least as f64 / (observed / PARTS as i64) as f64);
            let interval = Interval::for_noise(&slots, width, observed);
            Peer { ratio: total as f64 / observed as f64, interval, steady }
        };
        (0..32).map(node).collect()
    }

    /// Of noise that comes in trains, has heavy tails, drifts, or storms: the measured rates are in the book.
    #[test]
    fn equals_with_noise_as_it_comes_are_seldom_named_and_the_slow_one_is() {
        let fleets = std::env::var("BECALM_FLEETS").map_or(10, |count| count.parse().unwrap());
        let (mut all_wrong, mut all_right, mut told) = (0, 0, Vec::new());
        for law in SlotLaw::ALL {
            let mut source = Source::seeded(1);
            let (mut wrong, mut right) = (0, 0);
            for _ in 0..fleets {
                wrong +=
                    usize::from(outliers_of(&nodes(&mut source, law, false), 0).is_ok_and(|named| !named.is_empty()));
                let named = outliers_of(&nodes(&mut source, law, true), 0).unwrap_or_default();
                right += usize::from(named.first().is_some_and(|first| first.place == 17));
            }
            told.push((law, wrong, right));
            (all_wrong, all_right) = (all_wrong + wrong, all_right + right);
        }
        let fleets = fleets * SlotLaw::ALL.len();
        assert!(all_wrong * 20 <= fleets, "{all_wrong} of {fleets} fleets of equals name one: {told:?}");
        assert!(all_right * 20 >= 19 * fleets, "the planted node is first in {all_right} of {fleets}: {told:?}");
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
