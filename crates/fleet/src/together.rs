//! Which sources hit several nodes at the same time: a permutation test of their moments.
//!
//! Time is divided into slots, at least 16.8 ms each and twice the stated clock errors; a slot is one of the summary form, or several of them. A node
//! with a larger clock error than the others is left out. For a source, each slot has the number of nodes on which it started there; the statistic is
//! the sum of the squares of these numbers. If the nodes were independent, each source could have started at any other time: so the slots of each
//! node are rotated by a random number of places, 999 times, which preserves its own trains and periods. The chance is the fraction of all rotations,
//! including the recorded one, with a statistic at least as large. It is compared with 5 % over the number of tested sources (Bonferroni). In
//! addition, a quarter more pairs of nodes must coincide than on average over the rotations, because for a frequent source a tiny excess would be
//! significant.

use std::collections::{BTreeMap, BTreeSet};

use becalm_stats::outliers::FACTOR_MIN;
use becalm_stats::splitmix::SplitMix64;

use crate::survey::SourceName;

/// The most nodes tested: the first that were watched all the time.
pub(super) const NODES: usize = 64;
/// The fewest nodes for a test.
pub(super) const NODES_MIN: usize = 3;
/// The fewest slots for a test.
pub(super) const SLOTS_MIN: usize = 64;
/// The number of tested sources: those in most slots.
const SOURCES: usize = 20;
/// The number of random rotations.
const TURNS: u64 = 999;
/// An upper bound of the probability of naming any source if none hits nodes together.
const LEVEL: f64 = 0.05;

/// The result of the test.
#[derive(Clone, PartialEq, Debug)]
pub struct Together {
    /// The number of tested nodes.
    pub nodes: usize,
    /// The length of a slot, in nanoseconds: starts within it are simultaneous.
    pub slot_ns: i64,
    /// The largest stated clock error of the tested nodes, in nanoseconds, at most half a slot; `None` if none states one.
    pub clock_error_ns: Option<i64>,
    /// The number of them that do not state it.
    pub unstated: usize,
    /// The sources, sorted by chance.
    pub sources: Vec<Struck>,
}

/// A source that occurred on several nodes.
#[derive(Clone, PartialEq, Debug)]
pub struct Struck {
    /// Its kind and name.
    pub name: SourceName,
    /// The number of nodes that had it.
    pub nodes: usize,
    /// The largest number of nodes that had it in one slot.
    pub most: usize,
    /// The probability of as much coincidence among independent nodes, by the test; `None` if it was not tested.
    pub chance: Option<f64>,
    /// The conclusion.
    pub verdict: Verdict,
}

/// Whether a source hits nodes at the same time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// It does.
    Together,
    /// There is no evidence for it.
    NotShown,
    /// It is in more than half of the slots, so it would coincide anyway.
    Everywhere,
}

impl Verdict {
    /// In words.
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Self::Together => "at the same time",
            Self::NotShown => "none shown",
            Self::Everywhere => "too frequent to tell",
        }
    }
}

/// The slots with a start of a source on a node.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Moments(Vec<bool>);

impl Moments {
    /// From a mark per slot.
    pub(super) fn from_slots(slots: Vec<bool>) -> Self {
        Self(slots)
    }

    fn count(&self) -> usize {
        self.0.iter().filter(|set| **set).count()
    }
}

/// Tests the sources of these nodes, with `slots` slots of length `slot_ns`.
pub(super) fn strikes(nodes: &[BTreeMap<SourceName, Moments>], slots: usize, slot_ns: i64) -> Result<Together, String> {
    if slots < SLOTS_MIN {
        return Err(format!("the nodes have less than {SLOTS_MIN} slots of time in common by their clocks"));
    }
    if nodes.len() < NODES_MIN {
        return Err(format!(
            "it takes {NODES_MIN} nodes that were watched with tracepoints all the time, and there {}",
            are(nodes.len())
        ));
    }
    let names: BTreeSet<&SourceName> = nodes.iter().flat_map(|node| node.keys()).collect();
    let mut found: Vec<(&SourceName, Vec<&Moments>, usize)> = names
        .into_iter()
        .map(|name| {
            let moments: Vec<&Moments> =
                nodes.iter().filter_map(|node| node.get(name)).filter(|moments| moments.count() > 0).collect();
            let count = moments.iter().map(|moments| moments.count()).sum();
            (name, moments, count)
        })
        .filter(|(_, moments, _)| moments.len() >= NODES_MIN)
        .collect();
    found.sort_by(|a, b| b.2.cmp(&a.2).then_with(|| a.0.cmp(b.0)));
    found.truncate(SOURCES);
    let everywhere = |moments: &[&Moments], count: usize| count * 2 > moments.len() * slots;
    let tested = found.iter().filter(|(_, moments, count)| !everywhere(moments, *count)).count();
    let mut sources: Vec<Struck> = found
        .iter()
        .map(|(name, moments, count)| {
            let most = at_once(moments, &vec![0; moments.len()]).into_iter().max().unwrap_or(0) as usize;
            let chance = (!everywhere(moments, *count)).then(|| chance(moments));
            let verdict = match chance {
                None => Verdict::Everywhere,
                Some((chance, pairs)) if chance * tested as f64 <= LEVEL && pairs >= FACTOR_MIN => Verdict::Together,
                Some(_) => Verdict::NotShown,
            };
            Struck {
                name: (*name).clone(),
                nodes: moments.len(),
                most,
                chance: chance.map(|(chance, _)| chance),
                verdict,
            }
        })
        .collect();
    sources.sort_by(|a, b| a.chance.unwrap_or(2.0).total_cmp(&b.chance.unwrap_or(2.0)));
    Ok(Together { nodes: nodes.len(), slot_ns, clock_error_ns: None, unstated: 0, sources })
}

/// A number with its verb.
fn are(nodes: usize) -> String {
    if nodes == 1 { "is 1".to_owned() } else { format!("are {nodes}") }
}

/// The number of nodes with a start in each slot, with each node rotated by its number of places.
fn at_once(nodes: &[&Moments], turns: &[usize]) -> Vec<u16> {
    let slots = nodes.first().map_or(0, |node| node.0.len());
    let mut counts = vec![0_u16; slots];
    for (node, turn) in nodes.iter().zip(turns) {
        let (late, early) = node.0.split_at(slots - turn);
        let turned = early.iter().chain(late);
        counts.iter_mut().zip(turned).for_each(|(count, set)| *count += u16::from(*set));
    }
    counts
}

/// The fraction of all rotations with at least as much coincidence, and the ratio of coinciding pairs of nodes to their average over the rotations.
fn chance(nodes: &[&Moments]) -> (f64, f64) {
    let statistic =
        |turns: &[usize]| -> u64 { at_once(nodes, turns).into_iter().map(|count| u64::from(count).pow(2)).sum() };
    let slots = nodes[0].0.len() as u64;
    let recorded = statistic(&vec![0; nodes.len()]);
    let mut random = SplitMix64::new(1);
    let (mut as_large, mut sum) = (0_u64, 0_u64);
    for _ in 0..TURNS {
        let turns: Vec<usize> = nodes.iter().map(|_| random.below(slots) as usize).collect();
        let turned = statistic(&turns);
        as_large += u64::from(turned >= recorded);
        sum += turned;
    }
    // Each node coincides with itself in any rotation.
    let alone: usize = nodes.iter().map(|node| node.count()).sum();
    let expected = (sum as f64 / TURNS as f64 - alone as f64).max(f64::MIN_POSITIVE);
    ((1 + as_large) as f64 / (1 + TURNS) as f64, (recorded as f64 - alone as f64) / expected)
}

#[cfg(test)]
mod tests {
    use super::*;
    use becalm_model::Kind;
    use becalm_testing::noise::Source;

    const LENGTH: i64 = 10_000_000_000;
    const SLOTS: usize = 512;

    fn name(name: &str) -> SourceName {
        (Kind::Task, name.to_owned())
    }

    /// Nodes with independent daemons and, if `both`, one that hits all of them at once.
    fn nodes(source: &mut Source, both: bool) -> Vec<BTreeMap<SourceName, Moments>> {
        let common: Vec<f64> = source.poisson(1.0, LENGTH as f64);
        (0..8)
            .map(|_| {
                let of = |times: &[f64]| {
                    let mut slots = vec![false; SLOTS];
                    times.iter().for_each(|at| slots[(*at / LENGTH as f64 * SLOTS as f64) as usize] = true);
                    Moments::from_slots(slots)
                };
                let own = source.trains(2.0, 3.0, 2e7, LENGTH as f64);
                let mut node = BTreeMap::from([(name("own"), of(&own))]);
                if both {
                    node.insert(name("both"), of(&common));
                }
                node
            })
            .collect()
    }

    #[test]
    fn what_comes_at_once_is_told_from_what_does_not() {
        let (mut wrong, mut right) = (0, 0);
        for seed in 0..60 {
            let nodes = nodes(&mut Source::seeded(seed), true);
            let found = strikes(&nodes, SLOTS, LENGTH / SLOTS as i64).unwrap();
            let verdict =
                |of: &str| found.sources.iter().find(|source| source.name.1 == of).map(|source| source.verdict);
            wrong += i32::from(verdict("own") == Some(Verdict::Together));
            right += i32::from(verdict("both") == Some(Verdict::Together));
        }
        assert!(wrong <= 6, "{wrong} of 60 independent daemons are called together");
        assert!(right >= 57, "{right} of 60 common daemons are found");
    }

    /// Rotates one by one, slot by slot.
    #[test]
    fn turning_is_what_turning_is_plainly() {
        let of = nodes(&mut Source::seeded(9), false);
        let moments: Vec<&Moments> = of.iter().map(|node| &node[&name("own")]).collect();
        let turns: Vec<usize> = (0..moments.len()).map(|node| node * 61).collect();
        let slots = moments[0].0.len();
        let plain = (0..slots).map(|slot| {
            let met = moments.iter().zip(&turns).filter(|(node, turn)| node.0[(slot + slots - **turn) % slots]);
            met.count() as u16
        });
        assert_eq!(at_once(&moments, &turns), plain.collect::<Vec<_>>());
    }

    #[test]
    fn too_little_is_said() {
        assert!(strikes(&[], 63, 1).unwrap_err().contains("64 slots"));
        assert!(strikes(&[], 64, LENGTH).unwrap_err().contains("it takes 3 nodes"));
    }
}
